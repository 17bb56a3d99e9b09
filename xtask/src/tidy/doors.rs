//! What a crate's `lib.rs` itself declares for others has documentation; inside a crate it is owed only where a name does not say enough.

use crate::source_text::without_tests;
use crate::tree::File;

const ITEMS: [&str; 8] = [
    "pub fn ",
    "pub async fn ",
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub const ",
    "pub static ",
    "pub type ",
];

/// A breach for each item without documentation.
pub(super) fn check(files: &[File]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with("/src/lib.rs")) {
        let lines: Vec<&str> = without_tests(&file.text).lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let mut above = lines[..number].iter().rev().skip_while(|line| line.starts_with("#["));
            let is_documented = above.next().is_some_and(|line| line.starts_with("///"));
            if ITEMS.iter().any(|item| line.starts_with(item)) && !is_documented {
                breaches.push(format!("{}:{}: no documentation: {line}", file.path, number + 1));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_at_a_door_without_documentation_is_found() {
        let found = |path: &str, text: &str| check(&[File { path: path.into(), text: text.into() }]).len();
        assert_eq!(found("a/src/lib.rs", "/// Yes.\n#[inline]\npub fn yes() {}\npub fn no() {}\n"), 1);
        assert_eq!(found("a/src/b.rs", "pub fn no() {}\n"), 0);
    }
}
