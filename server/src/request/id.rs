//! `$request_id`: 32 random hexadecimal digits.

pub(super) fn random() -> [u8; 32] {
    use std::hash::BuildHasher;
    // The standard library's hasher is keyed by the system's random source; a counter keeps ids apart on a thread.
    let keys = std::hash::RandomState::new();
    let (high, low) = (keys.hash_one(1u8), keys.hash_one(2u8));
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let mut text = [0u8; 32];
    for (index, byte) in bytes.iter().enumerate() {
        text[2 * index] = b"0123456789abcdef"[usize::from(byte >> 4)];
        text[2 * index + 1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    text
}
