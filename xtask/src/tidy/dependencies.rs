//! Every dependency of a crate is named by its source, and one that only tests name is a development dependency.
//!
//! A name is looked for as `name::`, `name!` or `use name`. A dependency that is there for what it turns on in another crate passes
//! with the comment `# For its features: …` on the line above it.

use super::crates;
use crate::source_text::{code_only, without_tests};
use crate::tree::File;

/// Packages whose library has a name of its own.
const LIBRARIES: &[(&str, &str)] = &[("md-5", "md5"), ("rustls-webpki", "webpki")];

pub(super) fn check(files: &[File]) -> Vec<String> {
    let manifests = files.iter().filter(|file| file.path == format!("{}/Cargo.toml", file.top()));
    manifests.flat_map(|manifest| unused(manifest, files)).collect()
}

fn unused(manifest: &File, files: &[File]) -> Vec<String> {
    let folder = manifest.top();
    let is_own = |file: &&File| file.top() == folder && file.path.ends_with(".rs");
    let all: Vec<(bool, String)> =
        (files.iter().filter(is_own)).map(|file| (is_product(file), code_only(&file.text))).collect();
    // A crate of tests or checks has no product beside them.
    let has_product = crates::floor(folder).is_some();
    let mut breaches = Vec::new();
    let (mut section, mut above) = ("", "");
    for line in manifest.text.lines().map(str::trim) {
        let is_excused = above.starts_with("# For its features: ");
        above = line;
        if line.starts_with('[') {
            section = line;
        }
        let is_name = line.starts_with(|first: char| first.is_ascii_alphabetic());
        if !section.ends_with("dependencies]") || !is_name || is_excused {
            continue;
        }
        let package = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let library = (LIBRARIES.iter().find(|(known, _)| *known == package))
            .map_or_else(|| package.replace('-', "_"), |(_, library)| (*library).to_owned());
        if !all.iter().any(|(_, code)| names(code, &library)) {
            breaches.push(format!("{folder}/Cargo.toml: no source names `{package}`; take it out"));
        } else if has_product
            && section == "[dependencies]"
            && !all.iter().any(|(is_product, code)| *is_product && names(without_tests(code), &library))
        {
            breaches.push(format!(
                "{folder}/Cargo.toml: only tests name `{package}`; move it to [dev-dependencies]"
            ));
        }
    }
    breaches
}

fn is_product(file: &File) -> bool {
    !file.is_test() && file.path.contains("/src/")
}

fn names(code: &str, library: &str) -> bool {
    let is_word = |next: char| next.is_alphanumeric() || next == '_';
    code.match_indices(library).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + library.len()..]);
        let is_path = after.starts_with("::") || after.starts_with('!');
        let is_used = before.ends_with("use ") && !after.starts_with(is_word);
        !before.ends_with(is_word) && (is_path || is_used)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_dependency_that_no_source_names_or_only_tests_name_is_a_breach() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nused.workspace = true\nmd-5.workspace = true\n\
                        in-comment.workspace = true\nin-tests = \"1\"\nmacros = { version = \"1\" }\n\
                        # For its features: a reason.\nsilent.workspace = true\n\
                        [dev-dependencies]\njudge.workspace = true\nidle.workspace = true\n";
        let source = "use used as other;\nuse md5::Md5;\n// in_comment::f\nfn f() { macros!() }\nfn not_idle::g() {}\n\
                      #[cfg(test)]\nmod tests {\n    use in_tests::g;\n}\n";
        let files = [
            file("acme/Cargo.toml", manifest),
            file("acme/src/lib.rs", source),
            file("acme/tests/t.rs", "fn t() { judge::judge() }\n"),
            file("b/src/lib.rs", "use idle::i;\nuse in_comment::i;\n"),
        ];
        let breaches = check(&files);
        assert_eq!(breaches.len(), 3, "{breaches:?}");
        assert!(breaches[0].contains("no source names `in-comment`"));
        assert!(breaches[1].contains("only tests name `in-tests`"));
        assert!(breaches[2].contains("no source names `idle`"));
    }
}
