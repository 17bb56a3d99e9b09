//! Locations: how a request finds one, and what is set there.
//!
//! Every location has all its settings, inherited ones too, so that a request never looks upwards.
//! Next: `millstream-server`'s `route/location`, which finds one.

use crate::features::Settings;
use crate::features::location::{LocationId, LocationMatch};
use crate::source::Span;
use std::sync::Arc;

#[derive(Debug)]
pub struct Location {
    pub matches: LocationMatch,
    pub span: Span,
    pub nested: LocationTree,
    pub settings: Settings,
    /// Its other faces: of a location its `if` blocks; of a block the enclosing location and the other
    /// blocks; of each, those with the zones that a request may choose.
    pub faces: Vec<LocationId>,
    /// If a request chooses the zone of the cache: zones by name, each with the face in which it is fixed.
    pub zones: Arc<[(Box<str>, LocationId)]>,
    /// What applies instead for some methods.
    pub except: Option<LimitExcept>,
}

#[derive(Debug, Clone)]
pub struct LimitExcept {
    pub methods: Box<[Box<str>]>,
    pub location: LocationId,
}

/// `exact` and `prefixes` are sorted by path, `regexes` in file order.
#[derive(Debug, Clone, Default)]
pub struct LocationTree {
    pub exact: Vec<(String, LocationId)>,
    /// The longest that fits wins.
    pub prefixes: Vec<(String, LocationId)>,
    /// The first that fits wins.
    pub regexes: Vec<LocationId>,
    /// `@name`s (top level of a server only).
    pub named: Vec<(String, LocationId)>,
}
