//! `map`: a value by what a text is.
//!
//! Exact keys and wildcard names are hashed, expressions are tried in file order. Next: `features/map`, which reads them;
//! `millstream-server`'s `variables/made/map`, which looks up.

use crate::host_names::HostNames;
use crate::regular_expression::Regex;
use crate::template::Template;

/// A variable that has its value by what a text is.
#[derive(Debug)]
pub struct Map {
    /// The text.
    pub source: Template,
    /// Whether a dot at its end does not count (`hostnames`).
    pub hostnames: bool,
    /// Keys with the indices of their values; wildcards among them with `hostnames` alone.
    pub keys: HostNames<u32>,
    /// Expressions in file order.
    pub expressions: Vec<(Regex, u32)>,
    /// What holds for all others: without one, nothing.
    pub default: Option<u32>,
    /// The values, each once.
    pub values: Vec<Template>,
}

impl Map {
    pub(super) fn source(&self) -> Option<&Template> {
        Some(&self.source)
    }

    pub(super) fn values(&self) -> &[Template] {
        &self.values
    }
}
