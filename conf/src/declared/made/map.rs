//! `map`: a value by what a text is.
//!
//! Exact keys and wildcard names are hashed, expressions are tried in file order. Next: `features/map`, which reads them;
//! `millstream-server`'s `variables/made/map`, which looks up.

use std::collections::HashMap;

use crate::regular_expression::Regex;
use crate::template::Template;

/// A variable that has its value by what a text is.
#[derive(Debug)]
pub struct Map {
    /// The text.
    pub source: Template,
    /// Whether a dot at its end does not count (`hostnames`).
    pub hostnames: bool,
    /// Keys in lower case.
    pub exact: Keys,
    /// Names such as `*.example.com`, without the asterisk and in lower case.
    pub leading: Keys,
    /// Names such as `example.*`, without the asterisk and in lower case.
    pub trailing: Keys,
    /// Expressions in file order.
    pub expressions: Vec<(Regex, u32)>,
    /// What holds for all others: without one, nothing.
    pub default: Option<u32>,
    /// The values, each once.
    pub values: Vec<Template>,
}

/// Keys with the indices of their values.
pub type Keys = HashMap<Box<[u8]>, u32, foldhash::fast::RandomState>;

impl Map {
    /// The value of a text in lower case, as far as no expression is needed: by an exact key, else by the longest name that
    /// begins with an asterisk, else by the longest that ends with one.
    pub fn find(&self, lower: &[u8]) -> Option<u32> {
        if let Some(&value) = self.exact.get(lower) {
            return Some(value);
        }
        if self.leading.is_empty() && self.trailing.is_empty() {
            return None;
        }
        let dots = || lower.iter().enumerate().filter(|&(_, &byte)| byte == b'.').map(|(at, _)| at);
        let leading = dots().find_map(|at| self.leading.get(&lower[at..]));
        let trailing = || dots().filter_map(|at| self.trailing.get(&lower[..=at])).next_back();
        leading.or_else(trailing).copied()
    }

    pub(super) fn source(&self) -> Option<&Template> {
        Some(&self.source)
    }

    pub(super) fn values(&self) -> &[Template] {
        &self.values
    }
}
