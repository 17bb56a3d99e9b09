//! Averages and expectations in nginx's arithmetic, under a clock that only the test moves.

use super::Times;
use millstream_conf::model::TimeTo;
use std::time::{Duration, Instant};

const TEN: Duration = Duration::from_secs(10);

/// A moment to count from; tests only add to it.
#[allow(clippy::disallowed_methods, reason = "a start for a fake clock")]
fn start() -> Instant {
    Instant::now()
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

#[test]
fn a_time_counts_in_steps_and_no_more_than_five_seconds() {
    for (time, expected) in
        [(0, 20), (1, 20), (19, 20), (20, 40), (119, 120), (4999, 5000), (5000, 5020), (5001, 5000)]
    {
        let (times, now) = (Times::default(), start());
        times.head(ms(time));
        times.whole(ms(2 * time));
        assert_eq!(times.expected(TimeTo::Header, TEN, now), expected, "{time} ms");
    }
}

#[test]
fn an_average_begins_with_the_first_time_and_moves_by_a_twentieth() {
    let (times, now) = (Times::default(), start());
    for (time, expected) in [(400, 420), (400, 420), (0, 400), (4000, 580), (0, 540)] {
        times.whole(ms(time));
        assert_eq!(times.expected(TimeTo::LastByte, TEN, now), expected, "after {time} ms");
    }
}

#[test]
fn a_peer_that_nobody_looks_at_is_taken_for_twice_as_fast_each_time_fail_timeout_has_passed() {
    let (times, now) = (Times::default(), start());
    times.enter(TEN, false, now);
    times.whole(ms(4000));
    for (seconds, expected) in
        [(0, 4020), (10, 4020), (11, 2020), (21, 2020), (22, 1020), (33, 520), (3600, 20)]
    {
        let later = now + Duration::from_secs(seconds);
        assert_eq!(times.expected(TimeTo::LastByte, TEN, later), expected, "after {seconds} s");
    }
    let later = now + Duration::from_secs(22);
    times.enter(TEN, false, later);
    assert_eq!(
        times.expected(TimeTo::LastByte, TEN, later),
        4020,
        "it is tried, and what is known counts again"
    );
    times.failed(later + TEN);
    assert_eq!(times.expected(TimeTo::LastByte, TEN, later + 2 * TEN), 4020, "a failure is a look too");
}

#[test]
fn requests_that_hang_make_a_peer_slow_before_they_are_answered() {
    let (times, now) = (Times::default(), start());
    times.whole(ms(30));
    times.enter(TEN, true, now);
    times.enter(TEN, true, now + ms(1000));
    let later = now + ms(3000);
    times.look(later);
    // A second of the first, shared by two, and two seconds since the second.
    assert_eq!(times.expected(TimeTo::LastByte, TEN, later), 2520);
    times.leave(ms(3000), later);
    times.look(later);
    // The second one has taken two seconds: the average moves by a twentieth of half a second.
    assert_eq!(times.expected(TimeTo::LastByte, TEN, later), 2480);
    times.leave(ms(2000), later);
    assert_eq!(times.expected(TimeTo::LastByte, TEN, later), 40, "nothing hangs any more");
}
