//! `cargo xtask map [FOLDER]`: every source file with the first sentence of its `//!`, which says what it owns.

use crate::tree;

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
    let mut above = "";
    let mut is_empty = true;
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && file.path.starts_with(&folder)) {
        let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        if parent != above || is_empty {
            println!("{parent}/");
        }
        (above, is_empty) = (parent, false);
        println!("    {name:<28} {}", purpose(&file.text));
    }
    if is_empty { Err(format!("{folder} has no source files")) } else { Ok(()) }
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
