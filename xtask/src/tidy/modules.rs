//! The floors inside a crate: the order of the `mod` lines is the floor order, lowest first, and an import runs down.
//!
//! A path `crate::a::b` or `super::b` in module M is compared with M from the left: where they part, the path's module
//! must have been declared before M's. What is not a module (an item of a parent) cannot be ordered and passes.

use std::collections::HashMap;

use crate::source_text::{code_only, without_tests};
use crate::tree::File;

/// Crates whose modules are ordered.
const CRATES: &[&str] = &[
    "conf",
    "wire",
    "telemetry",
    "net",
    "cache",
    "upstream",
    "traces",
    "acme",
    "shadow",
    "cluster",
    "origin",
    "server",
    "admin",
    "load",
    "app",
    "xtask",
    "bench",
    "tests",
];

/// Inside its crate: `["h1", "head"]`.
type Path = Vec<String>;

/// Position of each declared module among its siblings.
type Order = HashMap<Path, usize>;

pub(super) fn check(files: &[File]) -> Vec<String> {
    let mut breaches = Vec::new();
    for folder in CRATES {
        let sources: Vec<(Path, &File, String)> = files
            .iter()
            .filter(|file| file.path.starts_with(&format!("{folder}/src/")))
            .filter_map(|file| Some((module_of(&file.path)?, file, code_only(&file.text))))
            .collect();
        let order = declared(&sources);
        for (module, file, code) in &sources {
            breaches.extend(imports(module, without_tests(code)).into_iter().filter_map(|(line, target)| {
                let (own, other) = runs_up(module, &target, &order)?;
                Some(format!(
                    "{}:{line}: `{own}` uses `{other}`, which is declared after it; the order of the `mod` lines is the \
                     floor order",
                    file.path
                ))
            }));
        }
    }
    breaches.dedup();
    breaches
}

/// `None` for tests, binaries and what is not source.
fn module_of(path: &str) -> Option<Path> {
    let (_, inside) = path.split_once("/src/")?;
    let mut parts: Path = inside.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if parts.iter().any(|part| part == "tests" || part == "testing") || parts[0] == "bin" {
        return None;
    }
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] || parts == ["main"] {
        parts.pop();
    }
    Some(parts)
}

fn declared(sources: &[(Path, &File, String)]) -> Order {
    let mut order = Order::new();
    for (module, _, code) in sources {
        let mut place = 0;
        for line in without_tests(code).lines() {
            let line = line.trim();
            let words =
                line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
            let words = words.strip_prefix("pub(super) ").unwrap_or(words);
            if let Some(name) = words.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
                place += 1;
                let mut path = module.clone();
                path.push(name.trim().to_owned());
                order.insert(path, place);
            }
        }
    }
    order
}

fn imports(module: &Path, code: &str) -> Vec<(usize, Path)> {
    let mut found = Vec::new();
    for (start, prefix) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let before = code[..start].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
            continue;
        }
        let (mut base, mut rest) = match prefix {
            "crate::" => (Path::new(), &code[start + prefix.len()..]),
            _ => (module[..module.len().saturating_sub(1)].to_vec(), &code[start + prefix.len()..]),
        };
        while let Some(further) = rest.strip_prefix("super::") {
            base.pop();
            rest = further;
        }
        let line = 1 + code[..start].matches('\n').count();
        let mut targets = Vec::new();
        expand(rest, &base, &mut targets);
        found.extend(targets.into_iter().map(|target| (line, target)));
    }
    found
}

/// Expands a use tree (`a::{b, c::{d, e}}`) under a prefix; returns the bytes it read.
fn expand(text: &str, base: &Path, targets: &mut Vec<Path>) -> usize {
    let mut path = base.clone();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        if text[at..].starts_with('{') {
            at += 1;
            while at < text.len() && !text[at..].starts_with('}') {
                let read = expand(&text[at..], &path, targets);
                at += read;
                at += text[at..].len() - text[at..].trim_start_matches([',', ' ', '\n']).len();
                if read == 0 && !text[at..].starts_with('}') {
                    return at; // Not a use tree after all.
                }
            }
            return at + 1;
        }
        let word: String = text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        at += word.len();
        if !word.is_empty() && word != "self" {
            path.push(word);
        }
        match text[at..].strip_prefix("::") {
            Some(_) => at += 2,
            None => break,
        }
    }
    if path.len() > base.len() {
        targets.push(path);
    }
    // An alias is not a path.
    let rest = &text[at..];
    match rest.trim_start().strip_prefix("as ") {
        Some(alias) => {
            let name = alias.chars().take_while(|c| c.is_alphanumeric() || *c == '_').count();
            at + (rest.len() - alias.len()) + name
        }
        None => at,
    }
}

/// The two siblings, if the target's was declared after the module's own.
fn runs_up(module: &Path, target: &Path, order: &Order) -> Option<(String, String)> {
    let parting = module.iter().zip(target).position(|(own, other)| own != other)?;
    let (own, other) = (&module[..=parting], &target[..=parting]);
    let (own_place, other_place) = (order.get(own)?, order.get(other)?);
    (other_place > own_place).then(|| (own.join("::"), other.join("::")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(sources: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> =
            sources.iter().map(|(path, text)| File { path: (*path).into(), text: (*text).into() }).collect();
        check(&files)
    }

    #[test]
    fn an_import_of_a_module_declared_later_is_a_breach() {
        let lib = ("wire/src/lib.rs", "pub mod date;\npub mod h1;\nmod range;\n");
        assert!(breaches(&[lib, ("wire/src/h1/mod.rs", "use crate::date;\nmod a;\nmod b;\n")]).is_empty());
        let up = breaches(&[lib, ("wire/src/date.rs", "//! x\n\nfn f() { crate::range::g() }\n")]);
        assert_eq!(up.len(), 1, "{up:?}");
        assert!(up[0].starts_with("wire/src/date.rs:3: `date` uses `range`"), "{up:?}");
    }

    #[test]
    fn groups_siblings_and_super_are_followed() {
        let lib = ("net/src/lib.rs", "mod a;\nmod b;\nmod c;\n");
        let found = breaches(&[lib, ("net/src/b.rs", "use crate::{a::X, c::{Y, Z as W}};\n")]);
        assert_eq!(found.len(), 1, "Y and Z are one breach: {found:?}");
        let folder = ("net/src/b/mod.rs", "mod one;\nmod two;\nuse two::T;\n");
        assert_eq!(breaches(&[lib, folder, ("net/src/b/one.rs", "use super::two::T;\n")]).len(), 1);
        assert!(
            breaches(&[lib, folder, ("net/src/b/two.rs", "use super::one::T; use super::Item;\n")])
                .is_empty()
        );
    }

    #[test]
    fn tests_may_use_everything() {
        let lib = ("net/src/lib.rs", "mod a;\nmod b;\n");
        let file = ("net/src/a.rs", "#[cfg(test)]\nmod tests {\n use crate::b::X;\n}\n");
        assert!(breaches(&[lib, file, ("net/src/a/tests.rs", "use crate::b::X;\n")]).is_empty());
    }
}
