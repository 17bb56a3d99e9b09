//! The manuals that come from the code's own tables and types: written by `cargo xtask docs`, compared by `tidy`.

use std::fs;

use crate::tree;

type Page = (&'static str, fn() -> String);

const PAGES: &[Page] = &[
    ("docs/directives.md", millstream_conf::manual::directives_markdown),
    ("docs/variables.md", millstream_conf::manual::variables_markdown),
    ("docs/metrics.md", millstream_telemetry::manual::metrics_markdown),
    ("docs/bench.schema.json", millstream_load::report::json::schema),
    ("docs/openapi.json", millstream_admin::endpoints::openapi),
];

pub(crate) fn write() -> Result<(), String> {
    for (path, text) in PAGES {
        let file = tree::root().join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("{path}: {error}"))?;
        }
        fs::write(file, text()).map_err(|error| format!("{path}: {error}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}

pub(crate) fn check() -> Vec<String> {
    PAGES
        .iter()
        .filter(|(path, text)| fs::read_to_string(tree::root().join(path)).ok().as_deref() != Some(&text()))
        .map(|(path, _)| format!("{path}: not what the code gives; run cargo xtask docs"))
        .collect()
}
