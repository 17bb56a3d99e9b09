//! When a responder is asked next about a certificate, and what of that is told.
//!
//! Pure: how long an answer holds and chance come from outside, and what comes out is a rest; all in seconds. Before: `schedule`, how rests grow; next:
//! `stapling`, which has the clock.

use crate::schedule::Rests;
use millstream_conf::model::Level;
use std::time::Duration;

/// Seconds between two requests at least, while they succeed; as nginx.
const LEAST_REST: i64 = 5 * 60;
/// Seconds between two requests at most: a revocation shows within it.
const LONGEST_REST: i64 = 60 * 60;
/// After failures: short at first, so that a brief outage leaves few handshakes without a staple.
const RESTS: Rests =
    Rests { first: Duration::from_secs(10), growth: 2, longest: Duration::from_secs(LEAST_REST as u64) };

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// In a row.
    failures: u32,
    told: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) rest: i64,
    /// What to log, if it is news.
    pub(super) told: Option<(Level, String)>,
}

impl Pace {
    /// After a response that is valid for so many seconds; `None`: without end.
    pub(super) fn answered(&mut self, holds: Option<i64>) -> Next {
        self.failures = 0;
        let again = "the OCSP responder is available again".to_owned();
        let told = self.told.take().map(|_| (Level::Notice, again));
        let rest = |holds: i64| (holds - LEAST_REST).clamp(LEAST_REST, LONGEST_REST);
        Next { rest: holds.map_or(LONGEST_REST, rest), told }
    }

    /// Logs each reason once in a row; a lasting one is retried slowly.
    pub(super) fn failed(&mut self, why: &str, is_lasting: bool, chance: f64) -> Next {
        let rest = match is_lasting {
            true => LEAST_REST,
            false => i64::try_from(RESTS.after(self.failures, chance).as_secs()).unwrap_or(LEAST_REST),
        };
        self.failures = self.failures.saturating_add(1);
        let is_news = self.told.as_deref() != Some(why);
        let told = is_news.then(|| (Level::Error, format!("{why}; retrying in {rest} s")));
        self.told = Some(why.to_owned());
        Next { rest, told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_renewed_ahead_of_its_end_and_within_the_hour() {
        let minute = 60;
        for (holds, expected) in [(7 * 24 * 60, 60), (70, 60), (30, 25), (10, 5), (6, 5), (1, 5), (-1, 5)]
            .map(|(h, e)| (h * minute, e * minute))
        {
            assert_eq!(Pace::default().answered(Some(holds)).rest, expected, "{holds}");
        }
        assert_eq!(Pace::default().answered(None).rest, 60 * minute);
    }

    enum Does {
        Fails(&'static str),
        Answers,
        Revokes,
    }

    fn play(script: &[Does], chance: f64) -> (Vec<i64>, Vec<(i64, String)>) {
        let (mut pace, mut now) = (Pace::default(), 0);
        let (mut asked, mut told) = (Vec::new(), Vec::new());
        for does in script {
            asked.push(now);
            let next = match does {
                Does::Fails(why) => pace.failed(why, false, chance),
                Does::Answers => pace.answered(Some(7 * 24 * 60 * 60)),
                Does::Revokes => pace.failed("revoked", true, chance),
            };
            told.extend(next.told.map(|(_, what)| (now, what)));
            now += next.rest;
        }
        (asked, told)
    }

    #[test]
    fn a_failure_is_told_once_with_its_next_question_which_come_soon_at_first_and_then_every_five_minutes() {
        use Does::{Answers, Fails, Revokes};
        let script: Vec<Does> = (0..8)
            .map(|_| Fails("gone"))
            .chain([Fails("mad"), Answers, Fails("gone"), Fails("gone")])
            .collect();
        let (asked, told) = play(&script, 0.5);
        assert_eq!(asked, [0, 10, 30, 70, 150, 310, 610, 910, 1210, 1510, 5110, 5120]);
        let told: Vec<(i64, &str)> = told.iter().map(|(when, what)| (*when, what.as_str())).collect();
        let expected = [
            (0, "gone; retrying in 10 s"),
            (1210, "mad; retrying in 300 s"),
            (1510, "the OCSP responder is available again"),
            (5110, "gone; retrying in 10 s"),
        ];
        assert_eq!(told, expected);
        let (asked, told) = play(&[Revokes, Revokes], 0.5);
        assert_eq!((asked, told.len()), (vec![0, 300], 1));
    }

    #[test]
    fn not_all_who_lost_a_responder_together_come_back_together() {
        let first = |chance| play(&[Does::Fails("gone"), Does::Answers], chance).0[1];
        assert_eq!([0.0, 0.25, 0.5, 0.999].map(first), [8, 9, 10, 11]);
        let last = |chance| Pace { failures: u32::MAX, told: None }.failed("gone", false, chance).rest;
        assert_eq!([0.0, 0.999].map(last), [240, 359]);
    }
}
