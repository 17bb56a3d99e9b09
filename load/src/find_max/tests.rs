//! The search against servers that are known: pure ones by simulation, and a real bucket of tokens.

use super::search::{FURTHER, round};
use super::*;
use crate::report::samples;
use crate::target::{Ask, Permission, resolve};
use crate::timed::{in_time, timed, work_on};
use fastrand::Rng;
use millstream_net::clock;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// A server whose p99 at a trial of a rate is known but for chance: the goal is met up to 1,000 a second in the middle.
#[derive(Clone, Copy)]
struct Server {
    /// How p99 grows: with which power of the rate. `None`: not at all up to the ceiling, beyond everything above it.
    growth: Option<i32>,
    /// The standard deviation of the logarithm of p99 between trials.
    noise: f64,
    /// The share of trials that fail whatever the rate.
    bad_luck: f64,
}

/// What the goal is met up to in the middle.
const TRUE: f64 = 1_000.0;

impl Server {
    fn holds(self, rate: f64, random: &mut Rng) -> bool {
        let mut uniform = || random.f64();
        let is_unlucky = uniform() < self.bad_luck;
        // Box and Muller's way to the normal distribution.
        let normal = (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let meets = match self.growth {
            None => rate <= TRUE,
            Some(power) => (rate / TRUE).powi(power) * (normal * self.noise).exp() <= 1.0,
        };
        meets && !is_unlucky
    }
}

const CEILING: Server = Server { growth: None, noise: 0.0, bad_luck: 0.0 };

/// Searches where so much holds; what was found, and after how many trials.
fn searched(guess: f64, mut holds: impl FnMut(f64) -> bool) -> (Option<(f64, Confirmed)>, u32) {
    let mut trials = 0;
    let found = search::search(guess, |rate, _| {
        trials += 1;
        assert!(trials <= 90);
        Ok::<_, ()>(Some(holds(rate)))
    });
    (found.expect("no trial ends it"), trials)
}

fn search(server: Server, guess: f64, random: &mut Rng) -> (Option<(f64, Confirmed)>, u32) {
    searched(guess, |rate| server.holds(rate, random))
}

/// Of so many searches: how many found a rate within 5 % of the true one, at how many that rate held in at least 8 of 10
/// further trials; and the mean of their trials.
fn simulate(server: Server, searches: u64) -> (u64, u64, u64) {
    let (mut near, mut hold, mut trials) = (0, 0, 0);
    for seed in 0..searches {
        let mut random = Rng::with_seed(seed << 20);
        let guess = TRUE * [0.7, 1.0, 1.5, 3.0][seed as usize % 4];
        let (found, took) = search(server, guess, &mut random);
        trials += took;
        let Some((rate, _)) = found else { continue };
        near += u64::from((rate / TRUE - 1.0).abs() <= 0.05);
        let further = (0..10).filter(|_| server.holds(rate, &mut random)).count();
        hold += u64::from(further >= 8);
    }
    (near, hold, u64::from(trials) / searches)
}

#[test]
fn a_reported_rate_holds_again_and_is_within_five_percent_of_the_true_one() {
    for (what, server, at_least) in [
        ("a hard ceiling", CEILING, 400),
        ("a hard ceiling on a machine that stutters", Server { bad_luck: 0.05, ..CEILING }, 380),
        ("p99 with the cube of the rate", Server { growth: Some(3), noise: 0.05, ..CEILING }, 366),
        ("p99 with the fifth power", Server { growth: Some(5), noise: 0.05, ..CEILING }, 366),
    ] {
        let (near, hold, trials) = simulate(server, 400);
        assert!(near >= 398, "{what}: {near} of 400 are near");
        assert!(hold >= at_least, "{what}: {hold} of 400 hold again");
        assert!(trials <= 45, "{what}: {trials} trials");
    }
}

#[test]
fn the_ceiling_is_found_within_two_percent_from_guesses_near_and_far() {
    for guess in [0.1, 0.3, 0.7, 1.0, 1.5, 5.0, 50.0] {
        let (found, trials) = search(CEILING, TRUE * guess, &mut Rng::with_seed(0));
        let (rate, confirmed) = found.expect("there is one");
        assert!((TRUE / 1.025..=TRUE).contains(&rate), "{guess}: {rate} in {trials}");
        assert_eq!(confirmed, Confirmed { held: FURTHER, of: FURTHER });
    }
}

#[test]
fn a_rate_that_failed_twice_by_bad_luck_is_tried_again_at_the_end() {
    let mut told = Vec::new();
    let (found, _) = searched(1_250.0, |rate| {
        told.push(rate);
        rate <= 5_000.0 && told.len() > 2
    });
    let (found, _) = found.expect("there is one");
    assert!((4_900.0..=5_000.0).contains(&found), "{found}: {told:?}");
}

#[test]
fn a_rate_that_held_once_by_luck_is_not_reported() {
    let mut lucky = 1;
    let (found, _) = searched(1_000.0, |rate| {
        // Of all trials above 700 one holds.
        let is_lucky = rate > 700.0 && lucky > 0;
        lucky -= i32::from(is_lucky);
        rate <= 700.0 || is_lucky
    });
    let (found, confirmed) = found.expect("there is one");
    assert!((665.0..=700.0).contains(&found) && confirmed.held == FURTHER, "{found} {confirmed:?}");
}

#[test]
fn a_server_that_holds_nothing_ends_the_search() {
    let (found, _) = search(Server { bad_luck: 1.0, ..CEILING }, 1_000.0, &mut Rng::with_seed(0));
    assert_eq!(found, None);
}

#[test]
fn trials_in_which_the_generator_was_late_say_nothing_about_the_rate() {
    for (late_share, at_least) in [(0.05, 200), (0.1, 200), (0.2, 100), (0.5, 0), (1.0, 0)] {
        let (mut told, mut longest) = (0, 0);
        for seed in 0..200 {
            let (mut random, mut trials, mut late) = (Rng::with_seed(seed << 20), 0, 0);
            let found = search::search(TRUE * 1.5, |rate, _| {
                if late >= LATE {
                    return Err(());
                }
                trials += 1;
                let is_late = random.f64() < late_share;
                late += usize::from(is_late);
                Ok((!is_late).then_some(rate <= TRUE))
            });
            longest = longest.max(trials);
            let Ok(Some((rate, confirmed))) = found else { continue };
            told += 1;
            assert_eq!(confirmed, Confirmed { held: FURTHER, of: FURTHER });
            assert!(rate <= TRUE, "{late_share} {seed}: {rate}");
        }
        assert!(told >= at_least, "{told} of 200 where {late_share} are late, {longest} trials at the most");
        assert!(late_share < 1.0 || longest == LATE as u32, "{longest}");
        assert!(longest <= if late_share < 0.5 { 90 } else { 60 }, "{late_share}: {longest}");
    }
    // A generator that cannot send so much: what it can is found, as it would be of a server.
    let found = search::search(TRUE, |rate, _| Ok::<_, ()>((rate <= 900.0).then_some(true)));
    let (rate, _) = found.expect("no trial ends it").expect("there is one");
    assert!((880.0..=900.0).contains(&rate), "{rate}");
}

/// A trial of this rate: `+` held, `-` did not, `?` the generator was late; behind `!` they are further ones.
fn trials(of: &[(f64, &'static str)]) -> Vec<Tried> {
    let of_rate = |&(rate, marks): &(f64, &'static str)| {
        let is_further = marks.starts_with('!');
        marks.trim_start_matches('!').chars().map(move |mark| {
            let miss = match mark {
                '+' => None,
                '-' => Some("p99 was 60ms".to_owned()),
                _ => Some("it sent late".to_owned()),
            };
            Tried { rate, is_further, is_late: mark == '?', miss, ..Tried::default() }
        })
    };
    of.iter().flat_map(of_rate).collect()
}

#[test]
fn what_is_said_of_a_search_is_what_its_trials_were() {
    let all = Some(Confirmed { held: 15, of: 15 });
    let confirmed = "!+++++++++++++++";
    for (confirmed, of, said) in [
        (
            all,
            &[(1e3, "+"), (1e3, confirmed)][..],
            "At least 1,000 requests/s hold, in 15 of 15 further trials; no trial above this rate failed",
        ),
        (
            all,
            &[(2e3, "--"), (1e3, "+"), (1e3, confirmed)],
            "1,000 requests/s hold, in 15 of 15 further trials; at 2,000 p99 was 60ms",
        ),
        // One that held the second time is not told as one that does not hold.
        (
            all,
            &[(2e3, "-+"), (2e3, "!+-+-"), (1e3, confirmed)],
            "1,000 requests/s hold, in 15 of 15 further trials; 2,000 held in 3 of 6 trials: p99 was 60ms",
        ),
        (
            all,
            &[(2e3, "??"), (1e3, "?+"), (1e3, confirmed)],
            "At least 1,000 requests/s hold, in 15 of 15 further trials; at 2,000 it sent late",
        ),
        (
            None,
            &[(1e3, "-+"), (1e3, "!++?")],
            "1,000 requests/s held in 3 of 4 trials, which is not confirmed: all trials were used",
        ),
        (
            None,
            &[(1e3, "+"), (1e3, "!+????????????????????")],
            "1,000 requests/s held in 2 of 2 trials, which is not confirmed: the generator was late in 20 of 22 \
             trials, which shows nothing about the server; use a quieter machine, or a separate one for the generator",
        ),
    ] {
        assert_eq!(conclusion(1e3, confirmed, &trials(of), "all trials were used"), said);
    }
    let stopped = conclusion(1e3, None, &trials(&[(1e3, "++")]), "the search was stopped");
    assert_eq!(
        stopped,
        "1,000 requests/s held in 2 of 2 trials, which is not confirmed: the search was stopped"
    );
    assert_eq!(
        nothing(&trials(&[(2e3, "--"), (1e3, "?--")])),
        "no rate held, not even 1,000 requests/s: p99 was 60ms"
    );
    let late = "unknown: the generator was late in 20 of 22 trials, which shows nothing about the server";
    assert!(nothing(&trials(&[(1e3, "--????????????????????")])).starts_with(late));
    // A rate that failed once and then held may be confirmed; one that failed twice of its further trials may not.
    let open = |marks| is_open(&trials(&[(1e3, "-+"), (1e3, marks)]), 1e3);
    assert_eq!([open("!+-???"), open("!+-+-")], [true, false]);
    assert!(!is_open(&trials(&[(1e3, "+"), (900.0, "!--")]), 1e3), "a lower one could not be confirmed");
}

#[test]
fn errors_of_a_server_that_a_late_generator_sent_bunches_are_not_the_rates() {
    let judged = |limits: Option<&str>, busiest_thread, share: f64| {
        let mut outcome = samples::open();
        outcome.counts.errors.status = (outcome.counts.answers as f64 * share) as u64;
        outcome.generator.limits = limits.map(str::to_owned);
        outcome.generator.busiest_thread = busiest_thread;
        let miss = Goal { p99: None, errors: 0.001 }.judge(&outcome, 100.0).expect("there are errors");
        assert!(miss.is_generators || miss.why.contains("were errors (status "), "{}", miss.why);
        miss.is_generators
    };
    let some = [judged(None, 0.1, 0.05), judged(Some("late"), 0.1, 0.05), judged(Some("busy"), 0.95, 0.05)];
    assert_eq!(some, [false, true, false]);
    assert!(!judged(Some("late"), 0.1, 1.0), "half are errors: no lateness makes so many");
}

#[test]
fn rates_have_four_digits() {
    assert_eq!((round(8123.4567), round(0.123456), round(99.99)), (8123.0, 0.1235, 99.99));
}

/// A server with a known ceiling: each request takes a token of a bucket that so many a second fall into, and waits for it.
fn token_bucket(rate: f64) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let bucket = Arc::new(Mutex::new(clock::now()));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let bucket = Arc::clone(&bucket);
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                    work_on(&stream, until_token(&mut bucket.lock().expect("nobody panics"), rate));
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// How much time's worth of tokens may lie in the bucket: a machine that stutters for so long takes none away.
const BURST: Duration = Duration::from_millis(25);

/// Takes the next token; how long until it falls.
fn until_token(next: &mut std::time::Instant, rate: f64) -> Duration {
    let now = clock::now();
    *next = (*next).max(now - BURST) + Duration::from_secs_f64(1.0 / rate);
    next.saturating_duration_since(now)
}

#[test]
fn the_ceiling_of_a_token_bucket_is_found_within_five_percent() {
    let ask = Ask { url: format!("http://{}/", token_bucket(800.0)), keep_alive: true, ..Ask::default() };
    let target = resolve(&ask, Permission::default()).expect("an address of this machine");
    let plan = Plan::closed(target, 16, 1, Duration::from_millis(500));
    let goal = Goal { p99: None, errors: 0.001 };
    timed(|| {
        let found = run(&plan, Arrivals::Constant, goal, &AtomicBool::new(false), &mut |_| {}).ok().flatten();
        let best = match found.as_ref().map(|found| found.mode) {
            Some(Mode::Open { rate, .. }) => rate,
            _ => 0.0,
        };
        let search = found.and_then(|found| found.search);
        assert!(best <= 840.0, "nothing makes a ceiling higher: {best} of {search:?}");
        // A virtual machine's host may leave it less than the ceiling for as long as a search takes.
        let is_confirmed = search.as_ref().is_some_and(|search| search.confirmed.is_some());
        in_time(best >= 760.0 && is_confirmed, format_args!("{best} of {search:?}"))
    });
}

/// Searches a bucket of so many tokens a second, in trials of so many milliseconds, until the user has seen enough.
fn searched_until(
    rate: f64,
    trial: u64,
    mut has_seen_enough: impl FnMut(&SearchSight<'_>) -> bool,
) -> Result<Option<Outcome>, PlanError> {
    let ask = Ask { url: format!("http://{}/", token_bucket(rate)), keep_alive: true, ..Ask::default() };
    let target = resolve(&ask, Permission::default()).expect("an address of this machine");
    let plan = Plan::closed(target, 16, 1, Duration::from_millis(trial));
    let (goal, stop) = (Goal { p99: None, errors: 0.001 }, AtomicBool::new(false));
    run(&plan, Arrivals::Constant, goal, &stop, &mut |sight| {
        if has_seen_enough(&sight) {
            stop.store(true, Ordering::Relaxed);
        }
    })
}

#[test]
fn a_search_that_the_user_stops_tells_what_had_held_until_then() {
    timed(|| {
        let mut held = None;
        let found = searched_until(800.0, 500, |sight| {
            if let SearchSight::Ended(trial) = sight
                && trial.miss.is_none()
            {
                held = Some(trial.rate);
            }
            held.is_some()
        });
        let Some(rate) = held else { return in_time(false, "no trial held") };
        let found = found.expect("it answers").expect("a trial held");
        let search = found.search.expect("it is a search's");
        assert!(matches!(found.mode, Mode::Open { rate: told, .. } if told == rate));
        assert_eq!(search.confirmed, None);
        let said = format!("{} requests/s held in 1 of ", Number(rate));
        assert!(search.found.starts_with(&said), "{}", search.found);
        assert!(search.found.ends_with("which is not confirmed: the search was stopped"), "{}", search.found);
        Ok(())
    });
    let nothing = searched_until(800.0, 500, |sight| matches!(sight, SearchSight::Begins(Some(_))));
    assert_eq!(nothing.map(|found| found.is_none()), Ok(true), "no trial had ended");
}

#[test]
fn a_trial_that_is_too_short_for_its_rate_is_lengthened() {
    timed(|| {
        let mut lengthened = None;
        let found = searched_until(50.0, 400, |sight| {
            if let SearchSight::Lengthened(rate, trial) = sight {
                lengthened = Some((*rate, *trial));
            }
            matches!(sight, SearchSight::Begins(Some(_)))
        });
        let Some((rate, trial)) = lengthened else { return in_time(false, format_args!("{found:?}")) };
        // Even where a single request takes no time at all.
        let shortest = least(Goal { p99: None, errors: 0.001 }, rate, Duration::ZERO);
        assert!(trial.as_secs_f64() >= shortest, "{trial:?} at {rate}");
        assert!(trial > Duration::from_millis(400), "{trial:?} at {rate}");
        Ok(())
    });
}

/// What an open loop of so many seconds finds of a server that answers in the order of arrival, so many a second at most, each
/// after `latency` seconds at least.
fn trial(seconds: f64, rate: f64, ceiling: f64, latency: f64, connections: u32) -> Outcome {
    let mut outcome = crate::report::samples::open();
    outcome.connections = connections;
    outcome.seconds = seconds;
    outcome.counts = Default::default();
    let mut sums = vec![(0.0, 0u64); (seconds * 10.0) as usize];
    let mut free = 0.0f64;
    for number in 0..(rate * seconds) as u64 {
        let due = number as f64 / rate;
        free = free.max(due) + 1.0 / ceiling;
        let end = free + latency;
        if end < seconds {
            let (sum, count) = &mut sums[(end * 10.0) as usize];
            (*sum, *count) = (*sum + (end - due) * 1e6, *count + 1);
            outcome.counts.answers += 1;
        } else {
            outcome.counts.unfinished += 1;
        }
    }
    let slice = |(place, (sum, answers)): (usize, &(f64, u64))| crate::outcome::Slice {
        at: place as f64 / 10.0,
        seconds: 0.1,
        answers: *answers,
        mean: if *answers > 0 { sum / *answers as f64 } else { 0.0 },
        ..Default::default()
    };
    outcome.slices = sums.iter().enumerate().map(slice).collect();
    outcome.latency = crate::outcome::Latency::of(&crate::histogram::empty());
    outcome
}

#[test]
fn a_queue_that_grows_is_a_server_that_falls_behind_however_many_connections_there_are() {
    let goal = Goal { p99: None, errors: 0.001 };
    for connections in [10, 500, 10_000] {
        let miss = |rate: f64, latency: f64| {
            let trial = trial(5.0, rate, 1_000.0, latency, connections);
            tried(goal, &trial, latency + 0.001).miss.unwrap_or_default()
        };
        for rate in [10.0, 500.0, 1_000.0, 1_005.0] {
            assert_eq!(miss(rate, 0.001), "", "{rate} with {connections}");
        }
        // A slow answer is on its way for long, and late by nothing.
        assert_eq!(miss(990.0, 0.4), "");
        assert!(miss(1_025.0, 0.001).ends_with("got a response in time"), "with {connections}");
        for rate in [1_040.0, 1_085.0, 2_000.0] {
            assert!(miss(rate, 0.001).ends_with("got a response in time"), "{rate} with {connections}");
            assert!(miss(rate, 0.4).ends_with("got a response in time"), "{rate} with {connections}, slow");
        }
    }
}

#[test]
fn a_trial_that_is_long_enough_tells_a_rate_that_is_a_tenth_too_high_from_one_that_holds() {
    let goal = Goal { p99: None, errors: 0.001 };
    let (mut long, mut short) = (0, 0);
    for ceiling in [5.0, 20.0, 100.0, 1_000.0, 20_000.0] {
        for latency in [0.000_2, 0.02, 0.1, 0.4] {
            for seconds in [0.1, 0.2, 0.3, 0.5, 0.8, 2.0, 5.0, 30.0] {
                if seconds < least(goal, ceiling, Duration::from_secs_f64(latency)) {
                    short += 1;
                    continue;
                }
                long += 1;
                let alone = latency + 1.0 / ceiling;
                let miss = |rate| tried(goal, &trial(seconds, rate, ceiling, latency, 10_000), alone).miss;
                assert_eq!(miss(ceiling * 0.98), None, "{seconds} s, {ceiling} a second, {latency} s each");
                assert!(miss(ceiling * 1.1).is_some(), "{seconds} s, {ceiling} a second, {latency} s each");
            }
        }
    }
    assert!(long > 40 && short > 60, "{long} {short}");
}

#[test]
fn a_trial_that_is_too_short_is_refused_with_the_least() {
    for (p99, rate, alone, expected) in [
        (None, RATE, 0, 0.2),
        (None, RATE, 20, 0.2),
        (None, RATE, 45, 0.5),
        (None, RATE, 700, 7.0),
        (None, 1_000.0, 20, 0.3),
        (None, 100.0, 20, 1.1),
        (None, 50.0, 100, 2.9),
        (None, 5.0, 200, 18.7),
        (Some(1), 100.0, 1, 1.0),
    ] {
        let told = least(Goal { p99, errors: 0.001 }, rate, Duration::from_millis(alone));
        assert_eq!(told, expected, "{rate} a second of {alone} ms");
    }
    let plan = Plan { duration: Some(Duration::from_millis(300)), ..samples::plan() };
    let said = |alone| check(&plan, Goal { p99: None, errors: 0.001 }, Duration::from_millis(alone));
    let words = "-d 300ms is too short to show whether the server keeps up (a single request takes 45ms): write -d 500ms or more";
    assert_eq!((said(20), said(45)), (Ok(()), Err(PlanError(words.to_owned()))));
}

#[test]
fn what_a_flooded_server_leaves_unanswered_is_not_allowed_for_by_the_latency_that_it_has_then() {
    let goal = Goal { p99: None, errors: 0.001 };
    // 4,642 were due in a fifth of a second, 168 were answered, and these took longer than the whole trial.
    let mut flooded = trial(0.2, 23_210.0, 100_000.0, 0.001, 10_000);
    flooded.counts = crate::outcome::Counts { answers: 168, unfinished: 4_474, ..Default::default() };
    flooded.slices.iter_mut().for_each(|slice| (slice.answers, slice.mean) = (84, 530_000.0));
    let told = tried(goal, &flooded, 0.001);
    assert!(told.miss.is_some_and(|miss| miss.ends_with("got a response in time")));
    assert!(told.under_way_allowed < 50, "{}", told.under_way_allowed);
    // Whatever lower rates took, it is never more than a tenth of what was due, but for chance.
    let told = tried(goal, &flooded, 10.0);
    assert!(told.miss.is_some() && told.under_way_allowed < 520, "{}", told.under_way_allowed);
    let of = |rate, mean| {
        let mut outcome = samples::open();
        outcome.latency.mean = mean;
        (rate, outcome)
    };
    let held = [of(100.0, 3_000.0), of(200.0, 5_000.0), of(400.0, 90_000.0)];
    assert_eq!(calm(Duration::from_millis(1), &held, 400.0), 0.005, "only lower rates tell");
    assert_eq!(calm(Duration::from_millis(1), &held, 100.0), 0.001);
}

#[test]
fn a_p99_that_is_longer_than_the_trial_does_not_hold() {
    let mut outcome = trial(0.2, 500.0, 1_000.0, 0.001, 10);
    let mut histogram = crate::histogram::empty();
    histogram.saturating_record(530_000);
    outcome.latency = crate::outcome::Latency::of(&histogram);
    let told = tried(Goal { p99: None, errors: 0.001 }, &outcome, 0.001);
    assert_eq!(told.miss.as_deref(), Some("p99 was 530ms"));
}

#[test]
fn where_nothing_was_answered_that_is_said_and_not_that_all_were_errors() {
    let mut outcome = samples::open();
    outcome.counts = crate::outcome::Counts { unfinished: 300, ..Default::default() };
    outcome.generator.limits = Some("it sent late".to_owned());
    let told = tried(Goal { p99: None, errors: 0.001 }, &outcome, 0.001);
    assert_eq!((told.miss.as_deref(), told.is_late), (Some("there was no response in time"), false));
}

#[test]
fn of_a_search_that_ended_early_the_highest_rate_that_may_still_be_confirmed_is_told() {
    let of = |marks: &[(f64, &'static str)], held: &[f64]| likeliest(&trials(marks), held.iter().copied());
    assert_eq!(of(&[(2e3, "+"), (1e3, "+")], &[1e3, 2e3]), Some(2e3));
    assert_eq!(of(&[(1e3, "+"), (2e3, "+"), (2e3, "!--")], &[1e3, 2e3]), Some(1e3));
    // None of them may: it is told how often it held, and that it is not confirmed.
    assert_eq!(of(&[(2e3, "+"), (1e3, "+"), (1e3, "!--")], &[1e3, 2e3]), Some(1e3));
    assert_eq!(of(&[], &[]), None);
}

/// A server that answers so many requests and is gone then.
fn dying(requests: u64) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let (mut left, mut buffer) = (requests, [0; 1024]);
        // One connection at a time: that of the load, and between trials that of a single request.
        for mut stream in listener.incoming().flatten() {
            while left > 0 && stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                left -= 1;
                _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
            if left == 0 {
                return;
            }
        }
    });
    address
}

#[test]
fn an_api_that_dies_ends_the_search_with_what_had_held() {
    timed(|| {
        let ask = Ask { url: format!("http://{}/", dying(20_000)), keep_alive: true, ..Ask::default() };
        let target = resolve(&ask, Permission::default()).expect("an address of this machine");
        let plan = Plan {
            timeout: Duration::from_millis(500),
            ..Plan::closed(target, 1, 1, Duration::from_millis(200))
        };
        let (goal, mut told) = (Goal { p99: None, errors: 0.001 }, Vec::new());
        let found = run(&plan, Arrivals::Constant, goal, &AtomicBool::new(false), &mut |sight| {
            if let SearchSight::Ended(trial) = sight {
                told.push(trial.answered);
            }
        });
        let silent = told.iter().rev().take_while(|answered| **answered == 0.0).count();
        let said = match found {
            Ok(found) => found.and_then(|found| found.search).map_or_else(String::new, |search| search.found),
            Err(error) => error.0,
        };
        in_time(
            silent <= 3 && said.contains("the API has not responded since"),
            format_args!("{said}: {told:?}"),
        )
    });
}

#[test]
fn a_trial_that_misses_with_a_late_generator_says_nothing_unless_the_server_is_too_slow_without_the_delay() {
    let goal = Goal { p99: Some(500_000), errors: 0.001 };
    let slow = |p99: u64, send_lag_p99: u64| {
        let mut outcome = trial(5.0, 500.0, 1_000.0, 0.001, 10);
        let mut histogram = crate::histogram::empty();
        histogram.saturating_record(p99);
        outcome.latency = crate::outcome::Latency::of(&histogram);
        outcome.generator.send_lag_p99 = send_lag_p99;
        outcome.generator.limits = Some("it is late".to_owned());
        goal.judge(&outcome, 10.0)
    };
    assert_eq!(slow(400_000, 100_000), None, "it held, however late");
    assert!(slow(550_000, 100_000).is_some_and(|miss| miss.is_generators), "without it, within the bound");
    assert!(slow(650_000, 100_000).is_some_and(|miss| !miss.is_generators));
}

#[test]
fn a_server_that_closes_connections_in_use_is_named_as_the_cause() {
    let named = |keep_alive: bool, opened: u64| {
        let mut outcome = samples::open();
        outcome.counts.errors.closed = outcome.counts.answers / 2;
        (outcome.keep_alive, outcome.connections) = (keep_alive, 1_000);
        (outcome.counts.answers, outcome.counts.connections) = (10_000, opened);
        outcome.generator.limits = None;
        let miss = Goal { p99: None, errors: 0.001 }.judge(&outcome, 100.0).expect("there are errors");
        miss.why.contains("worker_connections")
    };
    let cases = [(true, 1_000, false), (true, 1_900, false), (true, 3_000, true), (false, 10_000, false)];
    for (keep_alive, opened, is_named) in cases {
        assert_eq!(named(keep_alive, opened), is_named, "{opened}, keep-alive {keep_alive}");
    }
}
