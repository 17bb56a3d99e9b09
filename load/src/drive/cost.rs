//! What the generator itself costs, and whether that is what limits a figure.
//!
//! The rule, in one place: a figure is a floor and no result where
//! - the busiest thread had hardly any time left ([`Generator::is_busy`]);
//! - in an open loop, one request in a hundred was sent more than [`LAG`] later than it should have been although a
//!   connection was free, and that is a notable part of the latency there ([`NOTABLE`]);
//! - local ports ran out: connections failed for want of an address here, not over there.

use crate::outcome::Generator;
use crate::plan::Mode;
use rustix::time::{ClockId, clock_gettime};

/// The send lag, microseconds at the 99th percentile, past which an open loop is not what was asked for.
const LAG: u64 = 1_000;
/// The part of the 99th percentile of latency from which on the generator's own delay is no trifle.
const NOTABLE: f64 = 0.1;

/// What became of a thread's time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    /// It ran, 0 to 1.
    pub(crate) ran: f64,
    /// It could have run, and waited for a core, 0 to 1.
    pub(crate) waited: f64,
}

/// CPU time of the calling thread so far, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How long the calling thread has waited for a core so far, in nanoseconds; 0 where the kernel does not tell.
pub(crate) fn thread_waited() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The CPU time of the whole machine at a moment, in the kernel's ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Machine {
    busy: u64,
    all: u64,
}

impl Machine {
    /// Now; zeros where the kernel does not tell.
    pub(crate) fn now() -> Machine {
        Machine::read(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal …`; guests are part of user and nice.
    fn read(stat: &str) -> Machine {
        let line = stat.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let numbers: Vec<u64> =
            line.split_ascii_whitespace().take(8).map(|number| number.parse().unwrap_or(0)).collect();
        let all = numbers.iter().sum();
        let idle: u64 = numbers.iter().skip(3).take(2).sum();
        Machine { busy: all - idle, all }
    }

    /// The share that has been busy since, 0 to 1.
    pub(crate) fn busy_since(self) -> f64 {
        self.busy_until(Machine::now())
    }

    fn busy_until(self, later: Machine) -> f64 {
        let all = later.all.saturating_sub(self.all);
        if all == 0 { 0.0 } else { later.busy.saturating_sub(self.busy) as f64 / all as f64 }
    }
}

/// Why the figure is a floor, in words; `None` where it is a result. `latency` is the 99th percentile, microseconds.
pub(crate) fn limits(
    mode: Mode,
    generator: &Generator,
    latency: u64,
    threads: &[Share],
    is_out_of_ports: bool,
) -> Option<String> {
    if is_out_of_ports {
        return Some(
            "the generator ran out of local ports: keep connections alive, or open fewer of them".to_owned(),
        );
    }
    if generator.is_busy() {
        let more = if (threads.len() as u32) < generator.cores {
            "give it more threads with -t"
        } else {
            "give it a machine of its own"
        };
        return Some(format!(
            "the generator's busiest thread ran {:.0} % of the time: {more}",
            generator.busiest_thread * 100.0
        ));
    }
    let is_late = generator.send_lag_p99 > LAG && generator.send_lag_p99 as f64 > NOTABLE * latency as f64;
    if matches!(mode, Mode::Open { .. }) && is_late {
        let waited = threads.iter().map(|share| share.waited).fold(0.0, f64::max);
        let why = if waited > 0.1 {
            format!(", as its threads waited for a core {:.0} % of the time", waited * 100.0)
        } else {
            String::new()
        };
        return Some(format!(
            "the generator sent one request in a hundred more than {:.1} ms late{why}",
            generator.send_lag_p99 as f64 / 1000.0
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Arrivals;

    #[test]
    fn the_machine_is_busy_where_it_neither_idles_nor_waits_for_a_disk() {
        let before = Machine::read("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
        let later = Machine::read("cpu  30 0 20 120 20 5 5 0 7 0\n");
        assert!((before.busy_until(later) - 0.4).abs() < 1e-9);
        assert_eq!(Machine::read("nonsense").busy_until(Machine::read("")), 0.0);
        assert!(Machine::now().all > 0);
    }

    #[test]
    fn a_busy_thread_a_late_schedule_and_missing_ports_make_a_floor() {
        let open = Mode::Open { rate: 1.0, arrivals: Arrivals::Constant };
        let check = |mode, busiest_thread, send_lag_p99, ports, words: Option<&str>| {
            let generator = Generator { busiest_thread, send_lag_p99, cores: 2, ..Generator::default() };
            let share = Share { ran: busiest_thread, waited: 0.5 };
            let said = limits(mode, &generator, 14_000, &[share], ports);
            match words {
                Some(words) => assert!(said.as_deref().is_some_and(|said| said.contains(words)), "{said:?}"),
                None => assert_eq!(said, None),
            }
        };
        check(Mode::Closed, 0.9, 0, false, None);
        check(Mode::Closed, 0.91, 0, false, Some("more threads"));
        check(Mode::Closed, 0.2, 5_000, false, None);
        check(open, 0.2, 1_000, false, None);
        check(open, 0.2, 1_500, false, Some("1.5 ms late, as its threads waited for a core 50 %"));
        check(Mode::Closed, 0.2, 0, true, Some("local ports"));
        let late = Generator { send_lag_p99: 5_000, cores: 2, ..Generator::default() };
        assert_eq!(
            limits(open, &late, 4_000_000, &[Share::default()], false),
            None,
            "a trifle of four seconds"
        );
    }

    #[test]
    fn a_thread_that_works_costs_time() {
        let before = thread_cpu();
        let sum =
            std::hint::black_box((0..200_000u64).fold(0u64, |sum, n| sum.wrapping_mul(31).wrapping_add(n)));
        assert!(thread_cpu() > before, "{sum}");
    }
}
