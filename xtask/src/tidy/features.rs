//! Every setting of a feature is set by a directive and read by whoever serves: a row that nothing goes by would be a lie in the
//! manual.
//!
//! A field is looked for by name in files that know of its feature, so one that shares its name with another may pass. That no text
//! with variables is missed needs no check: `record!` does not compile then.

use crate::source_text::{code_only, without_tests};
use crate::tree::File;

const FEATURES: &str = "conf/src/features/";

/// A field of a resolved configuration, or of one level of it.
struct Field {
    file: String,
    of: String,
    name: String,
    is_read_by_others: bool,
    is_set_by_rows: bool,
}

pub(super) fn check(files: &[File]) -> Vec<String> {
    let is_source = |file: &&File| {
        file.path.ends_with(".rs")
            && file.path.contains("/src/")
            && !file.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    };
    let sources: Vec<(&str, String)> = (files.iter().filter(is_source))
        .map(|file| (file.path.as_str(), without_tests(&code_only(&file.text)).to_owned()))
        .collect();
    let features = || sources.iter().filter(|(path, _)| path.starts_with(FEATURES));
    let mut breaches = Vec::new();
    for field in features().flat_map(|(path, code)| fields(path, code)) {
        let Field { file, of, name, is_read_by_others, is_set_by_rows } = field;
        let nouns: Vec<&str> = file[FEATURES.len()..].trim_end_matches(".rs").split('/').collect();
        let knows = |code: &str| code.contains(&of) || nouns.iter().any(|noun| code.contains(noun));
        let is_read = || {
            sources.iter().any(|(path, code)| match (*path == file, path.starts_with("conf/")) {
                (true, _) => uses(code, "self.", &name).next().is_some(),
                (false, true) => false,
                (false, false) => knows(code) && uses(code, ".", &name).next().is_some(),
            })
        };
        if is_read_by_others && !is_read() {
            breaches
                .push(format!("{file}: nothing reads `{name}` of {of}; use it or take its directive out"));
        }
        if is_set_by_rows && !features().any(|(_, code)| uses(code, ".", &name).any(sets)) {
            breaches.push(format!("{file}: no directive sets `{name}`; write its row or take it out"));
        }
    }
    breaches
}

fn fields(path: &str, code: &str) -> Vec<Field> {
    let mut found = Vec::new();
    let (mut kind, mut of) = (None, "");
    for line in code.lines() {
        match line {
            "settings! {" => kind = Some((true, true)),
            "record! {" => kind = Some((true, false)),
            "level! {" => kind = Some((false, true)),
            "}" => kind = None,
            _ => {}
        }
        let Some((is_read_by_others, is_set_by_rows)) = kind else { continue };
        if let Some(named) = line.strip_prefix("    pub struct ") {
            of = named.split([' ', ',']).next().unwrap_or_default();
        }
        let Some((name, _)) = line.strip_prefix("        ").and_then(|field| field.split_once(": ")) else {
            continue;
        };
        let name = name.strip_prefix("pub ").unwrap_or(name);
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let (file, of, name) = (path.to_owned(), of.to_owned(), name.to_owned());
            found.push(Field { file, of, name, is_read_by_others, is_set_by_rows });
        }
    }
    found
}

/// The text after each use of a field.
fn uses<'c>(code: &'c str, before: &str, name: &str) -> impl Iterator<Item = &'c str> {
    let field = format!("{before}{name}");
    let length = field.len();
    let found: Vec<usize> = code.match_indices(&field).map(|(at, _)| at + length).collect();
    let is_whole = |rest: &&str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    found.into_iter().map(|end| &code[end..]).filter(is_whole)
}

fn sets(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.starts_with("= ") || rest.starts_with("=\n") || rest.starts_with(".get_or_insert")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_setting_that_nothing_sets_or_reads_is_a_breach() {
        let feature = "settings! {\n    pub struct A, ALevel(place, reading) {\n        one: bool = false,\n        two: bool = false,\n        \
                       three: bool = true,\n    }\n}\nfn rows() { l.a.one = r.flag(d); l.a.two = None }\n";
        let files = [
            file("conf/src/features/a.rs", feature),
            file(
                "server/src/a.rs",
                "fn f() { if settings.a.one || settings.a.three {} } // settings.a.two\n",
            ),
            file("server/src/a/tests.rs", "fn f() { settings.a.two; }\n"),
        ];
        let breaches = check(&files);
        assert_eq!(breaches.len(), 2, "{breaches:?}");
        assert!(
            breaches[0].contains("nothing reads `two`") && breaches[1].contains("no directive sets `three`")
        );
    }
}
