//! What the binary is made of: every crate in it, with its licence, as a text for people and as CycloneDX for programs.
//!
//! It goes by what cargo says, so by the lock file: what is only built or tested with is left out. Next: `package`, which packs both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::tree;

const LICENCE_FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    name: String,
    version: String,
    /// An SPDX expression.
    licence: String,
    texts: BTreeMap<String, String>,
}

/// Every foreign crate in the binary, by name and version.
pub(crate) fn parts() -> Result<Vec<Part>, String> {
    let told = cargo("metadata --locked --format-version 1")?;
    let metadata: Value =
        serde_json::from_slice(&told).map_err(|error| format!("cargo metadata: {error}"))?;
    let inside = inside()?;
    let is_inside = |package: &&Value| {
        let name = format!("{} v{}", text(&package["name"]), text(&package["version"]));
        inside.contains(&name) && !package["source"].is_null()
    };
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut parts = packages.filter(is_inside).map(part).collect::<Result<Vec<_>, _>>()?;
    parts.sort();
    Ok(parts)
}

fn cargo(line: &str) -> Result<Vec<u8>, String> {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(line.split_whitespace()).current_dir(tree::root()).output();
    let output = output.map_err(|error| format!("cargo {line}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("cargo {line}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Name and version of all code in the binary. `cargo metadata` would add the features that only tests use.
fn inside() -> Result<BTreeSet<String>, String> {
    let told = cargo(
        "tree --locked -p millstream -e normal --target x86_64-unknown-linux-gnu --prefix none --format {p}",
    )?;
    let lines = String::from_utf8_lossy(&told);
    let words = lines.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
    Ok(words.filter(|line| !line.is_empty()).collect())
}

fn part(package: &Value) -> Result<Part, String> {
    let name = text(&package["name"]).to_owned();
    let folder = Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new("/"));
    let texts = texts(folder);
    let licence = match package["license"].as_str() {
        Some(licence) => licence.replace('/', " OR "),
        None if !texts.is_empty() => "LicenseRef-see-text".to_owned(),
        None => return Err(format!("{name} says no licence")),
    };
    Ok(Part { name, version: text(&package["version"]).to_owned(), licence, texts })
}

fn texts(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let of_licences = named
        .filter(|(name, _)| LICENCE_FILES.iter().any(|start| name.to_ascii_uppercase().starts_with(start)));
    of_licences.filter_map(|(name, path)| Some((name, fs::read_to_string(path).ok()?))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// For people: a list, then each licence's text once, with the crates it covers.
pub(crate) fn notices(parts: &[Part]) -> String {
    let mut notices = "Millstream contains code of these crates, each under its own licence:\n\n".to_owned();
    let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Part { name, version, licence, texts: own } in parts {
        notices += &format!("{name} {version}: {licence}\n");
        for (file, text) in own {
            texts.entry(text.trim()).or_default().push(format!("{name} {version} ({file})"));
        }
    }
    for (text, of) in texts {
        notices += &format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), of.join(", "));
    }
    notices
}

/// For programs: CycloneDX 1.5.
pub(crate) fn cyclonedx(parts: &[Part], version: &str) -> String {
    let component = |part: &Part| {
        let Part { name, version, licence, .. } = part;
        let url = format!("pkg:cargo/{name}@{version}");
        json!({
            "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url,
            "licenses": [{ "expression": licence }],
        })
    };
    let bill = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": "millstream", "name": "millstream", "version": version,
        } },
        "components": parts.iter().map(component).collect::<Vec<_>>(),
    });
    format!("{bill:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_in_the_binary_is_there_once_with_its_licence_and_no_other() {
        let parts = parts().expect("cargo says");
        let has = |name: &str| parts.iter().filter(|part| part.name == name).count();
        assert_eq!((has("tokio"), has("rustls"), has("mimalloc")), (1, 1, 1));
        // Of tests and of building alone, and our own.
        assert_eq!((has("tonic"), has("proptest"), has("cmake"), has("millstream-wire")), (0, 0, 0, 0));
        let notices = notices(&parts);
        assert!(notices.contains("Apache License") && notices.contains("tokio "));
        let bill: Value = serde_json::from_str(&cyclonedx(&parts, "1.2.3")).expect("JSON");
        let components = bill["components"].as_array().expect("a list");
        assert_eq!(components.len(), parts.len());
        let references: BTreeSet<&str> = components.iter().map(|one| text(&one["bom-ref"])).collect();
        assert_eq!(references.len(), parts.len());
    }
}
