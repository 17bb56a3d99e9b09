//! Session tickets: resumption without memory on our side, for `ssl_session_timeout`.
//!
//! The keys belong to the process and change every six hours, so that a reload does not cost every client a
//! full handshake. The library puts the server name into each session and resumes only under the same one, so
//! that sharing the keys between servers shares nothing else. A ticket carries the time it was made, under
//! the same seal.

use super::TlsError;
use crate::clock;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::ProducesTickets;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// RFC 8446 §4.6.1: no ticket is used for longer than seven days.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Bytes of the time at the head of each ticket.
const TIME: usize = size_of::<i64>();
/// Bytes of a shared key's name, with which its file begins.
const NAME: usize = 16;

/// Tickets valid for `lifetime`. Errors where the system gives no random bytes for the first key.
pub(super) fn tickets(lifetime: Duration, files: &[PathBuf]) -> Result<Arc<dyn ProducesTickets>, TlsError> {
    let keys = if files.is_empty() { of_the_process()? } else { Arc::new(KeysOfFiles::read(files)?) };
    let lifetime = u32::try_from(lifetime.min(LONGEST).as_secs()).unwrap_or(u32::MAX);
    Ok(Arc::new(Tickets { keys, lifetime }))
}

fn of_the_process() -> Result<Arc<dyn ProducesTickets>, TlsError> {
    static KEYS: Mutex<Option<Arc<dyn ProducesTickets>>> = Mutex::new(None);
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(match &*keys {
        Some(keys) => Arc::clone(keys),
        None => Arc::clone(keys.insert(Ticketer::new().map_err(TlsError::Library)?)),
    })
}

/// Keys that several machines share (`ssl_session_ticket_key`). A ticket is the key's name, a nonce, and the sealed session.
struct KeysOfFiles(Vec<([u8; NAME], RandomizedNonceKey)>);

impl fmt::Debug for KeysOfFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl KeysOfFiles {
    fn read(files: &[PathBuf]) -> Result<Self, TlsError> {
        let key = |file: &PathBuf| {
            let bytes = fs::read(file).map_err(|error| TlsError::Read(file.clone(), error))?;
            let wrong = || TlsError::TicketKey(file.clone());
            if !matches!(bytes.len(), 48 | 80) {
                return Err(wrong());
            }
            let name = *bytes.first_chunk::<NAME>().ok_or_else(wrong)?;
            let secret = digest::digest(&digest::SHA256, &bytes[NAME..]);
            Ok((name, RandomizedNonceKey::new(&AES_256_GCM, secret.as_ref()).map_err(|_| wrong())?))
        };
        Ok(KeysOfFiles(files.iter().map(key).collect::<Result<_, _>>()?))
    }
}

impl ProducesTickets for KeysOfFiles {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let (name, key) = self.0.first()?;
        let mut sealed = plain.to_vec();
        let nonce = key.seal_in_place_append_tag(Aad::from(name), &mut sealed).ok()?;
        Some([name.as_slice(), nonce.as_ref(), &sealed].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = cipher.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let (_, key) = self.0.iter().find(|(known, _)| known == name)?;
        let mut sealed = sealed.to_vec();
        let plain = key.open_in_place(Nonce::from(nonce), Aad::from(name), &mut sealed).ok()?;
        Some(plain.to_vec())
    }
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
        let tickets = tickets(Duration::from_secs(300), &[]).expect("random bytes");
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
        assert!(!tickets(Duration::ZERO, &[]).expect("random bytes").enabled());
        let long = tickets(Duration::from_secs(u64::MAX), &[]).expect("random bytes");
        assert_eq!(long.lifetime(), 7 * 24 * 60 * 60);
    }

    #[test]
    fn a_shared_key_opens_what_another_process_sealed_and_one_that_was_rotated_out_still_opens() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, byte: u8, length: usize| {
            let path = folder.path().join(name);
            fs::write(&path, vec![byte; length]).expect("written");
            path
        };
        let (old, new) = (file("old", 1, 48), file("new", 2, 80));
        let lifetime = Duration::from_secs(300);
        let before = tickets(lifetime, std::slice::from_ref(&old)).expect("keys");
        let after = tickets(lifetime, &[new.clone(), old]).expect("keys");
        let sealed = before.encrypt(b"session").expect("sealed");
        assert_eq!(after.decrypt(&sealed).as_deref(), Some(b"session".as_slice()));
        let sealed = after.encrypt(b"session").expect("sealed");
        assert_eq!(before.decrypt(&sealed), None);
        let alone = tickets(lifetime, &[new]).expect("keys");
        assert_eq!(alone.decrypt(&sealed).as_deref(), Some(b"session".as_slice()));
        let error = tickets(lifetime, &[file("short", 3, 47)]).expect_err("too short");
        assert!(error.to_string().contains("must be 48 or 80 bytes"), "{error}");
    }
}
