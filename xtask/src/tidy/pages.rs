//! The pages that people open first are short, and what they link to exists.

use crate::tree::{self, File};

/// Page, and the most bytes that it may have.
const SIZES: [(&str, usize); 4] = [
    ("README.md", 8 * 1024),
    ("ARCHITECTURE.md", 16 * 1024),
    ("CONTRIBUTING.md", 5 * 1024),
    ("CHANGELOG.md", 2 * 1024),
];

/// A breach for each page that is too long, and for each link to a file that does not exist.
pub(super) fn check(files: &[File]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let most = SIZES.iter().find(|(page, _)| *page == file.path).map_or(usize::MAX, |(_, most)| *most);
        if file.text.len() > most {
            breaches.push(format!("{}: {} bytes, at most {most}", file.path, file.text.len()));
        }
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(&file.text).filter(|link| !tree::root().join(folder).join(link).exists()) {
            breaches.push(format!("{}: a link to {link}, which does not exist", file.path));
        }
    }
    breaches
}

/// The files that a page links to, without their anchors.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = targets.map(|target| target.split_once('#').map_or(target, |(file, _)| file));
    files.filter(|file| !file.is_empty() && !file.contains("://") && !file.contains([' ', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_first_pages_and_links_to_nothing_are_found() {
        let found = |path: &str, text: String| check(&[File { path: path.into(), text }]).len();
        assert_eq!(found("README.md", "x".repeat(9000)), 1);
        assert_eq!(found("docs/a.md", "x".repeat(9000)), 0);
        assert_eq!(found("docs/a.md", "[a](README.md#x) [b](https://c.d/e) [c](#f) [d](../no.md)".into()), 1);
    }
}
