//! The MD5 scheme of BSD's crypt(3), and Apache's with its own mark (`$1$`, `$apr1$`).
//!
//! A thousand rounds of MD5 over password and salt; where one may choose, bcrypt is the better choice.

use super::Unreadable;
use md5::{Digest, Md5};

/// The digits of crypt(3), six bits each, lowest first.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The bytes of the hash behind each four digits.
const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
const LONGEST_SALT: usize = 8;

/// The line for `password` with the mark and the salt of `like`.
pub(super) fn made(password: &[u8], like: &str) -> Result<String, Unreadable> {
    let mut parts = like.split('$').skip(1);
    let (Some(mark), Some(salt)) = (parts.next(), parts.next()) else { return Err(Unreadable) };
    let (mark, written) = (format!("${mark}$"), salt);
    let salt = salt.as_bytes();
    let salt = &salt[..salt.len().min(LONGEST_SALT)];
    let mut sum = first(password, mark.as_bytes(), salt);
    for round in 0..1000 {
        let mut next = Md5::new();
        next.update(if round & 1 == 1 { password } else { &sum });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if round & 1 == 1 { &sum } else { password });
        sum = next.finalize().into();
    }
    let mut text = format!("{mark}{written}$");
    for [high, middle, low] in ORDER {
        let bits = u32::from(sum[high]) << 16 | u32::from(sum[middle]) << 8 | u32::from(sum[low]);
        digits(bits, 4, &mut text);
    }
    digits(u32::from(sum[11]), 2, &mut text);
    Ok(text)
}

fn first(password: &[u8], mark: &[u8], salt: &[u8]) -> [u8; 16] {
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut sum = Md5::new().chain_update(password).chain_update(mark).chain_update(salt);
    for piece in password.chunks(16) {
        sum.update(&inner[..piece.len()]);
    }
    let mut length = password.len();
    while length > 0 {
        sum.update(if length & 1 == 1 { &[0] } else { &password[..1] });
        length >>= 1;
    }
    sum.finalize().into()
}

fn digits(mut bits: u32, count: usize, text: &mut String) {
    for _ in 0..count {
        text.push(char::from(DIGITS[(bits & 63) as usize]));
        bits >>= 6;
    }
}
