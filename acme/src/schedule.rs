//! When what is done next: renewals ahead of the end, and rests after failures.
//!
//! Pure: moments are seconds since 1970, and chance comes from outside, as a number from 0 up to 1. Before: `failure`; next: `issuer`.

use crate::failure::Retry;
use std::time::Duration;

/// A third of a certificate's life is left when it is renewed.
const LEFT: i64 = 3;
/// A fifth of its life is left for failures, whatever its server suggests.
const SPARE: i64 = 5;
/// A renewal is up to a thirtieth of the life earlier, so that not all come at once.
const SPREAD: i64 = 30;

/// After failures with an authority; keeps below Let's Encrypt's limit of five an hour.
const RESTS: Rests =
    Rests { first: Duration::from_secs(5), growth: 8, longest: Duration::from_secs(24 * 60 * 60) };

/// Exponential back-off, a fifth more or less by chance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rests {
    pub(crate) first: Duration,
    pub(crate) growth: u32,
    pub(crate) longest: Duration,
}

impl Rests {
    /// The pause after one more failure, of which there were so many before.
    pub(crate) fn after(self, failures: u32, chance: f64) -> Duration {
        let grown = self.growth.checked_pow(failures);
        let grown = grown.map_or(self.longest, |grown| self.first.saturating_mul(grown));
        grown.min(self.longest).mul_f64(0.8 + 0.4 * chance)
    }
}

/// Second of renewal by the certificate's life alone.
pub(crate) fn renewal((since, until): (i64, i64), chance: f64) -> i64 {
    let life = until.saturating_sub(since).max(0);
    until - life / LEFT - ((life / SPREAD) as f64 * chance) as i64
}

/// Second of renewal inside the server's window; `None` if the window lies beyond the certificate's life.
pub(crate) fn suggested(validity: (i64, i64), (first, last): (i64, i64), chance: f64) -> Option<i64> {
    let is_inside = validity.0 <= first && first <= last && last <= validity.1;
    let latest = validity.1 - validity.1.saturating_sub(validity.0) / SPARE;
    is_inside.then(|| (first + ((last - first) as f64 * chance) as i64).min(latest))
}

/// The pause after a failure, of which there were so many before; `None`: until the configuration changes.
pub(crate) fn rest(retry: Retry, failures: u32, chance: f64) -> Option<Duration> {
    match retry {
        Retry::Never => None,
        Retry::After(rest) => Some(rest.mul_f64(1.0 + 0.1 * chance)),
        Retry::Later => Some(RESTS.after(failures, chance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn a_third_of_its_life_before_its_end_a_certificate_is_renewed_and_a_little_before_that_by_chance() {
        assert_eq!(renewal((0, 90 * DAY), 0.0), 60 * DAY);
        assert_eq!(renewal((0, 90 * DAY), 0.999_999) / DAY, 57);
        assert_eq!(renewal((100, 112), 0.5), 108);
        assert_eq!(renewal((100, 50), 0.5), 50);
    }

    #[test]
    fn what_a_server_suggests_holds_inside_the_life_of_the_certificate() {
        let life = (0, 90 * DAY);
        assert_eq!(suggested(life, (50 * DAY, 52 * DAY), 0.5), Some(51 * DAY));
        assert_eq!(suggested(life, (0, 0), 0.5), Some(0));
        assert_eq!(suggested(life, (80 * DAY, 90 * DAY), 0.9), Some(72 * DAY));
        assert_eq!(suggested(life, (89 * DAY, 91 * DAY), 0.5), None);
        assert_eq!(suggested(life, (52 * DAY, 50 * DAY), 0.5), None);
        assert_eq!(suggested(life, (-1, DAY), 0.5), None);
    }

    #[test]
    fn rests_grow_up_to_a_day() {
        let seconds = |failures| rest(Retry::Later, failures, 0.5).expect("there is one").as_secs();
        assert_eq!([0, 1, 2, 3, 4, 5, 100].map(seconds), [5, 40, 320, 2560, 20_480, 86_400, 86_400]);
        assert_eq!(rest(Retry::Never, 0, 0.5), None);
        assert_eq!(rest(Retry::After(RESTS.longest), 9, 0.0), Some(RESTS.longest));
    }
}
