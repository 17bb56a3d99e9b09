//! Ranges of IPv4 addresses, which may lie in each other or apart.
//!
//! As in nginx, a range is cut at every 65,536th address, and only what is left of two ranges there is compared: so whether two
//! overlap is said of the same pairs. Next: `flat`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::flat::Flat;
use crate::declared::made::geo::GeoTable;

/// First and last address within a block of 65,536, and the index of the value.
type Piece = (u16, u16, u32);

#[derive(Debug, Default)]
pub(super) struct GeoRanges {
    pub(super) default: Option<u32>,
    /// By the upper half of the address; sorted and disjoint.
    pieces: BTreeMap<u16, Vec<Piece>>,
}

/// 255.255.255.255 is not accepted, as in nginx.
pub(super) fn parse(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-')?;
    let address = |text: &str| text.parse::<Ipv4Addr>().ok().map(Ipv4Addr::to_bits);
    let (first, last) = (address(first)?, address(last)?);
    (first <= last && last < u32::MAX).then_some((first, last))
}

impl GeoRanges {
    /// Returns the value of an identical range that it replaces; a partial overlap is the error.
    pub(super) fn insert(
        &mut self,
        first: u32,
        last: u32,
        value: u32,
    ) -> Result<Option<u32>, (Ipv4Addr, Ipv4Addr)> {
        let mut before = None;
        for (upper, start, end) in cut(first, last) {
            let pieces = self.pieces.entry(upper).or_default();
            // All before begin where this one ends, or earlier.
            let behind = pieces.partition_point(|(known, ..)| *known <= end);
            let at = behind.wrapping_sub(1);
            match pieces.get(at).copied() {
                Some((known_start, known_end, known)) if known_end >= start => {
                    if (known_start, known_end) == (start, end) {
                        before = Some(known);
                    } else if start < known_start || end > known_end {
                        let whole = |low| Ipv4Addr::from_bits(u32::from(upper) << 16 | u32::from(low));
                        return Err((whole(known_start), whole(known_end)));
                    }
                    let left = (start > known_start).then(|| (known_start, start - 1, known));
                    let right = (end < known_end).then(|| (end + 1, known_end, known));
                    let parts = [left, Some((start, end, value)), right];
                    pieces.splice(at..=at, parts.into_iter().flatten());
                }
                _ => pieces.insert(behind, (start, end, value)),
            }
        }
        Ok(before)
    }

    /// False unless exactly this range exists.
    pub(super) fn remove(&mut self, first: u32, last: u32) -> bool {
        let mut all = true;
        for (upper, start, end) in cut(first, last) {
            let pieces = self.pieces.entry(upper).or_default();
            match pieces
                .iter()
                .position(|(known_start, known_end, _)| (*known_start, *known_end) == (start, end))
            {
                Some(at) => _ = pieces.remove(at),
                None => all = false,
            }
        }
        all
    }

    pub(super) fn table(&self) -> GeoTable<u32> {
        let default = self.default.unwrap_or(0);
        let mut flat = Flat::new(default);
        let mut next = 0u128;
        for (&upper, pieces) in &self.pieces {
            for &(start, end, value) in pieces {
                let whole = |low: u16| (u128::from(upper) << 16 | u128::from(low)) << 96;
                if next < whole(start) {
                    flat.begin(next, default);
                }
                flat.begin(whole(start), value);
                next = whole(end) + (1 << 96);
            }
        }
        // Past the last address of all there is nothing: no range ends there.
        flat.begin(next, default);
        flat.table()
    }
}

/// Splits a range at blocks of 65,536.
fn cut(first: u32, last: u32) -> impl Iterator<Item = (u16, u16, u16)> {
    let (lowest, highest) = ((first >> 16) as u16, (last >> 16) as u16);
    (lowest..=highest).map(move |upper| {
        let start = if upper == lowest { first as u16 } else { 0 };
        let end = if upper == highest { last as u16 } else { u16::MAX };
        (upper, start, end)
    })
}
