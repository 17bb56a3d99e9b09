//! Sequences and failure marks as nginx has them, under a clock that only the test moves.

use super::choose;
use crate::balance::{Ask, Set};
use crate::health::Health;
use crate::peer::{Member, Peer};
use crate::standing::{Parameters, Standing};
use crate::tried::Tried;
use millstream_net::address::Address;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

struct RoundRobin {
    members: Vec<Member>,
    turns: Mutex<()>,
}

impl RoundRobin {
    fn new(parameters: impl IntoIterator<Item = Parameters>) -> RoundRobin {
        let member = |parameters| Member {
            peer: Peer { id: 1, address: Address::Unix(None), name: "".into() },
            server: "".into(),
            parameters,
            route: None,
            session_name: "".into(),
            counts: Arc::default(),
            standing: Arc::new(Standing::new(&parameters, Health::new(&[], None))),
        };
        RoundRobin { members: parameters.into_iter().map(member).collect(), turns: Mutex::new(()) }
    }

    fn choose(&self, now: Instant) -> Option<usize> {
        let ask = Ask { key: b"", session: None, tried: &mut Tried::new(99), now };
        let index = choose(Set::new(&self.members, 0, &self.turns), &ask)?;
        let Member { standing, parameters, .. } = &self.members[index];
        assert!(standing.enter(parameters), "one that is full is not chosen");
        standing.open_window(parameters, now);
        Some(index)
    }

    fn release(&self, index: usize) {
        self.members[index].standing.leave();
    }

    fn succeeded(&self, index: usize) {
        self.members[index].standing.succeeded(&self.members[index].parameters);
    }

    fn failed(&self, index: usize, now: Instant) -> bool {
        self.members[index].standing.failed(&self.members[index].parameters, now)
    }
}

fn weighted(weight: i64) -> Parameters {
    Parameters {
        weight,
        max_fails: 1,
        fail_timeout: Duration::from_secs(10),
        down: false,
        drain: false,
        slow_start: Duration::ZERO,
        max_conns: 0,
    }
}

#[allow(clippy::disallowed_methods, reason = "a start for a fake clock")]
fn start() -> Instant {
    Instant::now()
}

fn sequence(state: &RoundRobin, count: usize, now: Instant) -> String {
    let mut letters = String::new();
    for _ in 0..count {
        match state.choose(now) {
            Some(index) => {
                letters.push(char::from(b'a' + index as u8));
                state.succeeded(index);
                state.release(index);
            }
            None => letters.push('-'),
        }
    }
    letters
}

#[test]
fn weights_give_the_sequence_that_nginx_gives() {
    let cases: &[(&[i64], &str)] = &[
        (&[5, 1, 1], "aabacaaaabacaa"),
        (&[1, 1, 1], "abcabcabc"),
        (&[2, 1], "abaabaaba"),
        (&[1, 2, 3], "cbacbccbacbc"),
        (&[4, 3], "abababaabababa"),
    ];
    for (weights, expected) in cases {
        let state = RoundRobin::new(weights.iter().map(|weight| weighted(*weight)));
        assert_eq!(sequence(&state, expected.len(), start()), *expected, "weights {weights:?}");
    }
}

#[test]
fn a_failed_peer_is_out_for_fail_timeout_and_then_tested_by_a_choice() {
    let now = start();
    let state = RoundRobin::new([weighted(1), weighted(1)]);
    let first = state.choose(now).expect("two live peers");
    assert!(state.failed(first, now), "one failure of one allowed takes it out");
    state.release(first);
    assert_eq!(sequence(&state, 4, now + Duration::from_secs(10)), "bbbb");
    let later = now + Duration::from_secs(11);
    let letters = sequence(&state, 6, later);
    assert!(letters.contains('a') && letters.contains('b'), "{letters}");
}

#[test]
fn a_test_that_fails_takes_the_peer_out_again_at_once() {
    let now = start();
    let state = RoundRobin::new([weighted(1)]);
    let index = state.choose(now).expect("live");
    assert!(state.failed(index, now));
    assert_eq!(state.choose(now + Duration::from_secs(10)), None);
    let later = now + Duration::from_secs(11);
    let index = state.choose(later).expect("its pause is over");
    assert!(state.failed(index, later));
    assert_eq!(state.choose(later + Duration::from_secs(5)), None);
}

#[test]
fn failures_are_forgotten_by_a_success_after_their_window() {
    let now = start();
    let state = RoundRobin::new([Parameters { max_fails: 2, ..weighted(1) }]);
    let index = state.choose(now).expect("live");
    assert!(!state.failed(index, now), "one of two");
    // A success within the window does not clear it, one in the next window does.
    assert_eq!(sequence(&state, 1, now + Duration::from_secs(5)), "a");
    assert_eq!(sequence(&state, 1, now + Duration::from_secs(11)), "a");
    let index = state.choose(now + Duration::from_secs(12)).expect("live");
    assert!(!state.failed(index, now + Duration::from_secs(12)), "the first failure is forgotten");
}

#[test]
fn a_failure_lowers_the_weight_and_each_choice_gives_one_back() {
    let now = start();
    let state = RoundRobin::new([Parameters { max_fails: 5, ..weighted(10) }, weighted(1)]);
    for _ in 0..4 {
        state.failed(0, now);
    }
    // 10 - 4 × 2 = 2, then 3, 4 … as in nginx's effective_weight.
    assert_eq!(state.members[0].standing.effective_weight(), 2);
    sequence(&state, 3, now);
    assert_eq!(state.members[0].standing.effective_weight(), 5);
}

#[test]
fn max_conns_and_down_leave_a_peer_out() {
    let now = start();
    let state = RoundRobin::new([
        Parameters { max_conns: 1, ..weighted(1) },
        Parameters { down: true, ..weighted(9) },
    ]);
    assert_eq!(state.choose(now), Some(0));
    assert_eq!(state.choose(now), None);
    state.release(0);
    assert_eq!(state.choose(now), Some(0));
}

#[test]
fn a_peer_that_may_fail_for_ever_is_never_out() {
    let now = start();
    let state = RoundRobin::new([Parameters { max_fails: 0, ..weighted(1) }]);
    for _ in 0..100 {
        let index = state.choose(now).expect("live");
        assert!(!state.failed(index, now));
        state.release(index);
    }
}
