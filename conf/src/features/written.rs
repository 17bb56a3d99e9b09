//! Which directives of a level decide about the cache, so that `explain` can name them.
//!
//! Before: `mod`, whose levels keep them.

use super::Level;
use super::pass::Family;
use crate::source::Span;

/// A directive that decides about the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub span: Span,
    /// Whose cache; nothing where it decides about any.
    pub family: Option<Family>,
}

impl Level {
    /// As with settings: a level that writes a directive has none of that name of the level above.
    pub(super) fn inherit_written(&mut self, above: &Level) {
        let is_left_open = |name: &str| !self.written.iter().any(|own| own.name == name);
        let from_above: Vec<_> =
            above.written.iter().filter(|outer| is_left_open(outer.name)).copied().collect();
        self.written.splice(0..0, from_above);
    }

    /// The directives that decide about the cache of a family.
    pub fn deciding(&self, family: Family) -> impl Iterator<Item = &Written> {
        self.written.iter().filter(move |written| written.family.is_none_or(|own| own == family))
    }
}
