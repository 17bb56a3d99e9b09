//! What a value shows of who asks: set of marks that go with it wherever it is set, captured or made a part of.
//!
//! Pure. Next: `slots` and `request`, which keep them; `variables/personal`, which finds them; `caching/keyed`, which asks.

use std::ops::{BitOr, BitOrAssign};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shows(u8);

impl Shows {
    pub const NOTHING: Shows = Shows(0);
    pub const PATH: Shows = Shows(1);
    pub const QUERY: Shows = Shows(2);
    /// A field without credentials, or the body.
    pub const FIELD: Shows = Shows(4);
    /// The client's identity.
    pub const WHO: Shows = Shows(8);
    /// The client's address.
    pub const ADDRESS: Shows = Shows(16);
    pub const CLIENT: Shows = Shows(8 | 16);

    pub fn has(self, any: Shows) -> bool {
        self.0 & any.0 != 0
    }

    #[must_use]
    pub fn without(self, these: Shows) -> Shows {
        Shows(self.0 & !these.0)
    }
}

/// What led a request where it is, by its sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WayShows {
    pub path: Shows,
    pub query: Shows,
    /// The conditions that routed it.
    pub way: Shows,
}

impl BitOr for Shows {
    type Output = Shows;

    fn bitor(self, other: Shows) -> Shows {
        Shows(self.0 | other.0)
    }
}

impl BitOrAssign for Shows {
    fn bitor_assign(&mut self, other: Shows) {
        *self = *self | other;
    }
}
