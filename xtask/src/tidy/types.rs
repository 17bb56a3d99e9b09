//! One name, one type in a crate: a second type of the same name asks its reader which one is meant.
//!
//! What stands in tests does not count, nor what belongs to a trait or an `impl`, nor programs beside a library.

use std::collections::{BTreeMap, BTreeSet};

use crate::source_text::{code_only, without_tests};
use crate::tree::File;

pub(super) fn check(files: &[File]) -> Vec<String> {
    let crates: BTreeSet<&str> = files.iter().map(File::top).collect();
    crates.into_iter().flat_map(|of| twins(of, files)).collect()
}

fn twins(of: &str, files: &[File]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let source = format!("{of}/src/");
    for file in files.iter().filter(|file| file.path.starts_with(&source) && file.path.ends_with(".rs")) {
        if file.is_test() || file.path.contains("/src/bin/") {
            continue;
        }
        let code = code_only(&file.text);
        for (number, line) in without_tests(&code).lines().enumerate() {
            if let Some(name) = declared(line) {
                places.entry(name.to_owned()).or_default().push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    let twins = places.into_iter().filter(|(_, places)| places.len() > 1);
    twins.map(|(name, places)| format!("`{name}` is several types: {}", places.join(", "))).collect()
}

fn declared(line: &str) -> Option<&str> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    if !matches!(words.next()?, "struct" | "enum" | "union" | "trait" | "type") {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    Some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_types_of_one_name_in_a_crate_are_a_breach() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file(
                "net/src/a.rs",
                "pub(crate) struct Place<'a> {\n}\nimpl X for Y {\n    type Place = u8;\n}\n",
            ),
            file("net/src/b.rs", "enum Place {\n}\n#[cfg(test)]\nmod tests {\nstruct Other;\n}\n"),
            file("net/src/c.rs", "struct Other(u8);\n"),
            file("net/src/bin/d.rs", "struct Other(u8);\n"),
            file("wire/src/a.rs", "struct Other;\n"),
        ];
        assert_eq!(check(&files), ["`Place` is several types: net/src/a.rs:1, net/src/b.rs:1"]);
    }
}
