//! Configurations around a few directives, and what is said about them.

use millstream_conf::diagnostics::Severity;
use millstream_conf::model::{Configuration, Settings};
use millstream_conf::{Loaded, load_text};

pub(crate) fn in_http(directives: &str) -> String {
    format!("events {{ }} http {{ access_log off; {directives} }}")
}

pub(crate) fn in_server(directives: &str) -> String {
    in_http(&format!("server {{ listen 8080; {directives} }}"))
}

/// Beside an upstream `api`.
pub(crate) fn in_location(directives: &str) -> String {
    in_http(&format!(
        "upstream api {{ server 127.0.0.1:8000; }} server {{ listen 8080; location / {{ {directives} }} }}"
    ))
}

pub(crate) fn text(text: &str) -> Loaded {
    load_text("test.conf", text, "/prefix".as_ref())
}

/// Message and help of each.
pub(crate) fn messages(loaded: &Loaded, severity: Severity) -> Vec<String> {
    let found = loaded.diagnostics.sorted().into_iter().filter(|finding| finding.severity == severity);
    found
        .map(|finding| format!("{} | {}", finding.message, finding.help.as_deref().unwrap_or_default()))
        .collect()
}

/// Exactly one of this severity, with `part` in its message or help; each has a help.
fn one(configuration: &str, severity: Severity, part: &str) {
    let loaded = text(configuration);
    let found = messages(&loaded, severity);
    assert_eq!(found.len(), 1, "{configuration}\n{found:#?}");
    assert!(found[0].contains(part), "{configuration}\nwanted {part:?}\ngot {found:#?}");
    assert!(!found[0].ends_with("| "), "no help: {found:#?}");
    assert_eq!(loaded.configuration.is_none(), severity == Severity::Error, "{configuration}");
}

pub(crate) fn one_error(configuration: &str, part: &str) {
    one(configuration, Severity::Error, part);
}

pub(crate) fn one_warning(configuration: &str, part: &str) {
    one(configuration, Severity::Warning, part);
}

pub(crate) fn no_error(configuration: &str) {
    model(configuration);
}

pub(crate) fn model(configuration: &str) -> Configuration {
    let loaded = text(configuration);
    let errors = messages(&loaded, Severity::Error);
    loaded.configuration.unwrap_or_else(|| panic!("{configuration}\n{errors:#?}"))
}

/// Of a prefix location of the first server.
pub(crate) fn settings<'a>(configuration: &'a Configuration, path: &str) -> &'a Settings {
    let prefixes = &configuration.http.servers[0].locations.prefixes;
    let (_, id) = prefixes.iter().find(|(known, _)| known == path).expect("the location is there");
    &configuration.http.location(*id).settings
}
