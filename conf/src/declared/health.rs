//! Health checks of upstream servers, and what their answers must be.
//!
//! What was written, not what is: how a server stands is known to `millstream-upstream`'s `health`, and
//! `millstream-server`'s `health` asks.

use crate::regular_expression::Regex;
use crate::source::Span;
use crate::template::Template;
use std::sync::Arc;
use std::time::Duration;

/// A `health_check`.
#[derive(Debug)]
pub struct HealthCheck {
    /// Where it was written.
    pub span: Span,
    /// From the beginning of one check of a server to the next. Default 5 s.
    pub interval: Duration,
    /// Each check begins later by up to this. Default none.
    pub jitter: Duration,
    /// What takes a server out of use and brings it back.
    pub terms: HealthTerms,
    /// What is asked.
    pub question: HealthQuestion,
    /// The port that is asked. Default the server's own.
    pub port: Option<u16>,
    /// For how long one connection serves check after check; zero = each has one of its own.
    pub keepalive_time: Duration,
}

/// What a check asks, and what the answer must be.
#[derive(Debug)]
pub enum HealthQuestion {
    /// A GET as the location's requests are.
    Get {
        /// What is asked for. Default `/`.
        uri: String,
        /// What the answer must be; nothing: a status of 2xx or 3xx.
        matches: Option<Arc<HealthMatch>>,
    },
    /// `type=grpc`: a call of gRPC's health protocol (`grpc.health.v1.Health/Check`).
    Grpc {
        /// The service that is asked about; empty: the server as a whole.
        service: String,
        /// The code that the call must end with. With 0, the default, the service must be SERVING besides.
        status: u32,
    },
}

/// What takes a server out of use and brings it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthTerms {
    /// Checks that fail in a row before a server is out. Default 1.
    pub fails: u32,
    /// Checks that pass in a row before it is back. Default 1.
    pub passes: u32,
    /// Whether a server is used before its first check.
    pub before: BeforeFirst,
}

/// How a server stands until its first check has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeFirst {
    /// Used.
    Used,
    /// `mandatory`: not used.
    Waits,
    /// `mandatory persistent`: not used, unless it was healthy before a reload.
    WaitsOnce,
}

/// A `match` block: what must all be true of an answer.
#[derive(Debug)]
pub struct HealthMatch {
    /// Its name.
    pub name: String,
    /// The tests, in file order; never empty.
    pub tests: Vec<HealthTest>,
}

/// A test of an answer.
#[derive(Debug)]
pub enum HealthTest {
    /// `status 200 301-303`, `status ! 500`.
    Status {
        /// First and last of each range.
        ranges: Vec<(u16, u16)>,
        /// Whether it must be in one of them, or in none.
        within: bool,
    },
    /// `header Name …`.
    Field {
        /// The field's name.
        name: String,
        /// What is looked for.
        value: FieldTest,
        /// Whether it must be there, or must not.
        there: bool,
    },
    /// `body ~ expression`, `body !~ expression`.
    Body {
        /// The expression.
        expression: Regex,
        /// Whether it must match, or must not.
        matches: bool,
    },
    /// `require $variable …`: each must have a value other than `0`.
    Require(Vec<Template>),
}

/// What a field of an answer is looked for by.
#[derive(Debug)]
pub enum FieldTest {
    /// That it is there.
    Present,
    /// A value.
    Equal(String),
    /// An expression that a value matches.
    Matching(Regex),
}
