//! What the generator itself costs, and whether that is what limits a figure.
//!
//! The rule, in one place, which the verdict takes from here: a figure is a floor and no result where
//! - a thread always had work ([`Generator::is_busy`]);
//! - in an open loop, one request in a hundred was sent more than [`LAG`] later than it should have been although a
//!   connection was free, and that is a notable part of the latency there ([`NOTABLE`]);
//! - local ports ran out: connections failed for want of an address here, not over there.

use crate::outcome::{ALWAYS, Generator};
use crate::plan::Plan;
use rustix::time::{ClockId, clock_gettime};

/// The send lag, microseconds at the 99th percentile, past which an open loop is not what was asked for.
const LAG: u64 = 1_000;
/// The part of the 99th percentile of latency from which on the generator's own delay is no trifle.
const NOTABLE: f64 = 0.1;

/// CPU time of the calling thread so far, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Why the figure is a floor, in words; `None` where it is a result. `latency` is the 99th percentile, microseconds, and
/// `waited` the largest share of its time that a thread waited for a core.
pub(crate) fn limits(
    plan: &Plan,
    generator: &Generator,
    latency: u64,
    waited: f64,
    is_out_of_ports: bool,
) -> Option<String> {
    if is_out_of_ports {
        return Some(
            "the generator ran out of local ports: keep connections alive, or open fewer of them".to_owned(),
        );
    }
    if generator.is_busy() {
        let ran = generator.busiest_thread;
        let starved = starved(" and waited", generator.keenest_thread - ran);
        let is_short_of_threads = plan.threads < generator.cores && starved.is_empty();
        let more = if is_short_of_threads { "more threads with -t" } else { "a separate machine" };
        let ran = ran * 100.0;
        return Some(format!(
            "the generator's busiest thread ran {ran:.0} % of the time{starved}: give it {more}"
        ));
    }
    let lag = generator.send_lag_p99;
    let is_late = plan.is_open() && lag > LAG && lag as f64 > NOTABLE * latency as f64;
    is_late.then(|| {
        let (late, starved) = (lag as f64 / 1e3, starved(", as its threads waited", waited));
        format!("the generator sent one request in 100 more than {late:.1} ms late{starved}")
    })
}

fn starved(who: &str, waited: f64) -> String {
    match waited > 1.0 - ALWAYS {
        true => format!("{who} for a core {:.0} % of the time", waited * 100.0),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Mode};
    use crate::report::samples;

    #[test]
    fn a_busy_thread_a_late_schedule_and_missing_ports_make_a_floor() {
        let (open, closed) = (Mode::Open { rate: 1.0, arrivals: Arrivals::Constant }, Mode::Closed);
        let plan = |mode| Plan { mode, threads: 1, ..samples::plan() };
        let check = |mode, busiest_thread, send_lag_p99, ports, words: Option<&str>| {
            let waited = if busiest_thread == 0.5 { 0.45 } else { 0.05 };
            let keenest_thread = busiest_thread + waited;
            let generator =
                Generator { busiest_thread, keenest_thread, send_lag_p99, cores: 2, ..Generator::default() };
            let said = limits(&plan(mode), &generator, 14_000, 0.5, ports);
            match words {
                Some(words) => assert!(said.as_deref().is_some_and(|said| said.contains(words)), "{said:?}"),
                None => assert_eq!(said, None),
            }
        };
        check(closed, 0.84, 0, false, None);
        check(closed, 0.91, 0, false, Some("more threads"));
        let starved =
            "ran 50 % of the time and waited for a core 45 % of the time: give it a separate machine";
        check(closed, 0.5, 0, false, Some(starved));
        check(closed, 0.2, 5_000, false, None);
        check(open, 0.2, 1_000, false, None);
        check(open, 0.2, 1_500, false, Some("1.5 ms late, as its threads waited for a core 50 %"));
        check(closed, 0.2, 0, true, Some("local ports"));
        let late = Generator { send_lag_p99: 5_000, cores: 2, ..Generator::default() };
        assert_eq!(limits(&plan(open), &late, 4_000_000, 0.0, false), None, "a trifle of four seconds");
    }

    #[test]
    fn a_thread_that_works_costs_time() {
        let before = thread_cpu();
        let sum =
            std::hint::black_box((0..200_000u64).fold(0u64, |sum, n| sum.wrapping_mul(31).wrapping_add(n)));
        assert!(thread_cpu() > before, "{sum}");
    }
}
