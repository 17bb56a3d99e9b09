//! How many different values there were, in a fixed number of bits (linear counting).

/// `WORDS` × 64 bits count up to about six times as many values; more count as that many.
#[derive(Debug, Clone)]
pub(crate) struct Distinct<const WORDS: usize>(Box<[u64; WORDS]>);

impl<const WORDS: usize> Distinct<WORDS> {
    pub(crate) fn new() -> Self {
        Distinct(Box::new([0; WORDS]))
    }

    /// `hash` must be uniform.
    pub(crate) fn add(&mut self, hash: u64) {
        let bit = (hash % (WORDS as u64 * 64)) as usize;
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    pub(crate) fn count(&self) -> u32 {
        let bits = (WORDS * 64) as f64;
        let zeros = self.0.iter().map(|word| word.count_zeros()).sum::<u32>();
        (bits * (bits / f64::from(zeros.max(1))).ln()).round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Key;

    #[test]
    fn the_count_is_close_and_repeats_do_not_count() {
        let key = Key::from_seed(2);
        let mut distinct = Distinct::<8>::new();
        for value in 0..3_000_u64 {
            distinct.add(key.pair(1, value % 200));
        }
        assert!((180..=220).contains(&distinct.count()), "{}", distinct.count());
    }
}
