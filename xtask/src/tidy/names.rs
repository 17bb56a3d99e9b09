//! A file is the noun it owns: names that own nothing are refused, for files and for modules in them.

use crate::source_text::code_only;
use crate::tree::File;

const REFUSED: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager", "inner"];
const REFUSED_ENDINGS: &[&str] =
    &["_impl", "_main", "_util", "_utils", "_helper", "_helpers", "_manager", "_inner"];

pub(super) fn check(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| file.path.ends_with(".rs")).flat_map(one).collect()
}

fn one(file: &File) -> Vec<String> {
    let mut breaches = Vec::new();
    let opening = file.text.lines().next().unwrap_or_default();
    if !opening.starts_with("//!") {
        breaches.push(format!(
            "{}:1: opens without `//!`: what it owns, what it must never do, where to go next",
            file.path
        ));
    }
    for part in file.path.trim_end_matches(".rs").split('/') {
        if is_refused(part) {
            breaches.push(format!("{}: `{part}` says nothing; name the noun that the file owns", file.path));
        }
    }
    for (number, line) in code_only(&file.text).lines().enumerate() {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        if words.next() == Some("mod")
            && let Some(name) = words.next()
            && line.contains('{')
            && is_refused(name)
        {
            breaches.push(format!("{}:{}: module `{name}` says nothing", file.path, number + 1));
        }
    }
    breaches
}

fn is_refused(name: &str) -> bool {
    REFUSED.contains(&name) || REFUSED_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nameless_files_and_modules_and_missing_openings_are_found() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        assert_eq!(check(&[file("net/src/utils.rs", "//! x\n")]).len(), 1);
        assert_eq!(check(&[file("net/src/cache_impl/a.rs", "//! x\n")]).len(), 1);
        assert_eq!(check(&[file("net/src/a.rs", "//! x\npub mod inner {\n}\n")]).len(), 1);
        assert_eq!(check(&[file("net/src/a.rs", "use x;\n")]).len(), 1);
        assert!(check(&[file("net/src/main.rs", "//! x\nmod tests {}\n")]).is_empty());
    }
}
