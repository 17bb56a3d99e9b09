//! Where temporary files are made: each place is chosen and proved before the first request, with the rights of whoever serves.
//!
//! A place that is written in the configuration is made as nginx makes it, given to `user`, and has to work. Where none
//! is written the first usable one of a list is taken; only folders that are there already are on it, because files
//! without a name need none of their own. No place is an error. Next: `millstream-net`'s `temporary`, which makes the files.

use crate::account;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::model::{Configuration, Handler, TempPath, User};
use millstream_conf::source::Span;
use millstream_net::privileges;
use millstream_net::temporary;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Used if neither the configuration nor TMPDIR names a place. The first is on a disk; the last is memory,
/// and often all that a container with a read-only root has.
const FOLDERS: [&str; 3] = ["/var/tmp", "/tmp", IN_MEMORY];
const IN_MEMORY: &str = "/dev/shm";

/// Settles every place; failures become findings.
pub fn settle(configuration: &mut Configuration, findings: &mut Diagnostics) {
    let of_environment = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let folders = of_environment.into_iter().chain(FOLDERS.map(PathBuf::from)).collect();
    settle_among(folders, configuration, findings);
}

fn settle_among(folders: Vec<PathBuf>, configuration: &mut Configuration, findings: &mut Diagnostics) {
    let user = account::in_effect(configuration).cloned();
    let mut places = Places { user, folders, chosen: BTreeMap::new(), found: Vec::new(), findings };
    for location in &mut configuration.http.locations {
        let own = &mut location.settings;
        if own.client_body.temp_path.written.is_some() || own.pass().is_some() {
            places.settle("client_body_temp_path", &mut own.client_body.temp_path);
        }
        if let Handler::Pass(proxy) = &mut own.content {
            places.settle("proxy_temp_path", &mut Arc::make_mut(proxy).exchange.temp_path);
        }
    }
    places.report();
}

struct Places<'f> {
    user: Option<User>,
    folders: Vec<PathBuf>,
    chosen: BTreeMap<(Option<Span>, PathBuf), PathBuf>,
    found: Vec<Finding>,
    findings: &'f mut Diagnostics,
}

#[derive(Debug, PartialEq, Eq)]
enum Finding {
    Unusable { name: &'static str, path: PathBuf, span: Span, why: String },
    None { tried: String },
    InMemory,
    Refused(String),
}

impl Places<'_> {
    fn settle(&mut self, name: &'static str, place: &mut TempPath) {
        let asked = (place.written, place.path.clone());
        if !self.chosen.contains_key(&asked) {
            let found = match place.written {
                Some(span) => self.written(name, &place.path, span),
                None => self.default(&place.path),
            };
            self.chosen.insert(asked.clone(), found.unwrap_or_else(|| place.path.clone()));
        }
        place.path.clone_from(&self.chosen[&asked]);
    }

    fn written(&mut self, name: &'static str, path: &Path, span: Span) -> Option<PathBuf> {
        let made = make(path, self.user.as_ref());
        match made.and_then(|()| self.proved(path)) {
            Ok(()) => Some(path.to_owned()),
            Err(error) => {
                let why = error.to_string();
                self.found(Finding::Unusable { name, path: path.to_owned(), span, why })
            }
        }
    }

    /// The first usable place. `own` is nginx's directory below the prefix.
    fn default(&mut self, own: &Path) -> Option<PathBuf> {
        let mut tried = Vec::new();
        if self.proved(own).is_ok() {
            return Some(own.to_owned());
        }
        for path in self.folders.clone() {
            match self.proved(&path) {
                Ok(()) if path == Path::new(IN_MEMORY) => {
                    self.found(Finding::InMemory);
                    return Some(path);
                }
                Ok(()) => return Some(path),
                Err(error) => tried.push(format!("{} ({error})", path.display())),
            }
        }
        self.found(Finding::None { tried: tried.join(", ") })
    }

    fn proved(&mut self, path: &Path) -> io::Result<()> {
        match privileges::as_served(self.user.as_ref(), || temporary::file_in(path).map(drop)) {
            Ok(tried) => tried,
            Err(error) => {
                let user = self.user.as_ref().map_or("", |user| user.name.as_str());
                self.found(Finding::Refused(format!("user {user}: {error}")));
                Err(io::Error::other(error.to_string()))
            }
        }
    }

    fn found(&mut self, finding: Finding) -> Option<PathBuf> {
        if !self.found.contains(&finding) {
            self.found.push(finding);
        }
        None
    }

    /// Without a known user nothing was tested, so only that is reported.
    fn report(self) {
        let Places { found, findings, user, .. } = self;
        let refused: Vec<&Finding> = found.iter().filter(|one| matches!(one, Finding::Refused(_))).collect();
        let told = if refused.is_empty() { found.iter().collect() } else { refused };
        let whose = user.map_or_else(String::new, |user| format!(" by user \"{}\"", user.name));
        for finding in told {
            match finding {
                Finding::Unusable { name, path, span, why } => {
                    let what = format!("{name} {} cannot be used{whose}: {why}", path.display());
                    findings.error(*span, what).help(
                        "the last directory is created if it is missing, and the user becomes its owner; all parent \
                         directories must exist and be accessible to the user",
                    );
                }
                Finding::None { tried } => {
                    let what = format!("no directory for temporary files can be used{whose}; tried: {tried}");
                    findings.error_nowhere(what).help(
                        "set TMPDIR to a writable directory, or set client_body_temp_path and proxy_temp_path",
                    );
                }
                Finding::InMemory => {
                    let what = format!(
                        "temporary files are written to {IN_MEMORY}, which is in memory: no other directory can be used{whose}"
                    );
                    findings.warning_nowhere(what).help(
                        "set TMPDIR to a directory on disk, or set client_body_temp_path and proxy_temp_path",
                    );
                }
                Finding::Refused(what) => _ = findings.error_nowhere(what.clone()),
            }
        }
    }
}

fn make(path: &Path, user: Option<&User>) -> io::Result<()> {
    temporary::make_folder(path)?;
    account::account_to_give_to(user).map_or(Ok(()), |account| account::give(path, &account))
}
