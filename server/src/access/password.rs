//! Whether a password is the one that a line of a user file stands for.
//!
//! Pure, and slow where the format means it to be (`is_slow`): it is called where a thread may take its time. Next: `md5_crypt` and
//! `des_crypt`; `users`, which reads the lines.

mod des_crypt;
mod md5_crypt;
#[cfg(test)]
mod tests;

use crate::basic_credential::base64;
use sha_crypt::{PasswordVerifier, ShaCrypt};
use sha1::{Digest, Sha1};
use yescrypt::Yescrypt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Bytes of a password for which a thousand hashes take less than a millisecond.
const SHORT: usize = 64;

/// Whether comparing takes milliseconds to seconds, as the format intends.
pub(super) fn is_slow(password: &[u8], stored: &[u8]) -> bool {
    let format = stored.strip_prefix(b"$").and_then(|rest| rest.split(|&byte| byte == b'$').next());
    match format {
        Some(b"2a" | b"2b" | b"2x" | b"2y" | b"5" | b"6" | b"y") => true,
        Some(b"apr1" | b"1") => password.len() > SHORT,
        _ => false,
    }
}

pub(super) fn is_right(password: &[u8], stored: &[u8]) -> Result<bool, Unreadable> {
    if let Some(plain) = stored.strip_prefix(b"{PLAIN}") {
        return Ok(equal(password, plain));
    }
    if let Some(coded) = stored.strip_prefix(b"{SHA}") {
        return Ok(equal(&Sha1::digest(password), &decoded(coded)?));
    }
    if let Some(coded) = stored.strip_prefix(b"{SSHA}") {
        let stored = decoded(coded)?;
        let (sum, salt) = stored.split_at_checked(20).ok_or(Unreadable)?;
        return Ok(equal(&Sha1::new().chain_update(password).chain_update(salt).finalize(), sum));
    }
    let text = std::str::from_utf8(stored).map_err(|_| Unreadable)?;
    let format = text.split('$').nth(1).unwrap_or_default();
    match format {
        "2a" | "2b" | "2x" | "2y" => bcrypt::verify(password, text).map_err(|_| Unreadable),
        "5" | "6" => judged(ShaCrypt::default().verify_password(password, text)),
        "y" => judged(Yescrypt::default().verify_password(password, text)),
        "apr1" | "1" => md5_crypt::made(password, text).map(|made| equal(made.as_bytes(), stored)),
        _ if !text.contains('$') => {
            des_crypt::made(password, text).map(|made| equal(made.as_bytes(), stored))
        }
        _ => Err(Unreadable),
    }
}

fn judged(verified: Result<(), sha_crypt::password_hash::Error>) -> Result<bool, Unreadable> {
    match verified {
        Ok(()) => Ok(true),
        Err(sha_crypt::password_hash::Error::PasswordInvalid) => Ok(false),
        Err(_) => Err(Unreadable),
    }
}

fn decoded(text: &[u8]) -> Result<Vec<u8>, Unreadable> {
    base64(text).ok_or(Unreadable)
}

/// In a time that depends on the lengths alone.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |sum, (a, b)| std::hint::black_box(sum | (a ^ b)));
    one.len() == other.len() && differing == 0
}
