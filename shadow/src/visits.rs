//! How often each client has asked for a route, in a fixed number of bits: some APIs send something else to who comes first.
//!
//! Two clients that share a slot count as one, so a client may be taken for a known one, but never the other way round. Before:
//! `hash`; next: `dimension`, of which this is one.

/// Slots of two bits each.
const SLOTS: usize = 4_096;

/// Requests of a client that count as its first ones.
const FIRST: u8 = 3;

pub(crate) struct Visits(Box<[u8; SLOTS / 4]>);

impl Visits {
    pub(crate) fn new() -> Visits {
        Visits(Box::new([0; SLOTS / 4]))
    }

    /// Counts a request. Whether it is one of the first ones of its client; `hash` must be uniform.
    pub(crate) fn is_early(&mut self, hash: u64) -> bool {
        let slot = (hash % SLOTS as u64) as usize;
        let (byte, shift) = (&mut self.0[slot / 4], slot % 4 * 2);
        let is_early = *byte >> shift & FIRST < FIRST;
        if is_early {
            *byte += 1 << shift;
        }
        is_early
    }

    pub(crate) const fn bytes() -> usize {
        SLOTS / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_three_requests_of_each_client_are_early() {
        let mut visits = Visits::new();
        for _ in 0..3 {
            assert!((0..4_096).all(|client| visits.is_early(client)));
        }
        assert!((0..4_096).all(|client| !visits.is_early(client)));
    }
}
