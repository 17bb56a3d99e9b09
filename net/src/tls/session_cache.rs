//! Sessions kept here for clients without tickets: `ssl_session_cache`, of one server and all its workers.
//!
//! The library's own cache looks through all keys for one that goes, and never forgets a session for its age. Here each step takes the same time
//! however many there are, and a session goes after `ssl_session_timeout`. Next: `tls`, which makes one for each server.

use crate::clock;
use rustls::server::StoresServerSessions;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of a session on the average, at the most: chains of clients' certificates are in it. nginx counts 4,000 sessions a megabyte.
const MOST_BYTES_EACH: usize = 1024;

/// The sessions of a server.
pub(super) struct SessionCache {
    most: usize,
    lifetime: Duration,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    known: HashMap<Arc<[u8]>, Session>,
    /// The oldest first. What has no session of its number any more was taken or replaced.
    order: VecDeque<(Arc<[u8]>, u64)>,
    /// Of the next session.
    number: u64,
    bytes: usize,
}

struct Session {
    secret: Vec<u8>,
    made: Instant,
    number: u64,
}

impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache").field("most", &self.most).finish_non_exhaustive()
    }
}

impl SessionCache {
    /// Of so many sessions, each for so long.
    pub(super) fn new(most: usize, lifetime: Duration) -> Arc<SessionCache> {
        Arc::new(SessionCache { most, lifetime, sessions: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_at(&self, key: Vec<u8>, secret: Vec<u8>, now: Instant) {
        let most_bytes = self.most.saturating_mul(MOST_BYTES_EACH);
        if self.most == 0 || key.len() + secret.len() > most_bytes {
            return;
        }
        let mut sessions = self.lock();
        sessions.insert(key.into(), secret, now);
        while sessions.known.len() > self.most || sessions.bytes > most_bytes {
            sessions.drop_oldest();
        }
        while sessions.oldest().is_some_and(|made| now.duration_since(made) > self.lifetime) {
            sessions.drop_oldest();
        }
        sessions.tidy();
    }

    fn get_at(&self, key: &[u8], now: Instant) -> Option<Vec<u8>> {
        let sessions = self.lock();
        let session = sessions.known.get(key)?;
        (now.duration_since(session.made) <= self.lifetime).then(|| session.secret.clone())
    }

    fn take_at(&self, key: &[u8], now: Instant) -> Option<Vec<u8>> {
        let session = self.lock().remove(key)?;
        (now.duration_since(session.made) <= self.lifetime).then_some(session.secret)
    }
}

impl Sessions {
    fn insert(&mut self, key: Arc<[u8]>, secret: Vec<u8>, made: Instant) {
        self.remove(&key);
        let number = self.number;
        self.number += 1;
        self.bytes += key.len() + secret.len();
        self.order.push_back((key.clone(), number));
        self.known.insert(key, Session { secret, made, number });
    }

    fn remove(&mut self, key: &[u8]) -> Option<Session> {
        let session = self.known.remove(key)?;
        self.bytes -= key.len() + session.secret.len();
        Some(session)
    }

    /// When the oldest session was made.
    fn oldest(&mut self) -> Option<Instant> {
        while let Some((key, number)) = self.order.front() {
            match self.known.get(key).filter(|session| session.number == *number) {
                Some(session) => return Some(session.made),
                None => _ = self.order.pop_front(),
            }
        }
        None
    }

    fn drop_oldest(&mut self) {
        if self.oldest().is_some()
            && let Some((key, _)) = self.order.pop_front()
        {
            self.remove(&key);
        }
    }

    /// Drops what is in the order alone, once that is more than half of it: for each session that is put, two are looked at.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.known.len() + 16 {
            let known = &self.known;
            self.order
                .retain(|(key, number)| known.get(key).is_some_and(|session| session.number == *number));
        }
    }
}

impl StoresServerSessions for SessionCache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(key, value, clock::now());
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get_at(key, clock::now())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.take_at(key, clock::now())
    }

    fn can_cache(&self) -> bool {
        self.most > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(300);

    fn key(number: u32) -> Vec<u8> {
        number.to_be_bytes().to_vec()
    }

    #[test]
    fn the_oldest_session_goes_first_and_one_that_is_taken_is_gone() {
        let (cache, now) = (SessionCache::new(2, LIFETIME), clock::now());
        for number in [1, 2, 3] {
            cache.put_at(key(number), b"secret".to_vec(), now);
        }
        assert_eq!(cache.get_at(&key(1), now), None);
        assert_eq!(cache.get_at(&key(2), now).as_deref(), Some(&b"secret"[..]));
        assert_eq!(cache.take_at(&key(2), now).as_deref(), Some(&b"secret"[..]));
        assert_eq!(cache.take_at(&key(2), now), None);
        // One that is put again is as young as any.
        cache.put_at(key(3), b"other".to_vec(), now);
        cache.put_at(key(4), b"secret".to_vec(), now);
        cache.put_at(key(3), b"third".to_vec(), now);
        cache.put_at(key(5), b"secret".to_vec(), now);
        assert_eq!(cache.get_at(&key(4), now), None);
        assert_eq!(cache.get_at(&key(3), now).as_deref(), Some(&b"third"[..]));
    }

    #[test]
    fn a_session_ends_with_its_lifetime_and_makes_room() {
        let (cache, now) = (SessionCache::new(10, LIFETIME), clock::now());
        cache.put_at(key(1), b"secret".to_vec(), now);
        assert!(cache.get_at(&key(1), now + LIFETIME).is_some());
        let later = now + LIFETIME + Duration::from_millis(1);
        assert_eq!(cache.get_at(&key(1), later), None);
        cache.put_at(key(2), b"secret".to_vec(), later);
        assert_eq!(cache.lock().known.len(), 1);
        assert_eq!(cache.take_at(&key(2), later + LIFETIME + LIFETIME), None);
    }

    #[test]
    fn neither_large_sessions_nor_taken_ones_take_room_without_bound() {
        let (cache, now) = (SessionCache::new(4, LIFETIME), clock::now());
        for number in 0..10 {
            cache.put_at(key(number), vec![0; 2 * MOST_BYTES_EACH], now);
            assert!(cache.lock().bytes <= 4 * MOST_BYTES_EACH);
        }
        assert_eq!(cache.lock().known.len(), 1);
        cache.put_at(key(10), vec![0; 5 * MOST_BYTES_EACH], now);
        assert_eq!(cache.get_at(&key(10), now), None);
        for number in 20..1000 {
            cache.put_at(key(number), b"secret".to_vec(), now);
            cache.take_at(&key(number), now);
        }
        assert!(cache.lock().order.len() < 64, "{}", cache.lock().order.len());
    }
}
