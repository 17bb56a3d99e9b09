//! Whose process it is: started by root it becomes `user`, or nobody where the file names none, as nginx's workers do.
//!
//! What a check makes as root is tried with that user's rights. Only what belongs to root is given, and nothing through a symbolic link. Next: `opener`,
//! which keeps root's rights where a server runs.

use millstream_acme::state::StateDirectory;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::files;
use millstream_conf::load::Loaded;
use millstream_conf::model::{Configuration, User};
use millstream_net::privileges::{self, Account};
use millstream_net::temporary;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

#[cfg(test)]
mod tests;

/// The user that nginx is built for where nobody says otherwise.
const DEFAULT_USER: &str = "nobody";
/// Its id everywhere, for a system without a list of users (a container made from scratch).
const DEFAULT_ID: &str = "65534";

/// Puts in the default user where root runs a configuration that names none, and may become somebody else.
pub fn with_default_user(mut loaded: Loaded, changes: bool) -> Loaded {
    if changes && let Some(configuration) = &mut loaded.configuration {
        configuration.main.user.get_or_insert_with(nobody);
    }
    loaded
}

/// Says that a `user` changes nothing where the process is not root's, as nginx does.
pub fn warn_of_idle_user(loaded: &mut Loaded, is_root: bool) {
    let user = loaded.configuration.as_ref().and_then(|configuration| configuration.main.user.as_ref());
    if let Some(user) = user.filter(|_| !is_root) {
        let what = format!("user {} has no effect: only root can change the user", user.name);
        loaded.diagnostics.warning_nowhere(what).help("leave it out, or start it as root");
    }
}

fn nobody() -> User {
    let named = User { name: DEFAULT_USER.to_owned(), group: None };
    if privileges::find(&named).is_ok() { named } else { User { name: DEFAULT_ID.to_owned(), group: None } }
}

/// The user of the configuration, where it has an effect: root starts this process, or has and it is that user by now.
pub fn in_effect(configuration: &Configuration) -> Option<&User> {
    let is_root = rustix::process::geteuid().is_root();
    configuration.main.user.as_ref().filter(|_| is_root || files::has_opener())
}

/// To whom root gives what it makes. Who is not root can give nothing; then the opener has.
pub fn account_to_give_to(user: Option<&User>) -> Option<Account> {
    let user = user.filter(|_| rustix::process::geteuid().is_root());
    // Whether there is such a user is found out by the proof.
    user.and_then(|user| privileges::find(user).ok())
}

/// Tries what will be written to while requests are served: the directories of caches and the folders of state files.
pub fn prove_folders(configuration: &Configuration, is_check: bool, findings: &mut Diagnostics) {
    prove_caches(configuration, is_check, findings);
    prove_states(configuration, is_check, findings);
    if !is_check {
        prove_issuers(configuration, findings);
    }
}

/// Gives each cache directory to whoever will serve, and tries it with that one's rights. What cannot be used is a warning: it
/// stores nothing, and serves all the same. A check (`-t`) leaves out what only another user's service can prove.
fn prove_caches(configuration: &Configuration, is_check: bool, findings: &mut Diagnostics) {
    let user = in_effect(configuration);
    let account = account_to_give_to(user);
    let is_default = user.is_some_and(|user| [DEFAULT_USER, DEFAULT_ID].contains(&user.name.as_str()));
    for zone in &configuration.http.cache_zones {
        let Some(path) = &zone.path else { continue };
        if is_check && is_default && is_anothers(path) {
            continue;
        }
        let given = account.as_ref().map_or(Ok(()), |account| give(path, account));
        let Some(why) = unusable(path, user, given) else { continue };
        let what = format!(
            "the cache directory {} cannot be used{}: {why}; nothing will be stored in it",
            path.display(),
            by(user)
        );
        findings
            .warning(zone.span, what)
            .help("let the user enter all directories above it, and own this one");
    }
}

/// Tries the folders of state files with the rights of whoever will serve. Where no file can be made, the API's changes to the
/// group will be refused, which is a warning: requests are served all the same.
fn prove_states(configuration: &Configuration, is_check: bool, findings: &mut Diagnostics) {
    let user = in_effect(configuration);
    let is_default = user.is_some_and(|user| [DEFAULT_USER, DEFAULT_ID].contains(&user.name.as_str()));
    for upstream in &configuration.http.upstreams {
        let Some(folder) = upstream.state.as_deref().and_then(Path::parent) else { continue };
        if is_check && is_default && is_anothers(folder) {
            continue;
        }
        let Ok(Err(error)) = privileges::as_served(user, || temporary::file_in(folder).map(drop)) else {
            continue;
        };
        let (folder, name, whose) = (folder.display(), &upstream.name, by(user));
        let what = format!(
            "no file can be made in {folder}{whose}: {error}; changes to upstream \"{name}\" will be refused"
        );
        findings.warning(upstream.span, what).help("give the folder of the state file to the user");
    }
}

/// Gives the directories of issuers to whoever will serve, and tries them with that one's rights. One that cannot be used is an error: each
/// restart would ask for every certificate again, which authorities allow a few times a week.
fn prove_issuers(configuration: &Configuration, findings: &mut Diagnostics) {
    let user = in_effect(configuration);
    let account = account_to_give_to(user);
    for issuer in &configuration.http.acme_issuers {
        let Some(path) = issuer.state_path.as_deref().filter(|path| path.is_dir()) else { continue };
        let all = StateDirectory::files(path);
        let paths = || std::iter::once(path).chain(all.iter().map(AsRef::as_ref));
        let given =
            account.as_ref().map_or(Ok(()), |account| paths().try_for_each(|path| give(path, account)));
        let Some(why) = unusable(path, user, given) else { continue };
        let what = format!("the state_path {} cannot be used{}: {why}", path.display(), by(user));
        findings
            .error(issuer.span, what)
            .help("let the user enter all directories above it, and own this one; or write state_path off");
    }
}

/// Why whoever will serve cannot make files in a directory, which was given to it or not.
fn unusable(path: &Path, user: Option<&User>, given: io::Result<()>) -> Option<String> {
    let tried = privileges::as_served(user, || temporary::file_in(path).map(drop));
    match (given, tried) {
        (Ok(()), Ok(Ok(()))) => None,
        (Err(error), _) | (_, Ok(Err(error))) => Some(error.to_string()),
        // That there is no such user is an error of the start.
        (_, Err(error)) => Some(error.to_string()),
    }
}

/// Whose rights those are, in a sentence.
fn by(user: Option<&User>) -> String {
    user.map_or_else(String::new, |user| format!(" by user \"{}\"", user.name))
}

/// Whether a directory, or the one that it is in, belongs to a user that is neither root nor nobody. Where root checks a file that
/// names no user, a service with a user of its own serves from it, and perhaps sees it where nobody may not go (`DynamicUser`).
fn is_anothers(path: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map_or(0, |found| found.uid());
    let nobody = privileges::find(&nobody()).map_or(0, |account| account.uid);
    path.ancestors().take(2).map(owner).any(|uid| uid != 0 && uid != nobody)
}

/// Gives one regular file or directory of root's.
///
/// # Errors
/// Those of looking at it and of giving it. Nothing there is nothing to give.
pub fn give(path: &Path, account: &Account) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let is_alone = found.is_dir() || (found.is_file() && found.nlink() == 1);
    if account.uid == 0 || found.uid() != 0 || !is_alone {
        return Ok(());
    }
    lchown(path, Some(account.uid), Some(account.gid))
}
