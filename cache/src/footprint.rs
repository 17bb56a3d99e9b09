//! What memory a thing really takes: its bytes, rounded up as the allocator rounds them.
//!
//! Bounds are kept in these numbers, so that a zone of 256 megabytes is that in the process too, and not a third more.
//! Next: `entry` and `memory`, which count with it.

/// Bytes that an allocation takes: in steps of 16, above 128 in steps of an eighth of the next power of two.
/// Those are mimalloc's sizes; other allocators are no more generous.
pub(crate) fn allocated(bytes: usize) -> u64 {
    let step = (bytes.checked_next_power_of_two().unwrap_or(usize::MAX) / 8).max(16);
    (bytes.div_ceil(step) * step) as u64
}

pub(crate) fn counted<T>() -> u64 {
    allocated(size_of::<T>() + 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_by_less_than_a_quarter() {
        let cases = [(0, 0), (1, 16), (16, 16), (40, 48), (100, 112), (128, 128), (129, 160), (320, 320)];
        for (bytes, expected) in cases {
            assert_eq!(allocated(bytes), expected, "{bytes}");
        }
        assert!((130..100_000).all(|bytes| (bytes as u64..bytes as u64 * 5 / 4).contains(&allocated(bytes))));
    }
}
