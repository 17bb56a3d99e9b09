//! What is counted of the look-ups of one `resolver`: names and services asked for, and what came of each.
//!
//! Written by the thread that asks, a few times a second at the most, and read by whoever looks. Before: `resolver`.

use super::ResolveError;
use std::sync::atomic::{AtomicU64, Ordering};

/// In NGINX Plus's words.
const OUTCOMES: [&str; 8] =
    ["noerror", "formerr", "servfail", "nxdomain", "notimp", "refused", "timedout", "unknown"];

/// The counts of a `resolver`, kept over a reload under its name.
#[derive(Debug, Default)]
pub struct LookUps {
    asked: AtomicU64,
    asked_services: AtomicU64,
    outcomes: [AtomicU64; OUTCOMES.len()],
}

impl LookUps {
    pub(super) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ask_service(&self) {
        self.asked_services.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether anything was found, or why that is unknown.
    pub(super) fn settle(&self, found: Result<bool, &ResolveError>) {
        let word = match found {
            Ok(false) => "nxdomain",
            Ok(true) => "noerror",
            Err(ResolveError::NotFound) => "nxdomain",
            Err(ResolveError::TimedOut) => "timedout",
            Err(ResolveError::Refused(why)) => match why.as_bytes() {
                [b'1', b':', ..] => "formerr",
                [b'2', b':', ..] => "servfail",
                [b'4', b':', ..] => "notimp",
                [b'5', b':', ..] => "refused",
                _ => "unknown",
            },
            Err(ResolveError::NoName | ResolveError::TooMany) => "unknown",
        };
        if let Some(at) = OUTCOMES.iter().position(|known| *known == word) {
            self.outcomes[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    pub fn asked_services(&self) -> u64 {
        self.asked_services.load(Ordering::Relaxed)
    }

    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.outcomes.iter().map(|count| count.load(Ordering::Relaxed));
        OUTCOMES.into_iter().zip(counts)
    }
}
