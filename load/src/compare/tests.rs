//! Simulated runs: how often equal ones are called equal, and different ones different.
//!
//! A run is a level that wanders from slice to slice (first-order autoregressive) and requests around it; the seeds are
//! fixed, so each count is the same every time.

use super::*;
use crate::outcome::{Generator, Latency};
use crate::report::samples::{self, Noise};

/// How a run is made.
#[derive(Clone, Copy)]
struct Recipe {
    slices: usize,
    /// Requests of a slice that go into the histogram.
    requests: u64,
    /// The mean latency, microseconds; the rate is its inverse.
    level: f64,
    /// The standard deviation of a slice's level, relative.
    wander: f64,
    /// Correlation of neighbouring levels.
    memory: f64,
}

const USUAL: Recipe = Recipe { slices: 100, requests: 100, level: 1_000.0, wander: 0.1, memory: 0.5 };

fn run(recipe: Recipe, seed: u64) -> Outcome {
    let mut noise = Noise(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut whole = histogram::empty();
    let mut offset = noise.normal();
    let mut outcome = samples::nothing();
    for place in 0..recipe.slices {
        offset = recipe.memory * offset + (1.0 - recipe.memory.powi(2)).sqrt() * noise.normal();
        let level = recipe.level * (recipe.wander * offset).exp();
        let mut slice: Vec<u64> =
            (0..recipe.requests).map(|_| (level * (0.3 * noise.normal()).exp()) as u64).collect();
        slice.iter().for_each(|value| whole.saturating_record(*value));
        slice.sort_unstable();
        let at = |share: f64| slice[((slice.len() as f64 * share).ceil() as usize - 1).min(slice.len() - 1)];
        outcome.slices.push(Slice {
            at: place as f64 / 10.0,
            seconds: 0.1,
            answers: (2e7 / level * (1.0 + 0.02 * noise.normal())) as u64,
            errors: 0,
            mean: level,
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        });
    }
    outcome.latency = Latency::of(&whole);
    outcome.counts.errors = Default::default();
    outcome.counts.answers = outcome.slices.iter().map(|slice| slice.answers).sum();
    outcome.seconds = recipe.slices as f64 / 10.0;
    outcome
}

/// In how many of 100 pairs the rate, and in how many any percentile, is said to differ; and each percentile by itself.
fn found(a: Recipe, b: Recipe) -> (usize, usize, [usize; COMPARED.len()]) {
    let (mut rate, mut any, mut each) = (0, 0, [0; COMPARED.len()]);
    for seed in 0..100 {
        let comparison = compare(&run(a, 2 * seed + 1), &run(b, 2 * seed + 2));
        rate += usize::from(comparison.rate.verdict == Difference::Differs);
        let differs = comparison.percentiles.iter().map(|finding| finding.verdict == Difference::Differs);
        any += usize::from(differs.clone().any(|differs| differs));
        each.iter_mut().zip(differs).for_each(|(count, differs)| *count += usize::from(differs));
    }
    (rate, any, each)
}

#[test]
fn runs_of_one_distribution_are_called_equal_in_93_of_100() {
    for recipe in [
        Recipe { memory: 0.0, requests: 50, ..USUAL },
        USUAL,
        Recipe { memory: 0.8, requests: 50, ..USUAL },
        Recipe { slices: 50, ..USUAL },
        Recipe { wander: 0.01, slices: 50, ..USUAL },
    ] {
        let (rate, any, each) = found(recipe, recipe);
        let Recipe { slices, wander, memory, .. } = recipe;
        assert!(rate <= 7, "{slices} slices, {wander}, {memory}: {rate} rates");
        assert!(any <= 7, "{slices} slices, {wander}, {memory}: {any} with a percentile, {each:?}");
    }
}

#[test]
fn a_shift_of_a_tenth_in_the_rate_is_found_in_90_of_100_with_100_slices() {
    let (rate, any, each) = found(USUAL, Recipe { level: 1_100.0, ..USUAL });
    assert!(rate >= 90, "{rate} rates, {any} with a percentile, {each:?}");
}

#[test]
fn a_shift_of_a_tenth_in_latency_is_found_in_90_of_100_with_200_slices() {
    let usual = Recipe { slices: 200, ..USUAL };
    let (_, any, each) = found(usual, Recipe { level: 1_100.0, ..usual });
    assert!(any >= 90 && each[0] >= 90, "{any} with a percentile, {each:?}");
}

#[test]
fn ten_times_the_requests_do_not_make_noise_a_difference() {
    // With requests taken as independent, a million of them would call every wandering run different.
    let recipe = Recipe { requests: 1_000, slices: 60, ..USUAL };
    let differs = (0..10).filter(|seed| {
        let comparison = compare(&run(recipe, 1_000 + 2 * seed), &run(recipe, 1_001 + 2 * seed));
        comparison.percentiles.iter().any(|finding| finding.verdict == Difference::Differs)
    });
    assert!(differs.count() <= 1);
}

#[test]
fn runs_without_any_overlap_differ_however_few_their_answers_are() {
    let few = Recipe { requests: 40, slices: 12, ..USUAL };
    let (fast, slow) = (run(few, 1), run(Recipe { level: few.level * 1_000.0, ..few }, 2));
    let comparison = compare(&fast, &slow);
    assert!(
        comparison.percentiles.iter().all(|finding| finding.verdict == Difference::Differs),
        "{comparison:?}"
    );
    assert!(text(&comparison, ("a", "b")).contains("its latency is longer at 50%, 75%, 90%, 99%, 99.9%"));
}

#[test]
fn a_run_compared_with_itself_differs_in_nothing() {
    for outcome in [samples::closed(), samples::failing(), run(USUAL, 1)] {
        let comparison = compare(&outcome, &outcome);
        assert_eq!(comparison.rate.verdict, Difference::Noise);
        assert!(comparison.percentiles.iter().all(|finding| finding.verdict != Difference::Differs));
    }
}

#[test]
fn what_cannot_be_told_is_said() {
    let short = run(Recipe { slices: 9, ..USUAL }, 1);
    let comparison = compare(&short, &run(USUAL, 2));
    assert_eq!(comparison.rate.verdict, Difference::Unknown("too short: fewer than 10 slices".to_owned()));
    assert!(comparison.warnings.contains(&"a is short (0.9s): slow moments may be missing".to_owned()));
    let comparison = compare(&samples::open(), &samples::open());
    assert_eq!(comparison.rate.verdict, Difference::Unknown("an open loop sets the rate itself".to_owned()));
    let comparison = compare(&samples::nothing(), &samples::nothing());
    assert!(matches!(comparison.rate.verdict, Difference::Unknown(_)));
    let mut damaged = run(USUAL, 3);
    damaged.latency.histogram = "?".to_owned();
    let comparison = compare(&damaged, &run(USUAL, 4));
    assert!(comparison.percentiles.iter().all(|finding| matches!(finding.verdict, Difference::Unknown(_))));
}

#[test]
fn what_had_no_answer_at_the_end_is_only_known_to_be_longer() {
    let with = |level: f64, known_to: f64| {
        let mut outcome = run(Recipe { level, ..USUAL }, level as u64);
        outcome.latency.known_to = known_to;
        outcome
    };
    let verdict = |a: &Outcome, b: &Outcome| compare(a, b).percentiles[0].verdict.clone();
    assert_eq!(verdict(&with(1_000.0, 100.0), &with(2_000.0, 100.0)), Difference::Differs);
    assert_eq!(verdict(&with(1_000.0, 100.0), &with(2_000.0, 40.0)), Difference::Differs, "longer than that");
    assert_eq!(verdict(&with(2_000.0, 40.0), &with(1_000.0, 100.0)), Difference::Differs);
    assert!(matches!(verdict(&with(1_000.0, 40.0), &with(2_000.0, 100.0)), Difference::Unknown(_)));
    assert!(matches!(verdict(&with(1_000.0, 100.0), &with(1_001.0, 40.0)), Difference::Unknown(_)));
    let warned = compare(&samples::closed(), &samples::killed()).warnings.join("\n");
    for words in ["b was ended by the user", "b had no answer to 50.0 % of its requests"] {
        assert!(warned.contains(words), "{warned}");
    }
}

#[test]
fn files_are_compared_and_what_is_no_such_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (a, b) = (folder.path().join("a.json"), folder.path().join("b.json"));
    std::fs::write(&a, json::write(&samples::closed())).expect("the folder is writable");
    std::fs::write(&b, "{}").expect("the folder is writable");
    assert!(files(&a, &a).is_ok_and(|text| text.contains("within noise")));
    assert!(
        files(&a, &b).is_err_and(|error| error.to_string().contains("b.json: no file of millstream.bench"))
    );
}

#[test]
fn runs_of_another_kind_are_warned_of() {
    let a = run(USUAL, 1);
    let mut b = Outcome { connections: 50, keep_alive: false, tls: true, ..run(USUAL, 2) };
    b.urls = vec!["http://127.0.0.1/other".to_owned()];
    b.mode = samples::open().mode;
    b.generator = Generator { limits: Some("one thread was busy.".to_owned()), ..Generator::default() };
    b.counts.errors.timeout = b.counts.answers;
    insta::assert_snapshot!(compare(&a, &b).warnings.join("\n"));
}

#[test]
fn the_report_reads_from_doubt_to_figures_to_words() {
    let faster = compare(&run(USUAL, 1), &run(Recipe { level: 900.0, ..USUAL }, 2));
    insta::assert_snapshot!(text(&faster, ("before.json", "after.json")));
    let equal = compare(&run(USUAL, 1), &Outcome { connections: 7, ..run(USUAL, 2) });
    insta::assert_snapshot!(text(&equal, ("a.json", "b\x1b[2J.json")));
}

#[test]
fn figures_of_any_length_stand_apart_in_the_report() {
    let mut comparison = compare(&run(USUAL, 1), &run(USUAL, 2));
    for (value, low, high) in [(0.5, 0.4, 0.6), (1234.555, 555.262, 123_456.789), (1.0, 0.9, 98_765_432.1)] {
        let finding = &mut comparison.rate;
        (finding.a, finding.b) = (123_456_789_012.0, 987_654_321_098.0);
        (finding.ratio, finding.verdict) = (Some(Ratio { value, low, high }), Difference::Differs);
        let text = text(&comparison, ("a", "b"));
        let line = text.lines().find(|line| line.contains("Requests/s")).expect("the rate has a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        let interval = [format!("{value:.3}"), format!("{low:.3}"), "–".to_owned(), format!("{high:.3}")];
        assert_eq!(words[0], "Requests/s", "{line}");
        assert_eq!(words[1..3], ["123,456,789,012", "987,654,321,098"], "{line}");
        assert_eq!(words[3..7], interval, "{line}");
        assert_eq!(words[7..].join(" "), "differs by more than noise", "{line}");
    }
}
