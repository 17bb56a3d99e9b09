//! `include` patterns as glob(3) reads them, which nginx uses.
//!
//! The glob crate differs in three points that are mended here before it sees the pattern: `**` is no more than `*`,
//! a backslash takes the next character literally, and `[^…]` negates like `[!…]`. Matches come in byte order.

use std::path::PathBuf;

use super::ConfPrefix;
use crate::files;

/// Whether nginx would take the name for a pattern (`ngx_conf_include` looks for these three characters).
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The files that match, in byte order. None where nothing does, which is no error: `conf.d/*.conf` may be empty.
pub(super) fn matches(prefix: &ConfPrefix, pattern: &str) -> Vec<PathBuf> {
    let whole = if pattern.starts_with('/') {
        translate(pattern)
    } else {
        // The directory is a name, not a pattern, whatever characters it has.
        let Some(directory) = prefix.directory().to_str() else { return Vec::new() };
        format!("{}/{}", glob::Pattern::escape(directory.trim_end_matches('/')), translate(pattern))
    };
    files::matches(&whole, || matches_here(&whole))
}

/// The files that match a pattern as the glob crate reads it, in byte order.
pub fn matches_here(whole: &str) -> Vec<PathBuf> {
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let Ok(paths) = glob::glob_with(whole, options) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = paths.flatten().collect();
    paths.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    paths
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

/// Where the `]` of a class stands, given the text after its `[`; one in the first place is a member of it.
fn class_end(class: &str) -> Option<usize> {
    let first = usize::from(class.starts_with(['!', '^']));
    let from = first + usize::from(class[first..].starts_with(']'));
    class[from..].find(']').map(|i| from + i)
}
