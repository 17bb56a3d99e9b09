//! What is asked for, in which order: keys by Zipf's law, alone or with a scan between them; the same in every run.
//!
//! Of N keys the one of rank r is asked for in proportion to 1 / r^s. A scan asks for keys that are never asked for again,
//! as a crawler does. Ranks are spread over the keys, so that a key's number says nothing. Next: `policies`.

#[derive(Clone, Copy)]
pub(crate) struct Ask {
    /// From the number of Zipf's keys on: a key of the scan.
    pub(crate) key: u32,
    /// Part of the scan, which no cache can hit.
    pub(crate) scan: bool,
}

/// A trace of `count` requests for `keys` keys, `scan` percent of them a scan.
pub(crate) fn zipf(keys: u32, exponent: f64, scan: u32, count: usize) -> Vec<Ask> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        })
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut next_scanned = keys;
    (0..count)
        .map(|_| {
            if random.below(100) < scan {
                next_scanned += 1;
                return Ask { key: next_scanned - 1, scan: true };
            }
            let at = random.fraction() * sum;
            let rank = sums.partition_point(|&sum| sum < at).min(keys as usize - 1);
            Ask { key: (rank as u64 * 2_654_435_761 % u64::from(keys)) as u32, scan: false }
        })
        .collect()
}

/// From 200 bytes to 20 KiB, smaller ones more often.
pub(crate) fn mixed_length(key: u32) -> usize {
    let step = (key.wrapping_mul(0x85eb_ca6b) >> 20) % 64;
    200 + (step * step) as usize * 5
}

/// xorshift64*: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
