use super::*;
use crate::pace::Random;

/// Searches a server that holds up to `ceiling`, where each trial fails by bad luck so often; the rate and the trials.
fn search(guess: f64, ceiling: f64, bad_luck: f64, seed: u64) -> (Option<f64>, u32) {
    let mut random = Random(seed);
    let mut search = Search::new(guess);
    let mut trials = 0;
    while let Some(rate) = search.next() {
        let is_unlucky = (random.bits() >> 11) as f64 / (1u64 << 53) as f64 <= bad_luck;
        search.tell(rate <= ceiling && !is_unlucky);
        trials += 1;
        assert!(trials <= TRIALS);
    }
    (search.found(), trials)
}

#[test]
fn the_ceiling_is_found_within_two_percent_from_guesses_near_and_far() {
    for ceiling in [3.0, 100.0, 5_000.0, 123_456.0] {
        for guess in [0.3, 0.7, 1.0, 1.5, 5.0, 50.0] {
            let (found, trials) = search(ceiling * guess, ceiling, -1.0, 0);
            let found = found.expect("there is one");
            assert!(found <= ceiling && found >= ceiling / 1.025, "{guess} × {ceiling}: {found} in {trials}");
        }
    }
    let (_, trials) = search(5_000.0, 5_000.0, -1.0, 0);
    assert!(trials <= 13, "the usual search is short: {trials}");
}

#[test]
fn a_stutter_now_and_then_does_not_spoil_it() {
    let near = (0..200).filter(|seed| {
        search(5_000.0, 5_000.0, 0.05, *seed).0.is_some_and(|found| found > 4_750.0 && found <= 5_000.0)
    });
    assert!(near.count() >= 190);
}

#[test]
fn a_server_that_holds_nothing_ends_the_search() {
    let (found, trials) = search(1_000.0, 0.0, -1.0, 0);
    assert_eq!(found, None);
    assert!(trials <= TRIALS);
}

#[test]
fn rates_have_four_digits() {
    assert_eq!((round(8123.4567), round(0.123456), round(99.99)), (8123.0, 0.1235, 99.99));
}
