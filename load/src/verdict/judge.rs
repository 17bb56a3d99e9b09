//! The decision: three rules in order, each a name only where the facts show it, and then why it is unknown.
//!
//! 1. somebody is saturated: always at work on the cores that he may use, held back by a limit of his own; or a full link;
//! 2. the way: most of a request's time is the round trip;
//! 3. the place: nobody is saturated, more requests at once bring no more answers, and one place has most of their time.
//!
//! Next: `facts`, which the rules read.

use super::facts::{Facts, MOST, Watched};
use super::once::LONGER;
use super::{Evidence, Limit, Verdict};
use super::{count, duration, percent, volume};
use crate::outcome::ALWAYS;

/// The least that counts as more: as in [`ALWAYS`], a tenth.
const GAIN: f64 = 1.0 / ALWAYS;
/// Of a hundred requests the 99th percentile is about one: where more fail, the figures are not those of answers alone.
const FAILING: f64 = 0.01;

/// What a rule found: who, and how that is known; or unknown, why, and what would tell.
type Ruling = (Limit, Vec<String>);

/// The rules, in the order in which they are asked.
const RULES: [fn(&Facts<'_>) -> Option<Ruling>; 3] = [saturated, long_way, one_place];

/// Says what limits.
pub fn judge(evidence: &Evidence) -> Verdict {
    let facts = Facts::of(evidence);
    let ruling = RULES.iter().find_map(|rule| rule(&facts));
    let (limit, mut why) = ruling.unwrap_or_else(|| no_rule(&facts));
    why.extend(shares(&facts));
    why.extend(compared_with_alone(evidence, limit));
    Verdict { limit, why, doubts: doubts(&facts, limit) }
}

/// That it is unknown.
fn unknown(reason: impl Into<String>, tells: &str) -> Ruling {
    (Limit::Unknown, vec![reason.into(), tells.to_owned()])
}

/// Rule 1. Where parties share cores, several are at work most of the time, each because of the others: then it is the one
/// without which the answers would gain by far the most.
fn saturated(facts: &Facts<'_>) -> Option<Ruling> {
    let evidence = facts.evidence;
    let link = link_full(facts);
    let full = facts.parties().filter(|party| is_full(facts, party));
    let most = full.max_by(|one, other| facts.gain_without(one).total_cmp(&facts.gain_without(other)));
    let Some(limit) = most else {
        let out_of_ports = || evidence.floor.as_deref().map(|floor| (Limit::Generator, vec![because(floor)]));
        return link.map(|why| (Limit::Network, vec![why])).or_else(out_of_ports);
    };
    let is_rival = |other: &Watched| {
        let is_in_question = other.at_work > MOST && (other.who != Limit::Api || facts.asks_api());
        other.who != limit.who
            && is_in_question
            && facts.gain_without(other) > MOST * facts.gain_without(&limit)
    };
    let rivals: Vec<Watched> = facts.parties().filter(is_rival).collect();
    let is_held_back = limit.is_held_back();
    // A generator that gets no core is the limit, whoever has it.
    let may_be_starved = limit.who != Limit::Generator && !is_held_back;
    Some(if link.is_some() || !rivals.is_empty() {
        several(&[vec![limit], rivals].concat(), link)
    } else if facts.stolen > 1.0 - ALWAYS && !is_held_back {
        stolen(facts)
    } else if may_be_starved && facts.is_starved(&limit) {
        starved(facts, &limit)
    } else {
        (limit.who, vec![why_saturated(facts, &limit)])
    })
}

/// Whether a party is saturated; of the generator it has been decided already, and an API that is hardly asked may be busy with
/// something else.
fn is_full(facts: &Facts<'_>, party: &Watched) -> bool {
    match party.who {
        Limit::Generator => facts.evidence.floor.is_some(),
        Limit::Api => facts.asks_api() && party.is_saturated(),
        _ => party.is_saturated(),
    }
}

/// Rule 2.
fn long_way(facts: &Facts<'_>) -> Option<Ruling> {
    let share = facts.round_trip().filter(|share| *share > MOST && facts.asks_api())?;
    let why = format!(
        "The round trip to the API takes {}, which is {} of an answer's time.",
        duration(facts.evidence.direct.map_or(0.0, |once| once.connect)),
        percent(share)
    );
    Some((Limit::Network, vec![why]))
}

/// Rule 3.
fn one_place(facts: &Facts<'_>) -> Option<Ruling> {
    let run = &facts.evidence.top;
    if let (Some(added), Some(direct), Some(through)) =
        (facts.added().filter(|share| *share > MOST), facts.evidence.direct, facts.evidence.through)
    {
        let why = format!(
            "A single request takes {} when it is sent directly to the API and {} through the proxy, which is {} of an \
             answer's time under load.",
            duration(direct.least),
            duration(through.least),
            percent(added)
        );
        return Some((Limit::Proxy, vec![why]));
    }
    let api = facts.api.filter(|_| facts.asks_api())?;
    if facts.in_api() <= MOST || facts.is_starved(&api) {
        return None;
    }
    let waits = brings_no_more(facts)?;
    let place = format!(
        "Nobody is out of CPU, and at least {} of an answer's time of {} is spent in the API: its workers, its locks, or \
         what it waits for.",
        percent(facts.in_api()),
        duration(run.latency)
    );
    Some((Limit::Api, vec![waits, place]))
}

/// That more requests at once bring no more answers: as fewer have shown, or as single requests do.
fn brings_no_more(facts: &Facts<'_>) -> Option<String> {
    let run = &facts.evidence.top;
    let fewer = facts.evidence.fewer.filter(|fewer| fewer.connections < run.connections && fewer.rate > 0.0);
    if let Some(fewer) = fewer.filter(|fewer| run.rate < GAIN * fewer.rate) {
        return Some(format!(
            "{} connections instead of {} brought no more answers.",
            run.connections, fewer.connections
        ));
    }
    let once = facts.evidence.direct.filter(|once| run.latency > LONGER * once.mean && once.mean > 0.0)?;
    let at_once = facts.worked_on()?;
    Some(format!(
        "A single request takes {}; under load an answer takes {}, because it waits its turn. {} per second at {} each is \
         {} requests at once (Little's law): the API works on that many, and the other {} of {} wait.",
        duration(once.mean),
        duration(run.latency),
        count(run.rate),
        duration(once.mean),
        count(at_once.round().max(1.0)),
        count((f64::from(run.connections) - at_once).max(0.0).round()),
        run.connections,
    ))
}

const QUIET: &str = "Run this again when the machine is quiet.";
const MORE: &str = "More connections (-c) would bring more answers.";

/// Where no rule has said anything.
fn no_rule(facts: &Facts<'_>) -> Ruling {
    let (evidence, run) = (facts.evidence, &facts.evidence.top);
    let is_crowded = |share: &f64| *share > 1.0 - ALWAYS && evidence.machine_busy > MOST;
    let alone = evidence.direct.map_or(0.0, |once| once.mean);
    if facts.stolen > 1.0 - ALWAYS {
        stolen(facts)
    } else if let Some(api) = facts.api.filter(|api| facts.is_starved(api)) {
        starved(facts, &api)
    } else if let Some(share) = facts.strangers_share().filter(is_crowded) {
        let share = percent(share);
        let reason =
            format!("other processes used {share} of this machine, and no party was at work all the time.");
        unknown(reason, QUIET)
    } else if !facts.asks_api() {
        let idle =
            "no limit was reached. Hardly any request reached the API, and everybody had CPU to spare.";
        unknown(idle, MORE)
    } else if facts.api.is_none() && run.latency > 0.0 {
        let tells =
            "Run `millstream bench` on the API's machine, or watch it there with top, under this load.";
        unknown(unseen(facts), tells)
    } else if facts.in_api() > MOST && (alone > 0.0 || evidence.fewer.is_some()) {
        let (under_load, alone) = (duration(run.latency), duration(alone));
        let reason =
            format!("no limit was reached. An answer takes {under_load} under load and {alone} alone.");
        unknown(reason, MORE)
    } else if facts.in_api() > MOST {
        let reason = "requests are in the API, but nothing shows whether more of them bring more answers.";
        unknown(reason, "Measure again with half as many connections (-c).")
    } else {
        let reason = "nobody was at work all the time, and no single place has most of a request's time.";
        unknown(reason, "More connections (-c) or a longer run (--duration) show who runs out first.")
    }
}

/// What is said of an API whose CPU is not seen.
fn unseen(facts: &Facts<'_>) -> String {
    let run = &facts.evidence.top;
    let whose =
        if facts.evidence.is_here { "its process cannot be seen" } else { "it is on another machine" };
    let body = run.latency - run.first_byte;
    let way = match body > MOST * run.latency {
        true => format!(
            " Of the {} of an answer its body takes {}: the network may be narrow, or the API writes slowly.",
            duration(run.latency),
            duration(body)
        ),
        false => String::new(),
    };
    format!("the API's CPU cannot be seen, because {whose}.{way}")
}

fn stolen(facts: &Facts<'_>) -> Ruling {
    let share = percent(facts.evidence.stolen);
    unknown(
        format!("the host of this virtual machine gave {share} of its CPU to other machines (steal)."),
        QUIET,
    )
}

fn starved(facts: &Facts<'_>, party: &Watched) -> Ruling {
    let reason = format!(
        "other processes used {} of this machine, and the {} waited for a core {} of the time.",
        percent(facts.strangers_share().unwrap_or(0.0)),
        party.who.name(),
        percent(party.waited)
    );
    unknown(reason, QUIET)
}

/// Several of which each may be the limit.
fn several(parties: &[Watched], link: Option<String>) -> Ruling {
    let names: Vec<String> = parties.iter().map(|party| format!("the {}", party.who.name())).collect();
    let names = names.join(" and ");
    let had = match link {
        Some(link) => format!("{names} had work all the time, and the network was full. {link}"),
        None => format!("{names} each had work most of the time."),
    };
    let has_generator = parties.iter().any(|party| party.who == Limit::Generator);
    let tells = if has_generator {
        "Put the generator on another machine"
    } else {
        "Give each of them cores of its own"
    };
    unknown(had, &format!("{tells}: then it is seen which of them is left."))
}

fn why_saturated(facts: &Facts<'_>, limit: &Watched) -> String {
    let run = &facts.evidence.top;
    if let (Limit::Generator, Some(floor)) = (limit.who, &facts.evidence.floor) {
        return because(floor);
    }
    let wanted = match limit.held_back {
        Some(share) if limit.is_held_back() => {
            format!("Its CPU limit (a container's, say) held it back in {} of its periods", percent(share))
        }
        _ => format!(
            "It had work {} of the time{}",
            percent(limit.at_work.max(limit.wanted)),
            if limit.waited > 1.0 - ALWAYS { ", often waiting for a core" } else { "" }
        ),
    };
    let each = if run.rate > 0.0 { limit.used / run.rate * (1.0 - run.error_share) } else { 0.0 };
    let (used, cores, each) = (limit.used, facts.evidence.cores, duration(each));
    format!("{wanted}: it used {used:.2} cores of {cores}, which is {each} per answer.")
}

/// The generator's own words.
fn because(floor: &str) -> String {
    format!("It had no time left: {}.", floor.trim_end_matches('.'))
}

/// What each had of this machine.
fn shares(facts: &Facts<'_>) -> Option<String> {
    let cores = facts.cores();
    let parts: Vec<String> = facts
        .parties()
        .map(|party| format!("{} {}", party.who.name(), percent(party.used / cores)))
        .collect();
    (!parts.is_empty()).then(|| {
        let busy = percent(facts.evidence.machine_busy);
        format!("The machine was {busy} busy ({}).", parts.join(", "))
    })
}

fn link_full(facts: &Facts<'_>) -> Option<String> {
    let evidence = facts.evidence;
    let link = evidence.link.filter(|link| *link > 0.0)?;
    let carried = evidence.top.bytes_per_second * evidence.origin_share.min(1.0);
    (carried >= ALWAYS * link).then(|| {
        format!(
            "The network path to the API carried {} per second of the {} that it can carry.",
            volume(carried),
            volume(link)
        )
    })
}

/// What the API does alone at as many connections.
fn compared_with_alone(evidence: &Evidence, limit: Limit) -> Option<String> {
    let alone = evidence.api_rate.filter(|rate| *rate > 0.0)?;
    let rate = evidence.top.rate;
    match limit {
        Limit::Api if evidence.origin_share >= ALWAYS && rate >= ALWAYS * alone => Some(format!(
            "The proxy passes on {} of the {} answers per second that the API gives without it.",
            percent((rate / alone).min(1.0)),
            count(alone)
        )),
        Limit::Proxy if rate < ALWAYS * alone => Some(format!(
            "The API gives {} answers per second without the proxy and {} through it.",
            count(alone),
            count(rate)
        )),
        _ => None,
    }
}

/// What makes the figures less than they seem.
fn doubts(facts: &Facts<'_>, limit: Limit) -> Vec<String> {
    let evidence = facts.evidence;
    let generator = facts.generator.map_or(0.0, |generator| generator.used / facts.cores());
    let is_shared = evidence.machine_busy >= ALWAYS && !matches!(limit, Limit::Generator | Limit::Unknown);
    let strangers = facts.strangers_share().filter(|_| limit != Limit::Unknown).unwrap_or(0.0);
    let failing = evidence.top.error_share;
    let all = [
        (failing, FAILING, "of the requests failed, so the figures do not describe a healthy system."),
        (
            strangers,
            1.0 - ALWAYS,
            "of this machine went to other processes, which may have lowered the figures.",
        ),
        (
            if is_shared { generator } else { 0.0 },
            1.0 - ALWAYS,
            "of the full machine went to the generator: the figure would be higher with it on another machine.",
        ),
    ];
    let told = all.into_iter().filter(|(share, allowed, _)| share > allowed);
    told.map(|(share, _, words)| format!("{} {words}", percent(share))).collect()
}
