//! The floors between crates: a crate depends only on crates of lower floors (ARCHITECTURE, the house).

use crate::tree::File;

/// Lowest floor first. Crates of one floor do not depend on each other.
const FLOORS: &[&[&str]] = &[
    &["conf", "wire"],
    &["telemetry"],
    &["net"],
    &["cache", "upstream", "traces", "acme", "shadow", "cluster", "origin"],
    &["server", "load"],
    &["admin"],
    &["app"],
];

/// `None` outside of the product.
pub(super) fn floor(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&folder))
}

pub(super) fn check(files: &[File]) -> Vec<String> {
    let manifests = files.iter().filter(|file| file.path == format!("{}/Cargo.toml", file.top()));
    manifests.flat_map(|file| manifest(file.top(), &file.text)).collect()
}

fn manifest(folder: &str, text: &str) -> Vec<String> {
    let Some(own) = floor(folder) else { return Vec::new() };
    let mut section = "";
    let mut breaches = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        // What a crate's tests use is not what it is built on.
        if !section.ends_with("dependencies]") || section.contains("dev-dependencies") {
            continue;
        }
        let Some(name) = line.strip_prefix("millstream-") else { continue };
        let name = name.split(|byte: char| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
        match floor(name) {
            Some(other) if other < own => {}
            Some(other) => breaches.push(format!(
                "{folder}/Cargo.toml: {folder} (floor {}) depends on {name} (floor {}); only lower floors may be used",
                own + 1,
                other + 1
            )),
            None => breaches.push(format!("{folder}/Cargo.toml: {name} is no crate of the house")),
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_on_the_same_floor_or_above_is_a_breach() {
        let text = "[dependencies]\nmillstream-wire.workspace = true\nmillstream-upstream.workspace = true\n\
                    [dev-dependencies]\nmillstream-app = { path = \"../app\" }\n";
        let breaches = manifest("cache", text);
        assert_eq!(breaches.len(), 1, "{breaches:?}");
        assert!(breaches[0].contains("upstream"));
    }
}
