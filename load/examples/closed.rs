//! A closed loop from the command line, for measuring the generator itself: `closed URL CONNECTIONS THREADS SECONDS`.
#![allow(clippy::print_stdout, reason = "its one line is what it is for")]

use millstream_load::plan::Plan;
use millstream_load::target::{Ask, Permission, resolve};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let number = |place: usize, or: u32| words.get(place).map_or(Ok(or), |word| word.parse());
    let url = words.get(1).ok_or("closed URL CONNECTIONS THREADS SECONDS")?;
    let ask = Ask { url: url.clone(), keep_alive: true, ..Ask::default() };
    let target = resolve(&ask, Permission::default())?;
    let duration = Duration::from_secs(u64::from(number(4, 5)?));
    let plan = Plan::closed(target, number(2, 200)?, number(3, 2)?, duration);
    let outcome = millstream_load::drive::run(&plan, &AtomicBool::new(false), &mut |_| {})?;
    println!(
        "{:.0} answers/s, {:.2} µs CPU each, p50 {} µs, p99 {} µs, max {} µs, errors {:?}, busiest {:.2}, machine {:.2}, {:?}",
        outcome.rate(),
        outcome.generator.cpu_per_answer,
        outcome.latency.percentile(50.0),
        outcome.latency.percentile(99.0),
        outcome.latency.max,
        outcome.counts.errors,
        outcome.generator.busiest_thread,
        outcome.generator.machine_busy,
        outcome.generator.limits,
    );
    Ok(())
}
