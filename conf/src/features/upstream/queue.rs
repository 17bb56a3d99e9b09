//! `queue`: requests wait for a server that has room for them.
//!
//! Next: `millstream-upstream`'s `queue`, where they wait.

use crate::declared::upstream::{Queue, Upstream};
use crate::reading::{Reading, parameter};
use crate::tree::Directive;
use std::time::Duration;

pub(super) fn read(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let Some(most) = reading.number(&directive.args[0], 1, u64::from(u32::MAX)) else { return };
    let mut timeout = Duration::from_secs(60);
    if let Some(word) = directive.args.get(1) {
        match parameter(word) {
            Some(("timeout", value)) => timeout = reading.duration(&value).unwrap_or(timeout),
            _ => reading.not_one_of(word, &["timeout="]),
        }
    }
    upstream.queue = Some(Queue { most: most as u32, timeout });
}
