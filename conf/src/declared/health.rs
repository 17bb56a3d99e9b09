//! Health checks of upstream servers, and what their answers must be.
//!
//! What was written, not what is: how a server stands is known to `millstream-upstream`'s `health`, and
//! `millstream-server`'s `health` asks.

use crate::regular_expression::Regex;
use crate::source::Span;
use crate::template::Template;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub struct HealthCheck {
    pub span: Span,
    /// From the start of one check of a server to the start of the next. Default 5 s.
    pub interval: Duration,
    /// Random delay of each check, at most. Default none.
    pub jitter: Duration,
    pub terms: HealthTerms,
    pub question: HealthQuestion,
    /// Default: the server's own port.
    pub port: Option<u16>,
    /// How long one connection is used for checks; zero = a new one each time.
    pub keepalive_time: Duration,
}

#[derive(Debug)]
pub enum HealthQuestion {
    Get {
        /// Default `/`.
        uri: String,
        /// `None`: any status of 2xx or 3xx.
        matches: Option<Arc<HealthMatch>>,
    },
    /// `type=grpc`: a call of gRPC's health protocol (`grpc.health.v1.Health/Check`).
    Grpc {
        /// Empty: the server as a whole.
        service: String,
        /// Expected gRPC status. With 0, the default, the service must also be SERVING.
        status: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthTerms {
    /// Consecutive failed checks that take a server out. Default 1.
    pub fails: u32,
    /// Consecutive passed checks that bring it back. Default 1.
    pub passes: u32,
    /// Whether a server is used before its first check.
    pub before: BeforeFirst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeFirst {
    Used,
    /// `mandatory`: not used.
    Waits,
    /// `mandatory persistent`: not used, unless it was healthy before a reload.
    WaitsOnce,
}

/// A `match` block: all its tests must hold for a response.
#[derive(Debug)]
pub struct HealthMatch {
    pub name: String,
    /// In file order; never empty.
    pub tests: Vec<HealthTest>,
}

#[derive(Debug)]
pub enum HealthTest {
    /// `status 200 301-303`, `status ! 500`.
    Status {
        /// First and last of each range.
        ranges: Vec<(u16, u16)>,
        /// Whether the status must be in one of the ranges, or in none.
        within: bool,
    },
    Field {
        name: String,
        value: FieldTest,
        /// Whether it must be present, or absent.
        there: bool,
    },
    Body {
        expression: Regex,
        /// Whether it must match, or must not.
        matches: bool,
    },
    /// `require $variable …`: each must have a value other than `0`.
    Require(Vec<Template>),
}

#[derive(Debug)]
pub enum FieldTest {
    Present,
    Equal(String),
    Matching(Regex),
}
