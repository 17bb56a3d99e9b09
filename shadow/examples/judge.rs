//! Judges what shadow recommends for random histories of endpoints whose truth is known, and measures its costs.
//!
//!     cargo run --release --example judge -- [histories] [requests per endpoint] [first seed]
//!     cargo run --release --example judge -- bench
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that measures and prints")]

#[path = "../tests/world/mod.rs"]
mod world;

use world::replay::{Score, judge};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (histories, requests, first) = (number(0, 200), number(1, 16_000), number(2, 1));
    let budget = millstream_shadow::report::STALE_BUDGET;
    let mut total = Score::default();
    for seed in first..first + histories {
        let mut history = world::history(seed, world::endpoint::ALL, requests as usize, budget);
        if arguments.get(3).is_some_and(|text| text == "table") {
            for route in &history.report.routes {
                println!("{}", serde_json::to_string(route).unwrap_or_default());
            }
        }
        let score = judge(&mut history, seed, budget);
        for line in score.leaks.iter().chain(&score.missed).chain(&score.wrong_lifetimes) {
            println!("{line}");
        }
        total.add(score);
    }
    println!(
        "{histories} histories: {} leaks; {} of {} cacheable routes found; {} of {} lifetimes wrong",
        total.leaks.len(),
        total.found,
        total.cacheable,
        total.wrong_lifetimes.len(),
        total.lifetimes
    );
}
