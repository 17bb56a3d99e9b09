//! `cargo xtask map [FOLDER]`: every source file with the first sentence of its `//!`, which says what it owns.

use crate::tree;
use std::io::{ErrorKind, Write};

/// Prints the files of the workspace, or of a folder of it.
///
/// # Errors
/// The folder has no source files.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let folder = match arguments {
        [] => String::new(),
        [folder] => format!("{}/", folder.trim_end_matches('/')),
        _ => return Err("cargo xtask map [FOLDER]".to_owned()),
    };
    let files = tree::files();
    let sources = files.iter().filter(|file| file.path.ends_with(".rs") && file.path.starts_with(&folder));
    let mut rows: Vec<_> = sources
        .map(|file| (file.path.rsplit_once('/').unwrap_or(("", &file.path)), purpose(&file.text)))
        .collect();
    rows.sort();
    let (mut page, mut above) = (String::new(), None);
    for ((parent, name), purpose) in &rows {
        if above.replace(parent) != Some(parent) {
            page += &format!("{parent}/\n");
        }
        page += &format!("    {name:<28} {purpose}\n");
    }
    match std::io::stdout().write_all(page.as_bytes()) {
        _ if rows.is_empty() => Err(format!("{folder} has no source files")),
        // `head` has read enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// The first sentence of a file's `//!`.
fn purpose(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let paragraph: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    match paragraph.find(". ") {
        Some(end) => paragraph[..=end].to_owned(),
        None => paragraph,
    }
}

#[cfg(test)]
mod tests {
    use super::purpose;

    #[test]
    fn a_purpose_is_the_first_sentence_over_all_its_lines() {
        assert_eq!(
            purpose("//! Reads `a.b`\n//! and more. Then\n//! else.\n\n//! No.\nuse x;"),
            "Reads `a.b` and more."
        );
        assert_eq!(purpose("//! One\n//!\n//! Two."), "One");
    }
}
