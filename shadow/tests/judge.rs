//! What is recommended for endpoints whose truth is known leaks nothing, and finds what can be cached.

mod world;

use millstream_shadow::report::STALE_BUDGET;
use world::endpoint::ALL;
use world::replay::judge;

#[test]
fn no_recommendation_leaks_and_most_of_what_can_be_cached_is_found() {
    let mut history = world::history(7, ALL, 12_000, STALE_BUDGET);
    let score = judge(&mut history, 7, STALE_BUDGET);
    assert!(score.leaks.is_empty(), "{:?}", score.leaks);
    assert!(score.cacheable >= 15, "{}", score.cacheable);
    assert!(score.found * 10 >= score.cacheable * 9, "{:?}", score.missed);
    assert!(score.wrong_lifetimes.is_empty(), "{:?}", score.wrong_lifetimes);
    assert!(score.wrong_ratios.len() * 20 <= score.ratios as usize, "{:?}", score.wrong_ratios);
    assert!(score.runs_over_budget == 0 && score.ratios >= 20, "{:?}", score.over_budget);
    assert!(history.shadow.bytes() < 32 << 20, "{}", history.shadow.bytes());
}
