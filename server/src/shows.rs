//! What a value shows of who asks: set of marks that go with it wherever it is set, captured or made a part of.
//!
//! Pure. Next: `slots` and `request`, which keep them; `variables/personal`, which finds them; `caching/keyed`, which asks.

use std::ops::{BitOr, BitOrAssign};

/// What is in a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shows(u8);

impl Shows {
    /// Nothing of the client's.
    pub const NOTHING: Shows = Shows(0);
    /// The path, or a part of it.
    pub const PATH: Shows = Shows(1);
    /// The query, or a part of it.
    pub const QUERY: Shows = Shows(2);
    /// What a field that is no credential says, or the body.
    pub const FIELD: Shows = Shows(4);
    /// Who asks.
    pub const WHO: Shows = Shows(8);

    /// Whether one of these is in it.
    pub fn has(self, any: Shows) -> bool {
        self.0 & any.0 != 0
    }

    /// What is in it besides these.
    #[must_use]
    pub fn without(self, these: Shows) -> Shows {
        Shows(self.0 & !these.0)
    }
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
