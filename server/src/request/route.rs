//! Where a request was led: server, location, path and query in force, and what was captured and set on the way.

use crate::remembered::Remembered;
use crate::shows::WayShows;
use crate::slots::{Captures, Slots};
use millstream_conf::model::{LocationId, ServerId};
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Debug, Clone, Default)]
pub enum Arguments {
    #[default]
    Original,
    Replaced(Vec<u8>),
}

#[derive(Clone)]
pub struct Route {
    pub server: ServerId,
    pub location: LocationId,
    /// `$uri`: the path, decoded and normalized.
    pub uri: Vec<u8>,
    pub arguments: Arguments,
    /// `$host`, lower case.
    pub host: Vec<u8>,
    /// In a cell, as an expression of a `map` may match during an evaluation.
    pub captures: RefCell<Captures>,
    pub slots: Rc<Slots>,
    /// Variables that keep their first value: those made of others, and a few built-in ones.
    pub made: Remembered,
    pub shows: WayShows,
    /// Whether path or query differ from the original.
    pub is_rewritten: bool,
    /// Whether `rewrite … break` took the path out of the location that still handles it.
    pub is_outside: bool,
    /// Whether `try_files` found the URI below an `alias` that is a whole path.
    pub extends_alias: bool,
}

impl Route {
    pub(super) fn new(slots: usize) -> Route {
        Route {
            server: ServerId(0),
            location: LocationId(0),
            uri: Vec::new(),
            arguments: Arguments::Original,
            host: Vec::new(),
            captures: RefCell::default(),
            slots: Rc::new(Slots::with(slots)),
            made: Remembered::default(),
            shows: WayShows::default(),
            is_rewritten: false,
            is_outside: false,
            extends_alias: false,
        }
    }

    /// A copy that no longer shares its variables.
    pub fn apart(&self) -> Route {
        Route { slots: Rc::new(Slots::clone(&self.slots)), ..self.clone() }
    }

    /// Server and location stay until others are found.
    pub(super) fn clear(&mut self, slots: usize) {
        self.uri.clear();
        self.arguments = Arguments::Original;
        self.host.clear();
        self.captures.get_mut().clear();
        match Rc::get_mut(&mut self.slots) {
            Some(known) => known.reset(slots),
            None => self.slots = Rc::new(Slots::with(slots)),
        }
        self.made.clear();
        self.shows = WayShows::default();
        (self.is_rewritten, self.is_outside, self.extends_alias) = (false, false, false);
    }
}
