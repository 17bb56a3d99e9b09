//! What must not stand in any file: unfinished work, and paths of somebody's own machine.

use crate::source_text::code_only;
use crate::tree::File;

/// Written in halves, or this file would be the first to break its own rule.
fn refused() -> [(String, &'static str); 6] {
    let joined = |one: &str, other: &str| format!("{one}{other}");
    [
        (joined("/wo", "rk/"), "a path of one machine"),
        (joined("/ro", "ot/"), "a path of one machine"),
        (joined("/tmp/tar", "get"), "a path of one machine"),
        (joined("/tmp/pl", "an"), "a path of one machine"),
        (joined("/tmp/bash", "_jobs"), "a path of one machine"),
        (joined("/ho", "me/"), "a path of one machine"),
    ]
}

const UNFINISHED: [&str; 2] = ["todo!", "unimplemented!"];

pub(super) fn check(files: &[File]) -> Vec<String> {
    let refused = refused();
    let mut breaches = Vec::new();
    for file in files.iter().filter(|file| !file.path.starts_with("tests/malformed/")) {
        for (number, line) in file.text.lines().enumerate() {
            for (word, what) in refused.iter().filter(|(word, _)| line.contains(word.as_str())) {
                breaches.push(format!("{}:{}: {word} is {what}", file.path, number + 1));
            }
        }
        if file.path.ends_with(".rs") {
            for (number, line) in code_only(&file.text).lines().enumerate() {
                for word in UNFINISHED.iter().filter(|word| line.contains(*word)) {
                    breaches.push(format!("{}:{}: {word} is unfinished work", file.path, number + 1));
                }
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_paths_are_found_in_text_and_unfinished_work_in_code() {
        let file = |path: &str, text: String| File { path: path.into(), text };
        assert_eq!(check(&[file("a.md", format!("see /{}/x", "work"))]).len(), 1);
        assert_eq!(check(&[file("a/src/b.rs", format!("fn f() {{ {}!() }}", "todo"))]).len(), 1);
        assert!(check(&[file("a.md", "unix:/tmp/api.sock, todo! as a word".into())]).is_empty());
    }
}
