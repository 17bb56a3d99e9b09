//! Any bytes as `Range` and `Content-Range`: no panic, and every part lies within the whole and within the bounds.
//!
//! The first two bytes of the input are the length of the whole and the bound on ranges.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_wire::range::{self, ContentRange, Ranges};

fuzz_target!(|input: &[u8]| {
    let [length, most, value @ ..] = input else { return };
    let (length, most) = (u64::from(*length) * 37, u32::from(*most % 8));
    for most in [Some(most), None] {
        if let Ranges::Parts(parts) = range::parse(value, length, most) {
            assert!(!parts.is_empty() && most.is_none_or(|most| parts.len() <= most as usize));
            assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
            let total: u64 = parts.iter().map(|part| part.end - part.start).sum();
            assert!(parts.len() == 1 || total <= length);
        }
    }
    if let Some(spec) = range::only(value) {
        assert_eq!(range::first(value), Some(spec));
        let part = spec.of(length);
        assert!(part.end <= length);
    }
    if let Some(range) = ContentRange::parse(value) {
        assert!(range.first <= range.last && range.complete.is_none_or(|complete| range.last < complete));
        let mut again = Vec::new();
        range.write(&mut again);
        assert_eq!(ContentRange::parse(&again), Some(range));
    }
});
