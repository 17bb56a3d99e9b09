//! `map`: a value by what a text is.
//!
//! Exact keys and wildcard names are hashed, expressions are tried in file order. Next: `features/map`, which reads them;
//! `millstream-server`'s `variables/made/map`, which looks up.

use crate::host_names::HostNames;
use crate::regular_expression::Regex;
use crate::template::Template;

#[derive(Debug)]
pub struct Map {
    pub source: Template,
    /// `hostnames`: a trailing dot is ignored.
    pub hostnames: bool,
    /// Keys with the indices of their values; wildcards only with `hostnames`.
    pub keys: HostNames<u32>,
    /// In file order.
    pub expressions: Vec<(Regex, u32)>,
    /// `None` gives the empty value.
    pub default: Option<u32>,
    /// Each once.
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
