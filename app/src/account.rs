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

const DEFAULT_USER: &str = "nobody";
/// Its id, for a system without a list of users (a container made from scratch).
const DEFAULT_ID: &str = "65534";

/// Adds the default user if root runs a configuration that names none; `changes`: whether the process may
/// change its user.
pub fn with_default_user(mut loaded: Loaded, changes: bool) -> Loaded {
    if changes && let Some(configuration) = &mut loaded.configuration {
        configuration.main.user.get_or_insert_with(nobody);
    }
    loaded
}

/// Warns that `user` has no effect without root, as nginx does.
pub fn warn_of_idle_user(loaded: &mut Loaded, is_root: bool) {
    let user = loaded.configuration.as_ref().and_then(|configuration| configuration.main.user.as_ref());
    if let Some(user) = user.filter(|_| !is_root) {
        let what = format!("user {} has no effect: only root can change the user", user.name);
        loaded.diagnostics.warning_nowhere(what).help("remove the directive, or start millstream as root");
    }
}

fn nobody() -> User {
    let named = User { name: DEFAULT_USER.to_owned(), group: None };
    if privileges::find(&named).is_ok() { named } else { User { name: DEFAULT_ID.to_owned(), group: None } }
}

/// The configured user if it has an effect: root starts this process, or did and it has changed to that user.
pub fn in_effect(configuration: &Configuration) -> Option<&User> {
    let is_root = rustix::process::geteuid().is_root();
    configuration.main.user.as_ref().filter(|_| is_root || files::has_opener())
}

/// The owner of files that root creates. A process without root can give nothing away; then its opener has.
pub fn account_to_give_to(user: Option<&User>) -> Option<Account> {
    let user = user.filter(|_| rustix::process::geteuid().is_root());
    // Whether there is such a user is found out by the proof.
    user.and_then(|user| privileges::find(user).ok())
}

pub fn prove_folders(configuration: &Configuration, is_check: bool, findings: &mut Diagnostics) {
    prove_caches(configuration, is_check, findings);
    prove_states(configuration, is_check, findings);
    if !is_check {
        prove_issuers(configuration, findings);
    }
}

/// Gives each cache directory to the serving user and tests it with that user's rights. An unusable one is a
/// warning, as requests are served without it. `-t` skips what only another user's service can test.
fn prove_caches(configuration: &Configuration, is_check: bool, findings: &mut Diagnostics) {
    let user = in_effect(configuration);
    let account = account_to_give_to(user);
    let is_default = user.is_some_and(|user| [DEFAULT_USER, DEFAULT_ID].contains(&user.name.as_str()));
    for zone in &configuration.http.cache_zones {
        let Some(path) = &zone.path else { continue };
        if let Some(above) = unmade_below(path, user) {
            let what = format!(
                "the cache directory {} does not exist, and root makes none below {}, which belongs to another user; nothing will be \
                 stored in it",
                path.display(),
                above.display()
            );
            findings
                .warning(zone.span, what)
                .help(format!("create it, owned by \"{}\"", user.map_or("", |user| &user.name)));
            continue;
        }
        if is_check && is_default && is_anothers(path) {
            continue;
        }
        let given = account.as_ref().map_or(Ok(()), |account| give(path, account));
        let Some(why) = unusable(path, user, given) else { continue };
        let what = format!(
            "the cache directory {} cannot be used{}: {why}; no responses will be stored in it",
            path.display(),
            by(user)
        );
        findings
            .warning(zone.span, what)
            .help("the user must own this directory and have access to all its parent directories");
    }
}

/// The directory of another user's that keeps root from making a missing one below it for the user: whoever owns the one
/// above may put a link in its place.
pub fn unmade_below<'p>(path: &'p Path, user: Option<&User>) -> Option<&'p Path> {
    privileges::find(user?).ok().filter(|account| account.uid != 0)?;
    let is_anothers = |path: &&Path| fs::metadata(path).is_ok_and(|found| found.uid() != 0);
    if path.exists() { None } else { path.ancestors().skip(1).find(is_anothers) }
}

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
            "no file can be created in {folder}{whose}: {error}; changes to upstream \"{name}\" will be refused"
        );
        findings
            .warning(upstream.span, what)
            .help("make the user the owner of the directory of the state file");
    }
}

/// Gives the directories of issuers to the serving user and tests them with that user's rights. An unusable
/// one is an error: each restart would order every certificate again, which authorities allow a few times a
/// week.
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
            .help("the user must own this directory and have access to all its parent directories; or set state_path off");
    }
}

/// Why the serving user cannot create files in a directory; `given`: the result of giving it away.
fn unusable(path: &Path, user: Option<&User>, given: io::Result<()>) -> Option<String> {
    let tried = privileges::as_served(user, || temporary::file_in(path).map(drop));
    match (given, tried) {
        (Ok(()), Ok(Ok(()))) => None,
        (Err(error), _) | (_, Ok(Err(error))) => Some(error.to_string()),
        // That there is no such user is an error of the start.
        (_, Err(error)) => Some(error.to_string()),
    }
}

fn by(user: Option<&User>) -> String {
    user.map_or_else(String::new, |user| format!(" by user \"{}\"", user.name))
}

/// Whether a directory or its parent belongs to a user other than root and nobody. If root checks a file
/// without `user`, a service with its own user may serve from it where nobody may not go (`DynamicUser`).
fn is_anothers(path: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map_or(0, |found| found.uid());
    let nobody = privileges::find(&nobody()).map_or(0, |account| account.uid);
    path.ancestors().take(2).map(owner).any(|uid| uid != 0 && uid != nobody)
}

/// Changes the owner of one regular file or directory of root's; a missing one is no error.
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
