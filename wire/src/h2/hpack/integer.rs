//! Integers with a prefix of some bits (RFC 7541 §5.1).
//!
//! The bits above the prefix belong to whoever writes or reads the representation. Values are bounded by 32 bits, and
//! so are the octets that one may take: a longer one is an error, as §5.1 asks.

/// After the prefix: five times seven bits hold any 32-bit value.
const MOST_OCTETS: usize = 5;

/// An integer that does not end within its bytes, or is past 2^32-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadInteger;

/// The first octet holds `prefix` bits (1 to 8). Returns the value and the number of octets.
#[inline]
pub fn decode(bytes: &[u8], prefix: u32) -> Result<(u32, usize), BadInteger> {
    let mask = mask(prefix);
    let first = *bytes.first().ok_or(BadInteger)? & mask;
    if first < mask {
        return Ok((u32::from(first), 1));
    }
    decode_long(bytes, mask)
}

/// The prefix is full: octets of seven bits follow, low ones first.
fn decode_long(bytes: &[u8], mask: u8) -> Result<(u32, usize), BadInteger> {
    let mut value = u64::from(mask);
    for (index, &octet) in bytes.iter().skip(1).take(MOST_OCTETS).enumerate() {
        value += u64::from(octet & 0x7f) << (7 * index);
        if octet < 0x80 {
            return u32::try_from(value).map(|value| (value, index + 2)).map_err(|_| BadInteger);
        }
    }
    Err(BadInteger)
}

/// The first octet has `high` in the bits above the prefix of `prefix` bits (1 to 8).
#[inline]
pub fn encode(out: &mut Vec<u8>, high: u8, prefix: u32, value: usize) {
    let mask = mask(prefix);
    if value < usize::from(mask) {
        out.push(high | value as u8);
        return;
    }
    out.push(high | mask);
    let mut rest = value - usize::from(mask);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[inline]
fn mask(prefix: u32) -> u8 {
    debug_assert!((1..=8).contains(&prefix));
    (0xff_u32 >> (8 - prefix)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_7541_c_1_are_read_and_written() {
        for (value, prefix, octets) in
            [(10, 5, &[0b0000_1010][..]), (1337, 5, &[0b0001_1111, 0b1001_1010, 0b0000_1010]), (42, 8, &[42])]
        {
            let mut out = Vec::new();
            encode(&mut out, 0, prefix, value);
            assert_eq!(out, octets);
            assert_eq!(decode(octets, prefix), Ok((value as u32, octets.len())));
        }
    }

    #[test]
    fn an_integer_without_end_or_past_32_bits_is_an_error() {
        for octets in [
            &[][..],
            &[0x1f],
            &[0x1f, 0x80],
            &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
            &[0x1f, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x7f],
        ] {
            assert_eq!(decode(octets, 5), Err(BadInteger), "{octets:x?}");
        }
        assert_eq!(decode(&[0x1f, 0xe0, 0xff, 0xff, 0xff, 0x0f], 5), Ok((u32::MAX, 6)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<u32>(), shift in 0u32..32, prefix in 1u32..=8, high in any::<u8>()) {
            let value = value >> shift;
            let high = high & !mask(prefix);
            let mut out = Vec::new();
            encode(&mut out, high, prefix, value as usize);
            prop_assert_eq!(out[0] & !mask(prefix), high);
            prop_assert_eq!(decode(&out, prefix), Ok((value, out.len())));
            prop_assert_eq!(decode(&out[..out.len() - 1], prefix), Err(BadInteger));
        }
    }
}
