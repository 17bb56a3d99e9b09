//! A snapshot as Prometheus reads it: its text format 0.0.4, or OpenMetrics 1.0 for who prefers that.
//!
//! Only what is counted; nothing is computed here that a query could compute. Before: `figures`, the walk that tells what there is.

mod samples;

use super::Snapshot;
use samples::Samples;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    Text,
    /// Counter families have no `_total`, and the end is marked.
    OpenMetrics,
}

impl Exposition {
    /// The format for an `Accept`: OpenMetrics if it is named and not refused.
    pub fn wanted(accept: &[u8]) -> Exposition {
        let wants = |one: &[u8]| {
            let mut parts = one.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let is_named =
                parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"application/openmetrics-text"));
            is_named && !parts.any(|part| matches!(part, b"q=0" | b"q=0.0" | b"q=0.00" | b"q=0.000"))
        };
        if accept.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).any(wants) {
            Exposition::OpenMetrics
        } else {
            Exposition::Text
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Snapshot {
    pub fn exposed(&self, exposition: Exposition) -> String {
        let mut samples = Samples::new(exposition);
        self.walk(&mut samples);
        samples.end()
    }
}
