//! Which directives of a level decide about the cache, so that `explain` can name them.
//!
//! Before: `mod`, whose levels keep them.

use super::Level;
use super::pass::Family;
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub name: &'static str,
    pub span: Span,
    /// `None` if it decides about any cache.
    pub family: Option<Family>,
}

impl Level {
    /// As with settings, a level that writes a directive inherits none of that name.
    pub(super) fn inherit_written(&mut self, above: &Level) {
        let is_left_open = |name: &str| !self.written.iter().any(|own| own.name == name);
        let from_above: Vec<_> =
            above.written.iter().filter(|outer| is_left_open(outer.name)).copied().collect();
        self.written.splice(0..0, from_above);
    }

    pub fn deciding(&self, family: Family) -> impl Iterator<Item = &Written> {
        self.written.iter().filter(move |written| written.family.is_none_or(|own| own == family))
    }
}
