//! A regular expression of the configuration, compiled at load; captures are numbered and, where named, named.
//!
//! It is never compiled during a request. Next: `regular_expression`, which makes these.

/// A compiled expression with its source.
#[derive(Debug, Clone)]
pub struct Regex {
    /// The expression as written, without the leading `~` or `~*`.
    pub source: String,
    /// Whether case is ignored (`~*`, and always in `server_name`).
    pub ignore_case: bool,
    /// The compiled form. Backtracking is bounded by the library's default limit (1,000,000 steps).
    pub compiled: fancy_regex::Regex,
    /// Named captures: name and group number, in order of number.
    pub names: Vec<(Box<str>, usize)>,
}
