//! Who can stand in front of the API, and how each is told to do a step: program, arguments, files.
//!
//! Pure: nothing is started here. A step that somebody cannot do is said in a sentence, never imitated. Next: `haproxy`,
//! `varnish` for their languages; `ladder::stand` starts what a [`Launch`] says.

mod haproxy;
mod varnish;
#[cfg(test)]
mod tests;

use crate::step::nginx::{self, Dialect};
use crate::step::{Step, StepSetting};
use std::path::{Path, PathBuf};

/// Who stands in front of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// This program.
    Millstream,
    /// nginx, on the same file but for a few words.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Varnish.
    Varnish,
}

/// How to start a party on a step. Paths are relative to the directory that it is started in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Files to be there first: name and text.
    pub files: Vec<(&'static str, String)>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it counts the requests that it passed on.
    pub reached: Reached,
    /// What is not quite the same as in the step's text, one sentence.
    pub note: Option<&'static str>,
}

/// Where the requests are counted that reached the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Every request does: nothing is stored.
    All,
    /// A line of this file for each.
    Lines(&'static str),
    /// HAProxy's statistics on this socket.
    HaproxySocket(&'static str),
    /// `varnishstat` on this directory.
    Varnishstat(&'static str),
}

impl Party {
    /// Everybody.
    pub const ALL: [Party; 4] = [Party::Millstream, Party::Nginx, Party::Haproxy, Party::Varnish];

    /// Its name in tables and JSON, and of its program.
    pub fn name(self) -> &'static str {
        match self {
            Party::Millstream => "millstream",
            Party::Nginx => "nginx",
            Party::Haproxy => "haproxy",
            Party::Varnish => "varnish",
        }
    }

    /// Its name as it is written in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Party::Millstream => "Millstream",
            Party::Nginx => "nginx",
            Party::Haproxy => "HAProxy",
            Party::Varnish => "Varnish",
        }
    }

    /// The file of its program in a search path; [`Party::Millstream`] is whoever asks, and not looked for.
    pub fn program(self, search: &[PathBuf]) -> Option<PathBuf> {
        let name = if self == Party::Varnish { "varnishd" } else { self.name() };
        search.iter().map(|folder| folder.join(name)).find(|file| file.is_file())
    }
}

/// Where programs are looked for: `PATH`, and where systems put servers that users have no business with.
pub fn search_path(path: Option<&std::ffi::OsStr>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    folders.extend(["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/nginx/sbin"].map(PathBuf::from));
    folders
}

/// Reads what `--against` names: parties separated by commas.
///
/// # Errors
/// A name that is none, with those there are.
pub fn parse(text: &str) -> Result<Vec<Party>, String> {
    let mut parties = Vec::new();
    for name in text.split(',').map(str::trim) {
        let found = Party::ALL.into_iter().skip(1).find(|party| party.name() == name);
        let party = found.ok_or_else(|| {
            format!("\"{name}\" is nobody to compare with; there are nginx, haproxy, varnish")
        })?;
        if !parties.contains(&party) {
            parties.push(party);
        }
    }
    Ok(parties)
}

/// How to start a party on a step in `directory`.
///
/// # Errors
/// Why it cannot do the step, as the end of a sentence that begins with its name.
pub fn launch(
    party: Party,
    step: Step,
    setting: &StepSetting<'_>,
    directory: &Path,
) -> Result<Launch, &'static str> {
    match party {
        Party::Millstream => nginx_file(step, Dialect::Millstream, setting),
        Party::Nginx => nginx_file(step, Dialect::Nginx, setting),
        Party::Haproxy => haproxy::launch(step, setting),
        Party::Varnish => varnish::launch(step, setting, directory),
    }
}

/// Why nobody can do a step without a proxy.
const NO_PROXY: &str = "is not part of it";

fn nginx_file(step: Step, dialect: Dialect, setting: &StepSetting<'_>) -> Result<Launch, &'static str> {
    let text = nginx::text(step, dialect, setting).ok_or(NO_PROXY)?;
    // nginx takes paths from where it was built to live, so it is told another place: its working directory, which its
    // workers need not be able to find from the root.
    Ok(Launch {
        files: vec![("nginx.conf", text)],
        arguments: ["-c", "nginx.conf", "-p", "./"].map(str::to_owned).to_vec(),
        reached: if step.is_cached() { Reached::Lines(nginx::REACHED) } else { Reached::All },
        note: None,
    })
}
