//! `include` patterns as glob(3) reads them, which nginx uses.
//!
//! The glob crate differs in three points that are mended here before it sees the pattern: `**` is no more than `*`,
//! a backslash takes the next character literally, and `[^…]` negates like `[!…]`. Matches come in byte order.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::ConfPrefix;
use crate::files;

const OPTIONS: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Whether nginx would take the name for a pattern (`ngx_conf_include` looks for these three characters).
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// In byte order. No match is no error: `conf.d/*.conf` may be empty.
pub(super) fn matches(prefix: &ConfPrefix, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let whole = if pattern.starts_with('/') {
        translate(pattern)
    } else {
        // The directory is a name, not a pattern, whatever characters it has.
        let Some(directory) = prefix.directory().to_str() else { return Ok(Vec::new()) };
        format!("{}/{}", glob::Pattern::escape(directory.trim_end_matches('/')), translate(pattern))
    };
    files::matches(&whole, || matches_through(&whole, names))
}

/// In byte order; patterns as the glob crate reads them. `names` lists a directory, or one name if it exists.
/// A directory that cannot be listed has no match.
pub fn matches_through(
    whole: &str,
    names: impl Fn(&Path, Option<&OsStr>) -> io::Result<Vec<OsString>>,
) -> Vec<PathBuf> {
    // A slash at the end asks for directories.
    let end = whole.ends_with('/').then_some(".");
    let mut found = vec![PathBuf::from(if whole.starts_with('/') { "/" } else { "" })];
    for step in whole.split('/').filter(|step| !step.is_empty()).chain(end) {
        let one = literal(step).map(OsString::from);
        let Ok(wanted) = glob::Pattern::new(step) else { return Vec::new() };
        let fits = |name: &OsString| {
            one.is_some() || name.to_str().is_some_and(|name| wanted.matches_with(name, OPTIONS))
        };
        let mut next = Vec::new();
        for at in found {
            let directory = if at.as_os_str().is_empty() { Path::new(".") } else { &at };
            let listed = names(directory, one.as_deref()).unwrap_or_default();
            next.extend(listed.into_iter().filter(fits).map(|name| at.join(name)));
        }
        found = next;
    }
    found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    found
}

/// The listing for `matches_through`, with the rights of this process.
fn names(directory: &Path, one: Option<&OsStr>) -> io::Result<Vec<OsString>> {
    match one {
        Some(name) => directory.join(name).symlink_metadata().map(|_| vec![name.to_os_string()]),
        None => fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name())).collect(),
    }
}

/// The one name that a step of a pattern stands for; `None` if there may be several.
fn literal(step: &str) -> Option<String> {
    let mut name = String::with_capacity(step.len());
    let mut rest = step.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' | '?' => return None,
            '[' => {
                name.push(rest.next().filter(|character| *character != '!')?);
                rest.next().filter(|character| *character == ']')?;
            }
            _ => name.push(character),
        }
    }
    Some(name)
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '*' if out.ends_with('*') => {}
            '\\' => {
                let literal = rest.chars().next().map_or(0, char::len_utf8);
                out += &glob::Pattern::escape(&rest[..literal]);
                rest = &rest[literal..];
            }
            '[' => match class_end(rest) {
                Some(end) => {
                    let (class, after) = rest.split_at(end);
                    out.push('[');
                    out += &class.replacen('^', "!", usize::from(class.starts_with('^')));
                    rest = after;
                }
                // Without its end a bracket is a character like any other.
                None => out += "[[]",
            },
            _ => out.push(character),
        }
    }
    out
}

/// Takes the text after the `[`; a `]` in the first place is a member of the class.
fn class_end(class: &str) -> Option<usize> {
    let first = usize::from(class.starts_with(['!', '^']));
    let from = first + usize::from(class[first..].starts_with(']'));
    class[from..].find(']').map(|i| from + i)
}
