//! Host names as keys, wildcards included: `example.com`, `*.example.com`, `.example.com`, `www.example.*`.
//!
//! Names are in lower case. The exact name is found first, then the longest that begins with an asterisk, then the longest that ends
//! with one, as in nginx. Next: `declared/made/map` and `features/valid_referers`, which fill such tables.

use std::collections::HashMap;

type Keys<V> = HashMap<Box<[u8]>, V, foldhash::fast::RandomState>;

#[derive(Debug, Clone)]
pub struct HostNames<V> {
    exact: Keys<V>,
    /// `*.example.com` as `.example.com`.
    leading: Keys<V>,
    /// `example.*` as `example.`.
    trailing: Keys<V>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    Invalid,
    Conflicting,
}

impl Unfit {
    /// nginx's words for it, and what to do.
    pub fn sentence(self, name: &str) -> (String, &'static str) {
        match self {
            Unfit::Invalid => (
                format!("invalid hostname or wildcard \"{name}\""),
                "an asterisk replaces whole labels at the beginning or the end, as in *.example.com",
            ),
            Unfit::Conflicting => (
                format!("conflicting parameter \"{name}\""),
                "the same key is above it (\".name\" is \"name\" and \"*.name\"); keep one of them",
            ),
        }
    }
}

impl<V> Default for HostNames<V> {
    fn default() -> Self {
        HostNames { exact: Keys::default(), leading: Keys::default(), trailing: Keys::default() }
    }
}

impl<V: Clone> HostNames<V> {
    pub fn add_exact(&mut self, text: &str, value: V) -> Result<(), Unfit> {
        insert(&mut self.exact, text.to_ascii_lowercase(), value)
    }

    pub fn add(&mut self, text: &str, value: V) -> Result<(), Unfit> {
        let asterisks = text.matches('*').count();
        if asterisks > 1 || text.contains("..") || text.contains('\0') {
            return Err(Unfit::Invalid);
        }
        let lower = text.to_ascii_lowercase();
        if let Some(name) = lower.strip_prefix('.').filter(|name| !name.is_empty()) {
            self.add_exact(name, value.clone())?;
            return insert(&mut self.leading, format!(".{name}"), value);
        }
        if let Some(name) = lower.strip_prefix("*.").filter(|name| !name.is_empty()) {
            return insert(&mut self.leading, format!(".{name}"), value);
        }
        if let Some(name) = lower.strip_suffix(".*").filter(|name| !name.is_empty()) {
            return insert(&mut self.trailing, format!("{name}."), value);
        }
        if asterisks > 0 { Err(Unfit::Invalid) } else { self.add_exact(text, value) }
    }

    /// The name must be in lower case.
    pub fn find(&self, lower: &[u8]) -> Option<&V> {
        if let Some(value) = self.exact.get(lower) {
            return Some(value);
        }
        if self.leading.is_empty() && self.trailing.is_empty() {
            return None;
        }
        let dots = || lower.iter().enumerate().filter(|&(_, &byte)| byte == b'.').map(|(at, _)| at);
        let leading = dots().find_map(|at| self.leading.get(&lower[at..]));
        let trailing = || dots().filter_map(|at| self.trailing.get(&lower[..=at])).next_back();
        leading.or_else(trailing)
    }

    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.leading.is_empty() && self.trailing.is_empty()
    }
}

fn insert<V>(keys: &mut Keys<V>, key: String, value: V) -> Result<(), Unfit> {
    let before = keys.insert(key.into_bytes().into(), value);
    if before.is_none() { Ok(()) } else { Err(Unfit::Conflicting) }
}
