//! What is claimed of whole runs, and what is not.

use super::*;
use crate::outcome::Latency;
use crate::plan::Arrivals;
use crate::report::samples;

/// Runs with these rates, each latency the inverse.
fn side(name: &str, rates: &[f64]) -> Vec<RunFile> {
    let run = |(place, rate): (usize, &f64)| {
        let mut outcome = samples::nothing();
        outcome.counts.errors = Default::default();
        (outcome.seconds, outcome.counts.answers) = (10.0, (rate * 10.0) as u64);
        // In turns with those of the other side.
        outcome.began_unix_milliseconds = 1_000 * place as u64 + u64::from(name > "a");
        let mut latency = crate::histogram::empty();
        latency.record_n((1e6 / rate) as u64, 1_000).expect("it is in its bounds");
        outcome.latency = Latency::of(&latency);
        RunFile { name: format!("{name}{place}"), outcome }
    };
    rates.iter().enumerate().map(run).collect()
}

#[test]
fn four_runs_that_do_not_overlap_differ_and_three_are_too_few() {
    let (slow, fast) = ([100.0, 104.0, 98.0, 101.0], [120.0, 131.0, 119.0, 125.0]);
    for (a, b, expected) in [
        (&slow[..], &fast[..], Change::Better),
        (&fast, &slow, Change::Worse),
        (&slow, &[99.0, 103.0, 102.0, 125.0], Change::Same),
        (&slow, &slow, Change::Same),
        (&slow[..3], &fast[..3], Change::Unknown),
        (&slow[..1], &fast[..1], Change::Unknown),
    ] {
        let comparison = compare(&side("a", a), &side("b", b), None);
        assert_eq!(comparison.verdict, expected, "{a:?} {b:?}: {comparison:?}");
        // A rate that is higher by as much is a latency that is shorter by as much.
        let by_latency = compare(&side("a", a), &side("b", b), Some(Metric::Latency(99.0)));
        assert_eq!(by_latency.verdict, expected, "{a:?} {b:?}");
    }
    let told = text(&compare(&side("a", &slow), &side("b", &fast), None), 100);
    let says = "b is faster: it serves 22 % more requests per second than a (+14.4 % to +33.7 %).\n";
    assert!(told.starts_with(says), "{told}");
    let told = text(&compare(&side("a", &slow[..1]), &side("b", &fast[..1]), None), 100);
    let says = "Whether they differ is unknown: the difference between 1 run and 1 run may be chance";
    assert!(told.starts_with(says), "{told}");
}

#[test]
fn an_open_loop_is_judged_by_its_latency_and_not_by_the_rate_that_it_was_given() {
    let open = |name: &str, rates: &[f64]| {
        let mut runs = side(name, rates);
        runs.iter_mut()
            .for_each(|run| run.outcome.mode = Mode::Open { rate: 50.0, arrivals: Arrivals::Constant });
        runs
    };
    let (a, b) = (open("a", &[100.0, 101.0, 102.0, 103.0]), open("b", &[200.0, 201.0, 202.0, 203.0]));
    let comparison = compare(&a, &b, None);
    assert_eq!((comparison.judged, comparison.verdict), (Metric::Latency(99.0), Change::Better));
    let comparison = compare(&a, &b, Some(Metric::Rate));
    assert_eq!(comparison.why.as_deref(), Some("an open loop sets the rate itself"));
}

#[test]
fn a_latency_that_is_only_known_to_be_long_can_be_longer_and_not_shorter() {
    let (short, mut long) =
        (side("a", &[200.0, 201.0, 202.0, 203.0]), side("b", &[100.0, 101.0, 102.0, 103.0]));
    long[2].outcome.latency.known_to = 90.0;
    let by = Some(Metric::Latency(99.0));
    assert_eq!(compare(&short, &long, by).verdict, Change::Worse);
    assert_eq!(compare(&long, &short, by).verdict, Change::Better);
    let mut short = short;
    short[0].outcome.latency.known_to = 90.0;
    assert_eq!(compare(&short, &long, by).verdict, Change::Unknown);
}

#[test]
fn runs_that_are_not_of_one_kind_and_sides_that_did_not_take_turns_are_named() {
    let (a, mut b) = (side("a", &[100.0; 4]), side("b", &[100.0; 4]));
    assert_eq!(compare(&a, &b, None).warnings, Vec::<String>::new());
    b[1].outcome.connections += 1;
    b[2].outcome.seconds = 1.0;
    b.iter_mut().for_each(|run| run.outcome.began_unix_milliseconds += 1_000_000);
    let warnings = compare(&a, &b, None).warnings;
    let begin = [
        "Number of connections differs in b1: 201, and 200 in a0",
        "SHORT in b2: 1s; slow",
        "all runs of one side came before",
    ];
    assert_eq!(warnings.len(), begin.len(), "{warnings:?}");
    for (warning, begin) in warnings.iter().zip(begin) {
        assert!(warning.starts_with(begin), "{warning}");
    }
}

#[test]
fn a_warning_that_holds_for_several_runs_is_told_once() {
    let (mut a, mut b) = (side("a", &[100.0; 4]), side("b", &[100.0; 4]));
    a.iter_mut().chain(&mut b).for_each(|run| run.outcome.seconds = 1.0);
    for (place, run) in b.iter_mut().take(3).enumerate() {
        run.outcome.connections += 1;
        run.outcome.generator.limits = Some(format!("it was late by {place} ms"));
    }
    let warnings = compare(&a, &b, None).warnings;
    let said = [
        "SHORT in 8 of 8 runs: 1s; slow moments may be missing",
        "Number of connections differs in 3 of 8 runs: 201, and 200 in a0",
        "FLOOR in 3 of 8 runs, such as b0: it was late by 0 ms. The server can do at least this; this run does not show how much more.",
    ];
    assert_eq!(warnings, said);
}

#[test]
fn a_run_that_is_given_twice_is_named() {
    let a = side("a", &[100.0, 101.0, 102.0, 103.0]);
    let warnings = compare(&a, &a, None).warnings;
    assert_eq!(
        warnings,
        [
            "SAME RUN in 4 of 8 runs, such as a0: it is the same run as a0, and a run cannot be compared with itself"
        ]
    );
}

#[test]
fn a_side_without_an_answer_has_no_latency_and_is_neither_faster_nor_slower() {
    let (a, mut b) = (side("a", &[100.0, 101.0, 102.0, 103.0]), side("b", &[100.0; 4]));
    b.iter_mut().for_each(|run| run.outcome = Outcome { seconds: 10.0, ..samples::nothing() });
    for (place, run) in b.iter_mut().enumerate() {
        run.outcome.began_unix_milliseconds = place as u64;
    }
    let comparison = compare(&a, &b, Some(Metric::Latency(99.0)));
    let why = "no request got a response in b0, so it has no latency";
    assert_eq!((comparison.verdict, comparison.why.as_deref()), (Change::Unknown, Some(why)));
    let told = text(&comparison, 100);
    let line = told.lines().find(|line| line.contains("Latency 99%")).expect("it has one");
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells[2..5], ["9.86ms", "-", "-"], "{line}");
    assert_eq!(compare(&a, &b, None).verdict, Change::Worse, "it serves fewer");
}

#[test]
fn a_closed_loop_and_an_open_one_and_a_run_and_itself_cannot_be_compared() {
    let (a, mut b) = (side("a", &[100.0, 101.0, 102.0, 103.0]), side("b", &[200.0, 201.0, 202.0, 203.0]));
    let by = Some(Metric::Latency(50.0));
    assert_eq!(compare(&a, &b, by).verdict, Change::Better);
    b[3].outcome.mode = Mode::Open { rate: 50.0, arrivals: Arrivals::Constant };
    for by in [by, None] {
        let comparison = compare(&a, &b, by);
        assert_eq!(comparison.verdict, Change::Unknown);
        assert!(
            comparison.why.is_some_and(|why| why.starts_with("a closed loop counts latency from sending"))
        );
    }
    let comparison = compare(&a, &a, by);
    assert_eq!(comparison.verdict, Change::Unknown);
    assert!(comparison.why.is_some_and(|why| why.starts_with("a0 belongs to both sides")));
}
