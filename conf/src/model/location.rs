//! Locations: how a request finds one, and what is set there.
//!
//! Every location has all its settings, inherited ones too, so that a request never looks upwards.
//! Next: `millstream-server`'s `route/location`, which finds one.

use crate::features::Settings;
use crate::features::location::{LocationId, LocationMatch};
use crate::source::Span;
use std::sync::Arc;

/// A location with everything that holds in it.
#[derive(Debug)]
pub struct Location {
    /// How it is matched.
    pub matches: LocationMatch,
    /// Where it was written.
    pub span: Span,
    /// The locations nested in it.
    pub nested: LocationTree,
    /// What is set.
    pub settings: Settings,
    /// Its other faces: of a location its `if` blocks, of a block the location around it and the other blocks, and of each those
    /// with the zones that a request may choose.
    pub faces: Vec<LocationId>,
    /// Where a request chooses the zone of the cache: the zones by name, each with the face in which it is fixed.
    pub zones: Arc<[(Box<str>, LocationId)]>,
    /// What holds in its place for some methods.
    pub except: Option<LimitExcept>,
}

/// A `limit_except`.
#[derive(Debug, Clone)]
pub struct LimitExcept {
    /// The methods that it is not for.
    pub methods: Box<[Box<str>]>,
    /// What holds for all others.
    pub location: LocationId,
}

/// The locations of one level. `exact` and `prefixes` are sorted by path, `regexes` in file order.
#[derive(Debug, Clone, Default)]
pub struct LocationTree {
    /// `=` locations.
    pub exact: Vec<(String, LocationId)>,
    /// Prefix locations; the longest that fits wins.
    pub prefixes: Vec<(String, LocationId)>,
    /// Expressions; the first that fits wins.
    pub regexes: Vec<LocationId>,
    /// `@name`s (top level of a server only).
    pub named: Vec<(String, LocationId)>,
}
