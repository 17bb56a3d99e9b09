//! The URLs that most misses are for: a bounded list per thread (space-saving of Metwally, Agrawal and El Abbadi, 2005).
//!
//! A URL that is not on a full list takes the place of the one with the lowest count and inherits that count, so a count is too
//! high by at most what it inherited (`error`). Only misses come here, never hits. Next: `snapshot`, which merges the lists.

use super::Cause;
use std::sync::{Mutex, PoisonError};

/// URLs on the list of one thread.
const MOST: usize = 128;
/// In bytes. A longer URL is cut, and such URLs count as one.
pub const LONGEST_URL: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedUrl {
    pub location: u32,
    pub url: String,
    /// At most `error` too high.
    pub count: u64,
    /// Inherited from an evicted URL.
    pub error: u64,
    /// Time of the upstream, in microseconds.
    pub time: u64,
    pub cause: Cause,
}

#[derive(Debug, Default)]
pub(super) struct MissedUrls(Mutex<Vec<MissedUrl>>);

impl MissedUrls {
    /// Only a snapshot contends for the list.
    pub(super) fn count(&self, location: u32, url: &str, cause: Cause, time: u64) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = list.iter().position(|known| known.location == location && known.url == url);
        let (count, error) = match found {
            Some(at) => {
                let known = &mut list[at];
                known.count += 1;
                known.time = known.time.saturating_add(time);
                known.cause = cause;
                return;
            }
            None if list.len() < MOST => (1, 0),
            None => {
                let least = (0..list.len()).min_by_key(|at| list[*at].count).unwrap_or(0);
                let inherited = list.swap_remove(least).count;
                (inherited + 1, inherited)
            }
        };
        list.push(MissedUrl { location, url: url.to_owned(), count, error, time, cause });
    }

    /// Adds to the sums of all threads.
    pub(super) fn add_to(&self, sums: &mut Vec<MissedUrl>) {
        for one in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match sums.iter_mut().find(|sum| sum.location == one.location && sum.url == one.url) {
                Some(sum) => {
                    sum.count += one.count;
                    sum.error += one.error;
                    sum.time = sum.time.saturating_add(one.time);
                    sum.cause = one.cause;
                }
                None => sums.push(one.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missed_most_stays_on_a_list_that_never_grows_past_its_bound() {
        let list = MissedUrls::default();
        for round in 0..10_000u32 {
            list.count(0, "a/often", Cause::Absent, 5);
            list.count(0, &format!("a/{round}"), Cause::Absent, 1);
        }
        let mut sums = Vec::new();
        list.add_to(&mut sums);
        assert_eq!(sums.len(), MOST);
        let often = sums.iter().max_by_key(|one| one.count - one.error).expect("full");
        assert_eq!(
            (often.url.as_str(), often.count, often.error, often.time),
            ("a/often", 10_000, 0, 50_000)
        );
        assert_eq!(sums.iter().map(|one| one.count).sum::<u64>(), 20_000, "every miss is in one count");
        // The lists of two threads become one.
        let other = MissedUrls::default();
        other.count(0, "a/often", Cause::StoreSetCookie, 7);
        other.count(1, "a/often", Cause::Absent, 7);
        other.add_to(&mut sums);
        let found =
            |location| sums.iter().find(|one| (one.location, one.url.as_str()) == (location, "a/often"));
        assert_eq!(found(0).map(|one| (one.count, one.time)), Some((10_001, 50_007)));
        assert_eq!(found(1).map(|one| one.count), Some(1));
    }
}
