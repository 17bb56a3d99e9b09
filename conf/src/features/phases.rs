//! The phases in which a location has something to do, so that a request without any of them pays one comparison.
//!
//! Each feature says which are its own. Before: `context`; next: `access` and `limit_req`, two of them; `millstream-server`'s
//! `phase`, which asks.

/// A set of phases behind the choice of a location, the content itself left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases(u8);

impl Phases {
    /// None.
    pub const NONE: Phases = Phases(0);
    /// `limit_req`, `limit_conn`.
    pub const LIMITS: Phases = Phases(1);
    /// `allow`, `deny`, `auth_basic`, `auth_request`.
    pub const ACCESS: Phases = Phases(2);
    /// What is done to a body before it is coded, or said behind it: `gunzip`, `sub_filter`, `charset_map`, `add_trailer`, `add_after_body`, `ssi`. Such an
    /// answer is not prepared once for all.
    pub const FILTERS: Phases = Phases(4);

    /// `otel_trace`, `otel_trace_context inject`.
    pub const TRACING: Phases = Phases(8);

    /// `mirror`.
    pub const MIRROR: Phases = Phases(16);

    /// These where a condition holds, else none.
    pub const fn only_if(self, condition: bool) -> Phases {
        if condition { self } else { Phases::NONE }
    }

    /// These and others.
    #[must_use]
    pub const fn or(self, others: Phases) -> Phases {
        Phases(self.0 | others.0)
    }

    /// Whether one of the others is among them.
    pub const fn has(self, others: Phases) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether it is none.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}
