//! What further servers brought, in one sentence with its reason. Pure.

use super::{CapacityRow, Rounds};
use crate::ladder::chance::of_several;
use crate::rank::{self, FALSE_CLAIMS};
use crate::report::quantity::{Number, Share, seconds};
use crate::verdict::Limit;

/// From this share of the sum on it is what all servers give together.
const WHOLE: f64 = 0.9;
/// A change below this is none.
const NOTHING: f64 = 0.05;
/// Where the proxy passes on less than so many times what was measured, it is near its ceiling.
const NEAR_CEILING: f64 = 1.15;
/// From this share on a machine's cores are all busy.
const FULL: f64 = 0.9;
/// From this many times the sum on, what was measured together was not what was measured one by one.
const FAR_ABOVE: f64 = 1.5;
/// An answer that takes so many times as long as alone is slower.
const SLOWER: f64 = 1.2;

const OTHERWISE: &str =
    "The proxy sends its requests differently: over kept-alive connections, and from its own address.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gain {
    /// All that they give alone.
    Whole,
    /// Less than that, but something.
    Some,
    /// As much as the best of them alone, as far as the rounds tell.
    Nothing,
    Loss,
    /// More or less than the best of them alone, but by no more than chance makes of it.
    Unclear,
    TooFew,
}

/// Whether the rounds of the fastest of some servers and others differ by more than chance.
///
/// The fastest is chosen by its rounds, so that one of several may look faster by chance: that all together are less is asked of each server,
/// that they are more of one alone, and of twenty measurements one at the most is to be told falsely (Bonferroni).
pub(super) fn differ(one: &Rounds, other: &Rounds, servers: usize) -> bool {
    of_several(rank::probability(&one.rates, &other.rates), servers + 1) <= FALSE_CLAIMS
}

pub fn gain(row: &CapacityRow) -> Gain {
    let (sum, best, servers) = (row.sum(), row.fastest(), row.alone.len());
    let (measured, together) = (row.together.run.rate, &row.together.rounds);
    if !rank::can_tell(together.rates.len(), together.rates.len()) {
        return Gain::TooFew;
    }
    if row.ends().is_none_or(|(_, best)| !differ(&best.rounds, together, servers)) {
        let is_small = servers == 1 || (measured - best).abs() <= NOTHING * best;
        return if is_small { Gain::Nothing } else { Gain::Unclear };
    }
    match measured {
        _ if servers > 1 && measured >= WHOLE * sum => Gain::Whole,
        _ if measured > (1.0 + NOTHING) * best => Gain::Some,
        _ if measured >= (1.0 - NOTHING) * best => Gain::Nothing,
        _ => Gain::Loss,
    }
}

pub fn sentence(row: &CapacityRow) -> String {
    let (sum, best, measured) = (row.sum(), row.fastest(), row.together.run.rate);
    let servers = row.alone.len();
    let (who, s) = match servers {
        1 => ("The proxy in front of one server".to_owned(), "s"),
        2 => ("A second server".to_owned(), "s"),
        _ => (format!("{servers} servers instead of one"), ""),
    };
    if best <= 0.0 || measured <= 0.0 {
        return format!("{who}: no result, because there were no correct responses.");
    }
    let share = Share((measured / best - 1.0).abs());
    let [all, of_all, of_best] = [measured, sum, best].map(Number);
    match (gain(row), servers) {
        // It cannot be the proxy that makes servers answer more.
        (Gain::Whole, _) if measured * WHOLE > sum => format!(
            "{servers} servers behind the proxy serve more than one by one: {all} per second, compared with a sum of \
             {of_all}. {OTHERWISE} {}",
            next(row)
        ),
        (Gain::Whole, 2) => format!(
            "A second server doubles the throughput: together they serve {all} per second; one by one, they add up to \
             {of_all}. {}",
            next(row)
        ),
        (Gain::Whole, _) => {
            format!("{who} serve together as much as one by one: {all} of {of_all} per second. {}", next(row))
        }
        (Gain::Some, 1) => {
            format!(
                "{who} serves {share} more than the server without it: {all} per second instead of {of_best}. {OTHERWISE}"
            )
        }
        (Gain::Some, _) => {
            format!("{who} gain{s} {share} instead of {}, because {}.", Share(sum / best - 1.0), because(row))
        }
        // The one server gives what it gives.
        (Gain::Nothing, 1) => format!("{who} costs nothing: {all} of {of_best} per second."),
        (Gain::Nothing, _) => format!("{who} gain{s} nothing, because {}.", because(row)),
        (Gain::Unclear, _) => {
            let alone = row.ends().map_or(&row.together.rounds, |(_, best)| &best.rounds);
            let [alone, together] = [alone, &row.together.rounds]
                .map(|rounds| format!("{} to {}", Number(rounds.low), Number(rounds.high)));
            format!(
                "{who}: inconclusive: the best server alone serves {alone} per second, all together {together} \
                (increase --rounds or --duration)."
            )
        }
        (Gain::TooFew, _) => format!(
            "{who}: inconclusive: {} of 4 necessary rounds measured (--rounds 4). Together {all} per second, the best alone {of_best}.",
            row.together.rounds.rates.len()
        ),
        (Gain::Loss, _) => {
            let against = if servers == 1 { "the server without it" } else { "one alone" };
            format!("{who} lose{s} {share} against {against}, because {}.", because(row))
        }
    }
}

fn is_near_ceiling(row: &CapacityRow) -> bool {
    row.passing > 0.0 && row.passing < NEAR_CEILING * row.together.run.rate
}

fn next(row: &CapacityRow) -> String {
    let passing = Number(row.passing);
    match row.verdict.limit {
        _ if row.passing <= 0.0 => String::new(),
        Limit::Generator => {
            "The load generator is the limit, so a further server cannot be judged from here.".to_owned()
        }
        Limit::Unknown => format!("Whether one more would help is unknown: {}.", reason(row)),
        Limit::Proxy => "The proxy is the limit now, so one more would not help.".to_owned(),
        Limit::Network => {
            "The network to the servers is the limit now, so one more would not help.".to_owned()
        }
        Limit::Api if is_near_ceiling(row) => {
            format!("Further servers will not help: the proxy passes on at most {passing} per second.")
        }
        // They were asked in another way alone, be it with less over each connection.
        Limit::Api if row.together.run.rate > FAR_ABOVE * row.sum() => {
            "Whether one more would help is unknown: together they serve far more than one by one.".to_owned()
        }
        Limit::Api => format!(
            "The servers are still the limit, and the proxy could pass on {passing} per second: one more would give \
             the same gain again."
        ),
    }
}

fn because(row: &CapacityRow) -> String {
    let passes =
        format!("it passes on {} per second from a server that responds at once", Number(row.passing));
    match row.verdict.limit {
        Limit::Proxy => format!("the proxy is the limit: {passes}"),
        Limit::Generator => {
            "the load generator is the limit here (all figures are floors): only another machine can show more"
                .to_owned()
        }
        Limit::Unknown => format!("of an unknown limit ({})", reason(row)),
        Limit::Network => "the network to the servers is the limit".to_owned(),
        // The servers are what the CPU goes to, but with the cheapest of servers the proxy could not do more either.
        Limit::Api if is_near_ceiling(row) => format!("the proxy is at its ceiling: {passes}"),
        Limit::Api => slower(row),
    }
}

fn reason(row: &CapacityRow) -> &str {
    row.verdict.why.first().map_or("nothing was measured", |reason| reason.trim_end_matches('.'))
}

fn slower(row: &CapacityRow) -> String {
    let alone = row.alone.iter().map(|alone| alone.run.latency).fold(0.0, f64::max);
    let together = row.together.run.latency;
    let [took, took_alone] = [together, alone].map(seconds);
    if row.is_uneven() {
        let (slowest, fastest) = (row.slowest(), row.fastest());
        let weight = (fastest / slowest.max(f64::MIN_POSITIVE)).clamp(2.0, 100.0);
        let [slowest, fastest] = [slowest, fastest].map(Number);
        return format!(
            "round robin gives each server the same number of requests, and the slowest serves {slowest} per second while another serves {fastest}: \
            give the faster one a weight of {weight:.0}, or use least_conn"
        );
    }
    if row.alone.len() == 1 {
        return format!(
            "a response takes {took} through the proxy and {took_alone} without it under the same load"
        );
    }
    if together > SLOWER * alone && alone > 0.0 {
        return format!(
            "the servers slow each other down: a response takes {took} under load on all and {took_alone} on one alone, which is typical of servers \
            that share a machine or a database"
        );
    }
    let is_full = row.together.machine_busy > FULL;
    let why = "they share this machine with the proxy and the load generator, and all cores were busy";
    (if is_full { why } else { "the servers serve less together than alone" }).to_owned()
}
