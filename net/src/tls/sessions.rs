//! Session tickets: resumption without memory on our side, for `ssl_session_timeout`.
//!
//! The keys belong to the process, so that a reload does not cost every client a full handshake, and change as often as sessions end. The library puts the server name into each session and resumes only under the same one. A ticket carries, under
//! the same seal, the time when it was made and for whom ([`context`]): a server with other certificates, or with other authorities
//! of its clients, does not resume it.

use super::TlsError;
use super::clients::Clients;
use super::pem::read;
use crate::clock;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::{digest, rand};
use rustls::TicketRotator;
use rustls::crypto::GetRandomFailed;
use rustls::server::ProducesTickets;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// RFC 8446 §4.6.1: no ticket is used for longer than seven days.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Bytes of the time at the head of each ticket.
const TIME: usize = size_of::<i64>();
/// Bytes before the session in each ticket.
const BEFORE: usize = TIME + size_of::<Context>();
/// Bytes of a shared key's name, with which its file begins.
const NAME: usize = 16;

/// What servers must have in common to resume each other's sessions.
pub(super) type Context = [u8; 16];

/// That of a server: its certificates, and the authorities whose names it tells.
pub(super) fn context<'a>(identity: impl Iterator<Item = &'a [u8]>, clients: Option<&'a Clients>) -> Context {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in identity.chain(clients.into_iter().flat_map(Clients::told)) {
        hash.update(&part.len().to_be_bytes());
        hash.update(part);
    }
    let mut context = Context::default();
    context.copy_from_slice(&hash.finish().as_ref()[..size_of::<Context>()]);
    context
}

/// Tickets valid for `lifetime`. Errors where the system gives no random bytes for the first key.
pub(super) fn tickets(
    lifetime: Duration,
    files: &[PathBuf],
    context: Context,
) -> Result<Arc<dyn ProducesTickets>, TlsError> {
    let lifetime = u32::try_from(lifetime.min(LONGEST).as_secs()).unwrap_or(u32::MAX);
    let keys = if files.is_empty() { of_the_process(lifetime)? } else { Arc::new(Keys::read(files)?) };
    Ok(Arc::new(Tickets { keys, lifetime, context }))
}

/// The process's own keys for a lifetime, in seconds: new ones after each, beside which the old ones open for as long.
fn of_the_process(lifetime: u32) -> Result<Arc<dyn ProducesTickets>, TlsError> {
    /// Lifetimes whose keys outlive a reload; more are in no file that anybody writes.
    const MOST: usize = 16;
    static KEYS: Mutex<Vec<(u32, Arc<dyn ProducesTickets>)>> = Mutex::new(Vec::new());
    let mut known = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, keys)) = known.iter().find(|(of, _)| *of == lifetime) {
        return Ok(Arc::clone(keys));
    }
    let rotated = TicketRotator::new(lifetime.max(1), Keys::random).map_err(TlsError::Library)?;
    let keys: Arc<dyn ProducesTickets> = Arc::new(rotated);
    if known.len() == MOST {
        known.remove(0);
    }
    known.push((lifetime, Arc::clone(&keys)));
    Ok(keys)
}

/// Keys of tickets, the first of which seals. A ticket is the key's name, a nonce, and the sealed session.
struct Keys(Vec<([u8; NAME], RandomizedNonceKey)>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl Keys {
    fn random() -> Result<Box<dyn ProducesTickets>, GetRandomFailed> {
        let (mut name, mut secret) = ([0; NAME], [0; 32]);
        rand::fill(&mut name).and_then(|()| rand::fill(&mut secret)).map_err(|_| GetRandomFailed)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &secret).map_err(|_| GetRandomFailed)?;
        Ok(Box::new(Keys(vec![(name, key)])))
    }

    /// Those that several machines share (`ssl_session_ticket_key`).
    fn read(files: &[PathBuf]) -> Result<Self, TlsError> {
        let key = |file: &PathBuf| {
            let bytes = read(file)?;
            let wrong = || TlsError::TicketKey(file.clone());
            if !matches!(bytes.len(), 48 | 80) {
                return Err(wrong());
            }
            let name = *bytes.first_chunk::<NAME>().ok_or_else(wrong)?;
            let secret = digest::digest(&digest::SHA256, &bytes[NAME..]);
            Ok((name, RandomizedNonceKey::new(&AES_256_GCM, secret.as_ref()).map_err(|_| wrong())?))
        };
        Ok(Keys(files.iter().map(key).collect::<Result<_, _>>()?))
    }
}

impl ProducesTickets for Keys {
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
    context: Context,
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.lifetime > 0
    }

    fn lifetime(&self) -> u32 {
        self.lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.encrypt(&[&clock::wall().seconds.to_be_bytes()[..], &self.context, plain].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let mut plain = self.keys.decrypt(cipher)?;
        let made = i64::from_be_bytes(*plain.first_chunk::<TIME>()?);
        if !is_valid(made, clock::wall().seconds, self.lifetime) {
            return None;
        }
        if plain.get(TIME..BEFORE)? != self.context {
            return None;
        }
        plain.drain(..BEFORE);
        Some(plain)
    }
}

/// A clock that was set back makes a ticket look young, never valid for longer than its lifetime from then.
fn is_valid(made: i64, now: i64, lifetime: u32) -> bool {
    now.saturating_sub(made) <= i64::from(lifetime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const HERE: Context = [7; 16];

    #[test]
    fn a_ticket_of_a_server_with_other_certificates_is_not_read() {
        let lifetime = Duration::from_secs(300);
        let here = tickets(lifetime, &[], context([&b"one"[..]].into_iter(), None)).expect("random bytes");
        let there = tickets(lifetime, &[], context([&b"two"[..]].into_iter(), None)).expect("random bytes");
        let sealed = here.encrypt(b"session").expect("sealed");
        assert_eq!(here.decrypt(&sealed).as_deref(), Some(b"session".as_slice()));
        assert_eq!(there.decrypt(&sealed), None);
    }

    #[test]
    fn a_ticket_is_read_back_and_a_forged_one_is_not() {
        let tickets = tickets(Duration::from_secs(300), &[], HERE).expect("random bytes");
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
        assert!(!tickets(Duration::ZERO, &[], HERE).expect("random bytes").enabled());
        let long = tickets(Duration::from_secs(u64::MAX), &[], HERE).expect("random bytes");
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
        let before = tickets(lifetime, std::slice::from_ref(&old), HERE).expect("keys");
        let after = tickets(lifetime, &[new.clone(), old], HERE).expect("keys");
        let sealed = before.encrypt(b"session").expect("sealed");
        assert_eq!(after.decrypt(&sealed).as_deref(), Some(b"session".as_slice()));
        let sealed = after.encrypt(b"session").expect("sealed");
        assert_eq!(before.decrypt(&sealed), None);
        let alone = tickets(lifetime, &[new], HERE).expect("keys");
        assert_eq!(alone.decrypt(&sealed).as_deref(), Some(b"session".as_slice()));
        let error = tickets(lifetime, &[file("short", 3, 47)], HERE).expect_err("too short");
        assert!(error.to_string().contains("must be 48 or 80 bytes"), "{error}");
    }
}
