//! Which session is whose: what `sticky learn` has seen, shared by all workers and kept over reloads.
//!
//! A session is known by the MD5 of its name, as in nginx, so that each takes the same room whatever clients call theirs. The
//! oldest one goes where there is no room, and each some time after its last request. Only groups that learn come here. Every
//! decision takes `now`. Next: `group`, which has them; `peers`, whose turns begin and prolong them.

use md5::{Digest, Md5};
use millstream_conf::model::StickyLearn;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The sessions of one group.
#[derive(Debug)]
pub struct Sessions {
    zone: Box<str>,
    most: usize,
    timeout: Duration,
    known: Mutex<Known>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey([u8; 16]);

#[derive(Debug)]
pub(crate) struct Lesson {
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) key: SessionKey,
    /// Whether it may begin by this; otherwise only continue.
    pub(crate) creates: bool,
}

#[derive(Debug, Default)]
struct Known {
    by_key: HashMap<SessionKey, Session>,
    /// In the order of their last requests; a number distinguishes equal moments.
    by_age: BTreeMap<(Instant, u64), SessionKey>,
    next: u64,
}

#[derive(Debug)]
struct Session {
    server: Arc<str>,
    age: (Instant, u64),
}

impl SessionKey {
    pub(crate) fn of(name: &[u8]) -> SessionKey {
        SessionKey(Md5::digest(name).into())
    }
}

impl Sessions {
    /// Sessions of the same zone before are kept, as far as there is room.
    pub(crate) fn open(conf: &StickyLearn, before: Option<&Arc<Sessions>>) -> Arc<Sessions> {
        let same = before.filter(|before| {
            (&*before.zone, before.most, before.timeout) == (conf.zone.as_str(), conf.most, conf.timeout)
        });
        same.cloned().unwrap_or_else(|| {
            Arc::new(Sessions {
                zone: conf.zone.as_str().into(),
                most: conf.most.max(1),
                timeout: conf.timeout,
                known: Mutex::default(),
            })
        })
    }

    pub fn server_of(&self, name: &[u8], now: Instant) -> Option<Arc<str>> {
        let mut known = self.lock();
        known.forget(self.timeout, now);
        known.by_key.get(&SessionKey::of(name)).map(|session| session.server.clone())
    }

    pub(crate) fn learn(&self, key: SessionKey, creates: bool, server: &Arc<str>, now: Instant) {
        let mut known = self.lock();
        known.forget(self.timeout, now);
        let age = (now, known.next);
        let before = match known.by_key.get_mut(&key) {
            Some(session) => {
                session.server = server.clone();
                Some(std::mem::replace(&mut session.age, age))
            }
            None if !creates => return,
            None => {
                if known.by_key.len() >= self.most {
                    known.forget_oldest();
                }
                known.by_key.insert(key, Session { server: server.clone(), age });
                None
            }
        };
        if let Some(before) = before {
            known.by_age.remove(&before);
        }
        known.by_age.insert(age, key);
        known.next += 1;
    }

    /// What changes under the lock is replaced as a whole, so a poisoned one is used as it is.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn forget(&mut self, timeout: Duration, now: Instant) {
        while let Some((&(at, _), _)) = self.by_age.first_key_value()
            && now.saturating_duration_since(at) >= timeout
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.by_age.pop_first() {
            self.by_key.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
