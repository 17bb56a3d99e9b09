//! Every line of the table of metrics is written by some code: a line that nothing counts would say zero for ever.
//!
//! What names a variant outside of the table, and outside of tests, is taken to count it.

use crate::source_text::{code_only, without_tests};
use crate::tree::File;

const TABLE: &str = "telemetry/src/metrics/table.rs";
const KINDS: [&str; 3] = ["Counter", "Gauge", "Timing"];

pub(super) fn check(files: &[File]) -> Vec<String> {
    let Some(table) = files.iter().find(|file| file.path == TABLE) else {
        return vec![format!("{TABLE}: the table of metrics is not there")];
    };
    let is_source = |file: &&File| {
        file.path.ends_with(".rs")
            && file.path.contains("/src/")
            && file.path != TABLE
            && !file.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    };
    let code: Vec<String> = files.iter().filter(is_source).map(|file| code_only(&file.text)).collect();
    let is_named = |name: &str| code.iter().any(|code| names(without_tests(code), name));
    let unwritten = rows(&table.text).into_iter().filter(|row| !is_named(row));
    unwritten.map(|row| format!("{TABLE}: nothing counts `{row}`; count it or take the line out")).collect()
}

/// `Counter::Requests` and so on, for every row.
fn rows(table: &str) -> Vec<String> {
    let mut kind = None;
    let mut rows = Vec::new();
    for line in table.lines().map(str::trim) {
        if let Some(found) = KINDS.iter().find(|kind| line == format!("{kind} {{")) {
            kind = Some(*found);
        } else if line == "}" {
            kind = None;
        } else if let (Some(kind), Some((variant, _))) = (kind, line.split_once(": \"")) {
            rows.push(format!("{kind}::{variant}"));
        }
    }
    rows
}

fn names(code: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    code.match_indices(name).any(|(at, _)| ends(&code[at + name.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_line_that_only_a_test_names_is_a_breach() {
        let table = "table! {\n    Counter {\n        Used: \"a\", \"\", \"\";\n        UsedNot: \"b\", \"\", \"\";\n    }\n}\n";
        let files = [
            file(TABLE, table),
            file("server/src/a.rs", "fn f() { add(Counter::Used, 1); }\n// Counter::UsedNot\n"),
            file("server/src/a/tests.rs", "fn f() { add(Counter::UsedNot, 1); }\n"),
        ];
        let breaches = check(&files);
        assert_eq!(breaches.len(), 1, "{breaches:?}");
        assert!(breaches[0].contains("`Counter::UsedNot`"));
    }
}
