//! What further servers brought, in one sentence with its reason. Pure.

use super::{CapacityRow, Rounds};
use crate::rank::{self, FALSE_CLAIMS};
use crate::verdict::{Limit, count, duration, percent};

/// From this share of the sum on it is what all servers give together.
const WHOLE: f64 = 0.9;
/// A change below this is none.
const NOTHING: f64 = 0.05;
/// Where the proxy passes on less than so many times what was measured, it is near its ceiling.
const NEAR_CEILING: f64 = 1.15;
/// From this share on a machine's cores are all busy.
const FULL: f64 = 0.9;
/// An answer that takes so many times as long as alone is slower.
const SLOWER: f64 = 1.2;

/// What the further servers brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gain {
    /// All that they give alone.
    Whole,
    /// Less than that, but something.
    Some,
    /// As much as the best of them alone, as far as the rounds tell.
    Nothing,
    /// Less than the best of them alone.
    Loss,
    /// More or less than the best of them alone, but by no more than chance makes of it.
    Unclear,
    /// There were too few rounds to tell.
    TooFew,
}

/// Whether the rounds of the fastest of some servers and others differ by more than chance.
///
/// The fastest is chosen by its rounds, so that one of several may look faster by chance: that all together are less is asked of each server,
/// that they are more of one alone, and of twenty measurements one at the most is to be told falsely (Bonferroni).
pub(super) fn differ(one: &Rounds, other: &Rounds, servers: usize) -> bool {
    rank::probability(&one.rates, &other.rates) * (servers + 1) as f64 / 2.0 <= FALSE_CLAIMS
}

/// What it is for a row.
pub fn gain(row: &CapacityRow) -> Gain {
    let (sum, best) = (row.sum(), row.fastest());
    let (measured, together) = (row.together.run.rate, &row.together.rounds);
    if !rank::can_tell(together.rates.len(), together.rates.len()) {
        return Gain::TooFew;
    }
    if !differ(best_alone(row), together, row.alone.len()) {
        let is_small = row.alone.len() == 1 || (measured - best).abs() <= NOTHING * best;
        return if is_small { Gain::Nothing } else { Gain::Unclear };
    }
    if row.alone.len() > 1 && measured >= WHOLE * sum {
        Gain::Whole
    } else if measured > (1.0 + NOTHING) * best {
        Gain::Some
    } else if measured >= (1.0 - NOTHING) * best {
        Gain::Nothing
    } else {
        Gain::Loss
    }
}

/// The sentence, and for a row that gains all what a further server would bring.
pub fn sentence(row: &CapacityRow) -> String {
    let (sum, best, measured) = (row.sum(), row.fastest(), row.together.run.rate);
    let servers = row.alone.len();
    let who = match servers {
        1 => "The proxy in front of one server".to_owned(),
        2 => "A second server".to_owned(),
        _ => format!("{servers} servers instead of one"),
    };
    if best <= 0.0 || measured <= 0.0 {
        return format!("{who}: there were no correct answers, so nothing can be said.");
    }
    let share = percent((measured / best - 1.0).abs());
    match gain(row) {
        Gain::Whole if servers == 2 => {
            format!(
                "A second server doubles the throughput: both give {} per second together and {} alone. {}",
                count(measured),
                count(sum),
                next(row)
            )
        }
        Gain::Whole => format!(
            "{who} give together what they give alone: {} per second of {}. {}",
            count(measured),
            count(sum),
            next(row)
        ),
        // It cannot be the proxy that makes the server answer more.
        Gain::Some if servers == 1 => format!(
            "{who} gives {share} more than asking it directly: {} per second of {}. The proxy asks it differently: \
             over connections that it keeps, and at its own address.",
            count(measured),
            count(best)
        ),
        Gain::Some => format!(
            "{who} {} {share} instead of {}, because {}.",
            if servers > 2 { "gain" } else { "gains" },
            percent(sum / best - 1.0),
            because(row)
        ),
        // The one server gives what it gives.
        Gain::Nothing if servers == 1 => {
            format!("{who} costs nothing: {} per second of {}.", count(measured), count(best))
        }
        Gain::Nothing => {
            format!("{who} {} nothing, because {}.", if servers > 2 { "gain" } else { "gains" }, because(row))
        }
        Gain::Unclear => unclear(&who, row),
        Gain::TooFew => format!(
            "{who}: too few rounds to tell, {} measured and 4 needed (--rounds 4). Together {} per second, the best alone {}.",
            row.together.rounds.rates.len(),
            count(measured),
            count(best)
        ),
        Gain::Loss => format!(
            "{who} {} {share} against {}, because {}.",
            if servers > 2 { "lose" } else { "loses" },
            if servers == 1 { "asking it directly" } else { "one alone" },
            because(row)
        ),
    }
}

/// The rounds of the fastest server alone.
fn best_alone(row: &CapacityRow) -> &Rounds {
    let best = row.alone.iter().max_by(|one, other| one.run.rate.total_cmp(&other.run.rate));
    best.map_or(&row.together.rounds, |best| &best.rounds)
}

/// What is said where that hides a difference.
fn unclear(who: &str, row: &CapacityRow) -> String {
    let (alone, through) = (best_alone(row), &row.together.rounds);
    format!(
        "{who}: these rounds do not tell: the best server alone gives {} to {} per \
         second, all together {} to {} (--rounds and --duration make it clearer).",
        count(alone.low),
        count(alone.high),
        count(through.low),
        count(through.high)
    )
}

/// What one more would bring.
fn next(row: &CapacityRow) -> String {
    let measured = row.together.run.rate;
    match row.verdict.limit {
        _ if row.passing <= 0.0 => String::new(),
        Limit::Generator => {
            "The load generator is the limit, so a further server cannot be judged from here.".to_owned()
        }
        Limit::Unknown => format!("Whether one more would help is not known: {}.", reason(row)),
        Limit::Proxy => "The proxy is the limit now, so one more would not help.".to_owned(),
        Limit::Network => {
            "The network to the servers is the limit now, so one more would not help.".to_owned()
        }
        Limit::Api if row.passing < NEAR_CEILING * measured => {
            format!(
                "No further server will help: the proxy passes on {} per second at most.",
                count(row.passing)
            )
        }
        Limit::Api => format!(
            "The servers are still the limit, and the proxy could pass on {} per second: one more would help as much \
             again.",
            count(row.passing)
        ),
    }
}

/// Why it is not the sum.
fn because(row: &CapacityRow) -> String {
    let measured = row.together.run.rate;
    let passes = format!("it passes on {} per second from a server that answers at once", count(row.passing));
    match row.verdict.limit {
        Limit::Proxy => format!("the proxy is the limit: {passes}"),
        Limit::Generator => {
            "the load generator is the limit here (all figures are floors): only another machine can show more"
                .to_owned()
        }
        Limit::Unknown => format!("of something that is not known ({})", reason(row)),
        Limit::Network => "the network to the servers is the limit".to_owned(),
        // The servers are what the CPU goes to, but with the cheapest of servers the proxy could not do more either.
        Limit::Api if row.passing > 0.0 && row.passing < NEAR_CEILING * measured => {
            format!("the proxy is at its ceiling: {passes}")
        }
        Limit::Api => slower(row),
    }
}

/// Why it is not known who limits.
fn reason(row: &CapacityRow) -> &str {
    row.verdict.why.first().map_or("nothing was measured", |reason| reason.trim_end_matches('.'))
}

/// The servers themselves give less when all are asked.
fn slower(row: &CapacityRow) -> String {
    let alone = row.alone.iter().map(|alone| alone.run.latency).fold(0.0, f64::max);
    let together = row.together.run.latency;
    if row.is_uneven() {
        let (slowest, fastest) = (row.slowest(), row.fastest());
        return format!(
            "round robin gives each server the same number of requests, and the slowest answers {} per second where \
             another answers {}: give the faster one a weight of {:.0}, or use least_conn",
            count(slowest),
            count(fastest),
            (fastest / slowest.max(f64::MIN_POSITIVE)).clamp(2.0, 100.0)
        );
    }
    if row.alone.len() == 1 {
        return format!(
            "an answer takes {} through the proxy and {} without it under the same load",
            duration(together),
            duration(alone)
        );
    }
    if together > SLOWER * alone && alone > 0.0 {
        return format!(
            "the servers slow each other down: an answer takes {} when all are asked and {} from one alone, which is \
             typical of servers that share a machine or a database",
            duration(together),
            duration(alone)
        );
    }
    if row.together.machine_busy > FULL {
        return "they share this machine with the proxy and the load generator, and all its cores were busy"
            .to_owned();
    }
    "the servers give less together than each gives alone".to_owned()
}
