//! What a single request takes while nobody else asks: asked a few times, because a machine is seldom at rest.

use crate::probe::Reply;
use crate::report::json;
use std::time::Duration;

/// Single requests may take so many seconds together, connecting included; the one that exceeds it is the last.
const LONG: f64 = 0.25;
const MOST: usize = 15;

/// A request that takes so many times as long as a single one was not the only one: a single request differs by less on a
/// machine that is not at rest (the fifteen of a warm API, measured: by a third at most). Of two single ones it must be
/// so many seconds, too.
pub(super) const LONGER: f64 = 1.5;
const QUEUED_LEAST: f64 = 0.05;

/// What a single request takes, in seconds: of a few, one after the other, the one that took neither longer nor shorter than
/// most. Others are the shortest of all, because only waiting for a core makes them longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Once {
    /// Opening the connection, one way there and back: the shortest of all.
    #[serde(rename = "connect_us", serialize_with = "json::seconds_as_us")]
    pub connect: f64,
    /// From sending the request to the first byte.
    #[serde(rename = "first_byte_us", serialize_with = "json::seconds_as_us")]
    pub first_byte: f64,
    /// From sending the request to the last byte.
    #[serde(rename = "total_us", serialize_with = "json::seconds_as_us")]
    pub total: f64,
    /// The mean of all of these, which is what Little's law is about.
    #[serde(rename = "mean_us", serialize_with = "json::seconds_as_us")]
    pub mean: f64,
    /// The same of the one that took least.
    #[serde(rename = "least_us", serialize_with = "json::seconds_as_us")]
    pub least: f64,
    pub body_bytes: f64,
}

impl Once {
    pub fn of(answer: &Reply) -> Once {
        let (first_byte, total) = (answer.first_byte.as_secs_f64(), answer.total.as_secs_f64());
        Once {
            connect: answer.connect.as_secs_f64(),
            first_byte,
            total,
            mean: total,
            least: total,
            body_bytes: answer.body.len() as f64,
        }
    }

    /// That of a few single requests, one after the other, of which some may have been sent already. Errors: the first that
    /// a request has.
    pub fn ask<E>(mut samples: Vec<Once>, mut reply: impl FnMut() -> Result<Reply, E>) -> Result<Once, E> {
        while !Once::are_enough(&samples) {
            samples.push(Once::of(&reply()?));
            Once::pass_over_a_queue(&mut samples);
        }
        Ok(Once::of_several(&samples).unwrap_or_default())
    }

    pub fn of_several(samples: &[Once]) -> Option<Once> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(|one, other| one.total.total_cmp(&other.total));
        // Of an even number the shorter of the two in the middle.
        let middle = *sorted.get(samples.len().saturating_sub(1) / 2)?;
        let least = *sorted.first()?;
        let connect = sorted.iter().map(|once| once.connect).fold(f64::INFINITY, f64::min);
        let mean = sorted.iter().map(|once| once.total).sum::<f64>() / sorted.len() as f64;
        Some(Once { connect, mean, least: least.total, ..middle })
    }

    /// Leaves out the first of some single requests, in the order in which they were sent, that took much longer than the last:
    /// they stood behind what somebody had left with the server. Gives back how long those took.
    pub fn pass_over_a_queue(samples: &mut Vec<Once>) -> Vec<f64> {
        let Some(last) = samples.last().copied() else { return Vec::new() };
        let is_behind =
            |once: &Once| once.total > LONGER * last.total && once.total > last.total + QUEUED_LEAST;
        let many = samples.iter().take_while(|once| is_behind(once)).count();
        samples.drain(..many).map(|once| once.total).collect()
    }

    /// About how long asking them takes, where one takes so long.
    pub fn span(alone: Duration) -> Duration {
        (alone * MOST as u32).min(Duration::from_secs_f64(LONG)).max(alone * 2)
    }

    /// Whether so many single requests will do: two of a slow API, for the first may find it cold, and more of a faster one.
    pub fn are_enough(samples: &[Once]) -> bool {
        let spent: f64 = samples.iter().map(|once| once.connect + once.total).sum();
        samples.len() >= MOST || samples.len() >= 2 && spent >= LONG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(connect: f64, total: f64) -> Once {
        Once { connect, first_byte: total, total, mean: total, least: total, body_bytes: 1.0 }
    }

    #[test]
    fn of_several_the_one_in_the_middle_counts_and_of_what_can_only_be_too_long_the_shortest() {
        let samples = [sample(3.0, 10.0), sample(1.0, 30.0), sample(2.0, 20.0), sample(4.0, 40.0)];
        let all = Once::of_several(&samples).unwrap();
        assert_eq!((all.connect, all.first_byte, all.total), (1.0, 20.0, 20.0));
        assert_eq!((all.least, all.mean), (10.0, 25.0));
        assert_eq!(Once::of_several(&samples[..2]).unwrap().total, 10.0);
        assert_eq!(Once::of_several(&[]), None);
    }

    #[test]
    fn requests_that_stood_behind_the_queue_of_a_load_before_them_are_left_out() {
        let through = |totals: &[f64]| {
            let (mut samples, mut left_out) = (Vec::new(), Vec::new());
            for total in totals {
                samples.push(sample(0.001, *total));
                left_out.extend(Once::pass_over_a_queue(&mut samples));
            }
            (samples.iter().map(|once| once.total).collect::<Vec<_>>(), left_out)
        };
        assert_eq!(through(&[0.4, 0.25, 0.1, 0.1]), (vec![0.1, 0.1], vec![0.4, 0.25]));
        assert_eq!(through(&[0.1, 0.11, 0.1]), (vec![0.1, 0.11, 0.1], vec![]));
        // One that is slow in between is the server's own.
        assert_eq!(through(&[0.1, 0.3, 0.1]), (vec![0.1, 0.3, 0.1], vec![]));
        // Below this a machine that is not at rest does as much.
        assert_eq!(through(&[0.02, 0.001]), (vec![0.02, 0.001], vec![]));
    }

    #[test]
    fn a_slow_api_is_asked_twice_and_a_fast_one_more_often() {
        for (total, expected) in [(30.0, 2), (0.18, 2), (0.1, 3), (0.02, 13), (0.000_1, MOST)] {
            let mut samples = Vec::new();
            while !Once::are_enough(&samples) {
                samples.push(sample(0.0, total));
            }
            assert_eq!(samples.len(), expected, "{total} s");
        }
    }
}
