//! The phases in which a location has something to do, so that a request pays one comparison for each that it skips.
//!
//! Each feature says which are its own. Before: `context`; next: `access` and `limit_req`, two of them; `millstream-server`'s
//! `phase`, which asks.

/// A set of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases(u8);

impl Phases {
    pub const NONE: Phases = Phases(0);
    /// `limit_req`, `limit_conn`.
    pub const LIMITS: Phases = Phases(1);
    /// `allow`, `deny`, `auth_basic`, `auth_request`.
    pub const ACCESS: Phases = Phases(2);
    /// Filters on a body before it is compressed, or after its end: `gunzip`, `sub_filter`, `charset_map`,
    /// `add_trailer`, `add_after_body`, `ssi`. Such a response is not prepared once for all.
    pub const FILTERS: Phases = Phases(4);

    /// What guards the content.
    pub const GUARDS: Phases = Phases(1 | 2 | 8);

    /// `otel_trace`, `otel_trace_context inject`.
    pub const TRACING: Phases = Phases(8);

    pub const MIRROR: Phases = Phases(16);

    /// `rewrite`, `if`, `set`, `return`, `break`.
    pub const SCRIPT: Phases = Phases(32);

    pub const POST_ACTION: Phases = Phases(64);

    pub const fn only_if(self, condition: bool) -> Phases {
        if condition { self } else { Phases::NONE }
    }

    #[must_use]
    pub const fn or(self, others: Phases) -> Phases {
        Phases(self.0 | others.0)
    }

    pub const fn has(self, others: Phases) -> bool {
        self.0 & others.0 != 0
    }
}
