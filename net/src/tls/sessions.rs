//! Session tickets: resumption without memory on our side, for `ssl_session_timeout`.
//!
//! The keys belong to the process and change every six hours, so that a reload does not cost every client a
//! full handshake. The library puts the server name into each session and resumes only under the same one, so
//! that sharing the keys between servers shares nothing else. A ticket carries the time it was made, under
//! the same seal.

use crate::clock;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::ProducesTickets;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// RFC 8446 §4.6.1: no ticket is used for longer than seven days.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Bytes of the time at the head of each ticket.
const TIME: usize = size_of::<i64>();

/// Tickets valid for `lifetime`. Errors where the system gives no random bytes for the first key.
pub(super) fn tickets(lifetime: Duration) -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    static KEYS: Mutex<Option<Arc<dyn ProducesTickets>>> = Mutex::new(None);
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let keys = match &*keys {
        Some(keys) => Arc::clone(keys),
        None => Arc::clone(keys.insert(Ticketer::new()?)),
    };
    let lifetime = u32::try_from(lifetime.min(LONGEST).as_secs()).unwrap_or(u32::MAX);
    Ok(Arc::new(Tickets { keys, lifetime }))
}

#[derive(Debug)]
struct Tickets {
    keys: Arc<dyn ProducesTickets>,
    lifetime: u32,
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.lifetime > 0
    }

    fn lifetime(&self) -> u32 {
        self.lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.encrypt(&dated(plain, clock::wall().seconds))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let mut plain = self.keys.decrypt(cipher)?;
        let made = i64::from_be_bytes(*plain.first_chunk::<TIME>()?);
        if !is_valid(made, clock::wall().seconds, self.lifetime) {
            return None;
        }
        plain.drain(..TIME);
        Some(plain)
    }
}

fn dated(plain: &[u8], now: i64) -> Vec<u8> {
    let mut dated = Vec::with_capacity(TIME + plain.len());
    dated.extend_from_slice(&now.to_be_bytes());
    dated.extend_from_slice(plain);
    dated
}

/// A clock that was set back makes a ticket look young, never valid for longer than its lifetime from then.
fn is_valid(made: i64, now: i64, lifetime: u32) -> bool {
    now.saturating_sub(made) <= i64::from(lifetime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_read_back_and_a_forged_one_is_not() {
        let tickets = tickets(Duration::from_secs(300)).expect("random bytes");
        let sealed = tickets.encrypt(b"session").expect("sealed");
        assert_eq!(tickets.decrypt(&sealed).as_deref(), Some(b"session".as_slice()));
        let mut forged = sealed.clone();
        *forged.last_mut().expect("not empty") ^= 1;
        assert_eq!(tickets.decrypt(&forged), None);
        assert_eq!(tickets.decrypt(b""), None);
    }

    #[test]
    fn a_ticket_ends_with_its_lifetime() {
        assert!(is_valid(1000, 1300, 300));
        assert!(!is_valid(1000, 1301, 300));
        assert!(is_valid(1000, 900, 300));
        assert!(!is_valid(i64::MIN, i64::MAX, 300));
    }

    #[test]
    fn a_lifetime_of_nothing_gives_no_tickets_and_a_long_one_is_cut() {
        assert!(!tickets(Duration::ZERO).expect("random bytes").enabled());
        let long = tickets(Duration::from_secs(u64::MAX)).expect("random bytes");
        assert_eq!(long.lifetime(), 7 * 24 * 60 * 60);
    }
}
