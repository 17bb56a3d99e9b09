//! The oldest scheme of crypt(3): DES with a salt, thirteen characters and no mark.
//!
//! Eight characters of a password count and a machine of today tries all of them; files that are older than the better schemes
//! have it. DES is that of FIPS 46-3, whose tables number bits from 1; a bit is a byte here, for nobody waits for it.

use super::Unreadable;

/// The digits of crypt(3), six bits each.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH: usize = 13;

/// Permuted choice 1: 56 bits of a key.
#[rustfmt::skip]
const KEY_BITS: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
];
/// Permuted choice 2: those of one round.
#[rustfmt::skip]
const ROUND_BITS: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];
/// By how much both halves of the key turn before a round.
const TURNS: [usize; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];
/// P: the permutation of the boxes' output.
#[rustfmt::skip]
const SPREAD: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25,
];
/// The inverse of the initial permutation, over both halves.
#[rustfmt::skip]
const FINAL: [u8; 64] = [
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30, 37, 5, 45, 13, 53, 21, 61, 29,
    36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27, 34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
];
/// The eight boxes: four rows of sixteen each.
#[rustfmt::skip]
const BOXES: [[u8; 64]; 8] = [
    [14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8,
     4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13],
    [15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
     0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9],
    [10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1,
     13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12],
    [7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9,
     10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14],
    [2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6,
     4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3],
    [12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8,
     9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13],
    [4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6,
     1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12],
    [13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2,
     7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11],
];

/// The line for `password` with the salt of `like`.
pub(super) fn made(password: &[u8], like: &str) -> Result<String, Unreadable> {
    let digit = |byte: u8| DIGITS.iter().position(|&digit| digit == byte).ok_or(Unreadable);
    let (LENGTH, &[first, second, ..]) = (like.len(), like.as_bytes()) else { return Err(Unreadable) };
    let expansion = salted(digit(first)? | digit(second)? << 6);
    let rounds = rounds(password);
    let (mut left, mut right) = ([0; 32], [0; 32]);
    for _ in 0..25 {
        for round in &rounds {
            let mixed = mixed(&right, round, &expansion);
            (left, right) = (right, std::array::from_fn(|at| left[at] ^ mixed[at]));
        }
        (left, right) = (right, left);
    }
    let both: [u8; 64] = std::array::from_fn(|at| if at < 32 { left[at] } else { right[at - 32] });
    let bits = permuted(&both, &FINAL);
    let mut text = like[..2].to_owned();
    for piece in bits.chunks(6) {
        let value = piece.iter().fold(0, |value, bit| value << 1 | bit) << (6 - piece.len());
        text.push(char::from(DIGITS[usize::from(value)]));
    }
    Ok(text)
}

/// The expansion of half a block; each bit of the salt swaps two of its bits.
fn salted(salt: usize) -> [u8; 48] {
    let mut expansion = std::array::from_fn(|at| ((at / 6 * 4 + at % 6 + 31) % 32 + 1) as u8);
    for bit in (0..12).filter(|bit| salt >> bit & 1 == 1) {
        expansion.swap(bit, bit + 24);
    }
    expansion
}

fn rounds(password: &[u8]) -> [[u8; 48]; 16] {
    let mut key = [0; 64];
    for (place, byte) in key.chunks_mut(8).zip(password) {
        // Seven bits of each character; the eighth is the parity, which DES leaves out.
        (0..7).for_each(|bit| place[bit] = byte >> (6 - bit) & 1);
    }
    let mut key = permuted(&key, &KEY_BITS);
    TURNS.map(|turns| {
        let (high, low) = key.split_at_mut(28);
        high.rotate_left(turns);
        low.rotate_left(turns);
        permuted(&key, &ROUND_BITS)
    })
}

fn mixed(half: &[u8; 32], round: &[u8; 48], expansion: &[u8; 48]) -> [u8; 32] {
    let expanded = permuted(half, expansion);
    let mut boxed = [0; 32];
    for (at, table) in BOXES.iter().enumerate() {
        let bit = |place: usize| usize::from(expanded[6 * at + place] ^ round[6 * at + place]);
        let row = bit(0) << 1 | bit(5);
        let column = bit(1) << 3 | bit(2) << 2 | bit(3) << 1 | bit(4);
        let value = table[16 * row + column];
        (0..4).for_each(|place| boxed[4 * at + place] = value >> (3 - place) & 1);
    }
    permuted(&boxed, &SPREAD)
}

fn permuted<const N: usize>(bits: &[u8], table: &[u8; N]) -> [u8; N] {
    table.map(|place| bits[usize::from(place) - 1])
}
