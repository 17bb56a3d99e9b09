//! Passwords that were right a while ago, so that a client that sends its own with every request does not have it computed each time.
//!
//! Each worker remembers for itself, a bounded number, under a salted SHA-256 of what the client sent: nothing can be read out of it, and comparing takes no longer for a
//! better guess.
//! Only right ones are remembered, so wrong ones cannot fill it. Next: `auth_basic`.

use super::users::FileState;
use crate::basic_credential::BasicCredential;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the file is not checked.
const FRESH: Duration = Duration::from_secs(1);
/// How long a password is not computed again if its file stays the same.
const KNOWN: Duration = Duration::from_secs(600);
const MOST: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Token([u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    Right,
    RightFor(FileState),
    Nothing,
}

#[derive(Debug, Clone, Copy)]
struct RightPassword {
    file: FileState,
    computed: Instant,
    looked: Instant,
}

thread_local! {
    static SALT: [u64; 2] = {
        // Keyed by the system's random source.
        let keys = RandomState::new();
        [keys.hash_one(1u8), keys.hash_one(2u8)]
    };
    static REMEMBERED: RefCell<HashMap<Token, RightPassword>> = RefCell::default();
}

impl Token {
    pub(super) fn of(file: &Path, sent: &BasicCredential) -> Token {
        let mut sum = Sha256::new();
        SALT.with(|salt| salt.iter().for_each(|half| sum.update(half.to_ne_bytes())));
        // Each with its length, so that no two questions are one text.
        for part in [file.as_os_str().as_bytes(), &sent.user, &sent.password] {
            sum.update((part.len() as u64).to_ne_bytes());
            sum.update(part);
        }
        Token(sum.finalize().into())
    }
}

pub(super) fn look(token: &Token, now: Instant) -> Memory {
    REMEMBERED.with_borrow(|remembered| match remembered.get(token) {
        Some(right) if now.saturating_duration_since(right.looked) < FRESH => Memory::Right,
        Some(right) if now.saturating_duration_since(right.computed) < KNOWN => Memory::RightFor(right.file),
        _ => Memory::Nothing,
    })
}

/// Remembers that they are right; `is_computed`: not only found unchanged.
pub(super) fn remember(token: Token, file: FileState, is_computed: bool, now: Instant) {
    REMEMBERED.with_borrow_mut(|remembered| {
        if let Some(right) = remembered.get_mut(&token) {
            (right.file, right.looked) = (file, now);
            if is_computed {
                right.computed = now;
            }
            return;
        }
        if remembered.len() >= MOST {
            remembered.retain(|_, right| now.saturating_duration_since(right.looked) < FRESH);
            if remembered.len() >= MOST {
                return;
            }
        }
        remembered.insert(token, RightPassword { file, computed: now, looked: now });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_is_for_a_second_and_while_its_file_stays_for_ten_minutes() {
        let now = millstream_net::clock::now();
        let file = FileState::of(&std::fs::metadata("/proc/self/exe").expect("it is there"));
        let token_of = |file: &str, user: &str, password: &str| {
            Token::of(Path::new(file), &BasicCredential { user: user.into(), password: password.into() })
        };
        let token = token_of("/etc/users", "ann", "secret");
        assert_eq!(look(&token, now), Memory::Nothing);
        remember(token, file, true, now);
        for (seconds, expected) in [
            (0, Memory::Right),
            (1, Memory::RightFor(file)),
            (599, Memory::RightFor(file)),
            (600, Memory::Nothing),
        ] {
            assert_eq!(look(&token, now + Duration::from_secs(seconds)), expected, "{seconds}");
        }
        remember(token, file, false, now + Duration::from_secs(599));
        assert_eq!(look(&token, now + Duration::from_millis(599_500)), Memory::Right);
        assert_eq!(look(&token, now + Duration::from_secs(601)), Memory::Nothing, "computed too long ago");
        for (file, user, password) in [
            ("/etc/users", "ann", "Secret"),
            ("/etc/users", "anns", "ecret"),
            ("/etc/usersa", "nn", "secret"),
        ] {
            assert_ne!(token, token_of(file, user, password));
        }
        for number in 0..2 * MOST {
            remember(token_of("/", "ann", &number.to_string()), file, true, now);
        }
        assert!(REMEMBERED.with_borrow(HashMap::len) <= MOST);
    }
}
