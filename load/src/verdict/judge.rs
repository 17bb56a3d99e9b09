//! The decision: three rules in order, each a name only where the facts show it, and then why it is unknown.
//!
//! 1. somebody is saturated: always at work on the cores that he may use, held back by a limit of his own; or a full link;
//! 2. the way: most of a request's time is the round trip;
//! 3. the place: nobody is saturated, requests wait their turn, and one place has most of their time.
//!
//! Next: `facts`, which the rules read.

use super::facts::{Facts, MOST, Watched};
use super::once::LONGER;
use super::{Evidence, Limit, Verdict};
use crate::outcome::ALWAYS;
use crate::report::quantity::{Bytes, Number, Share, numbered, seconds};

/// Of a hundred requests the 99th percentile is about one: where more fail, the figures are not those of answers alone.
const FAILING: f64 = 0.01;

/// What a rule found: who, and how that is known; or unknown, why, and what would tell.
type Ruling = (Limit, Vec<String>);

const RULES: [fn(&Facts<'_>) -> Option<Ruling>; 3] = [saturated, long_way, one_place];

pub fn judge(evidence: &Evidence) -> Verdict {
    let facts = Facts::of(evidence);
    let ruling = RULES.iter().find_map(|rule| rule(&facts));
    let (limit, mut why) = ruling.unwrap_or_else(|| no_rule(&facts));
    why.extend(shares(&facts));
    why.extend(compared_with_alone(evidence, limit));
    Verdict { limit, why, doubts: doubts(&facts, limit) }
}

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
    Some(match () {
        () if link.is_some() || !rivals.is_empty() => several(&[vec![limit], rivals].concat(), link),
        () if facts.stolen > 1.0 - ALWAYS && !is_held_back => stolen(facts),
        () if may_be_starved && facts.is_starved(&limit) => starved(facts, &limit),
        () => (limit.who, vec![why_saturated(facts, &limit)]),
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
    let (way, share) = (seconds(facts.evidence.direct.map_or(0.0, |once| once.connect)), Share(share));
    let why = format!("The round trip to the API takes {way}, which is {share} of a response's time.");
    Some((Limit::Network, vec![why]))
}

/// Rule 3.
fn one_place(facts: &Facts<'_>) -> Option<Ruling> {
    let run = &facts.evidence.top;
    if let (Some(added), Some(direct), Some(through)) =
        (facts.added().filter(|share| *share > MOST), facts.evidence.direct, facts.evidence.through)
    {
        let ([direct, through], share) = ([direct, through].map(|once| seconds(once.least)), Share(added));
        let why = format!(
            "A single request takes {direct} when it is sent directly to the API and {through} through the proxy, which is {share} of a response's \
            time under load."
        );
        return Some((Limit::Proxy, vec![why]));
    }
    let api = facts.api.filter(|_| facts.asks_api())?;
    if facts.in_api() <= MOST || facts.is_starved(&api) {
        return None;
    }
    let waits = waits_its_turn(facts)?;
    let (share, latency) = (Share(facts.in_api()), seconds(run.latency));
    let place = format!(
        "No CPU was saturated, and at least {share} of a response's time of {latency} is spent in the API: its workers, its locks, or what it waits \
        for."
    );
    Some((Limit::Api, vec![waits, place]))
}

/// That the API has no room for all at once: each waits until it is begun, and for as long as one waits another is worked on.
///
/// It is told by the first byte, and of the API alone where that was loaded. What comes late after that byte, or only behind
/// the proxy, is no queue in front of the API: more connections would bring more answers.
fn waits_its_turn(facts: &Facts<'_>) -> Option<String> {
    let evidence = facts.evidence;
    let (run, once) = (&evidence.top, evidence.direct.filter(|once| once.mean > 0.0)?);
    if facts.api_alone().first_byte <= LONGER * once.mean || run.latency <= LONGER * once.mean {
        return None;
    }
    let at_once = facts.worked_on().filter(|at_once| *at_once * LONGER >= 1.0)?.round().max(1.0);
    let ([alone, latency], rate, all) =
        ([once.mean, run.latency].map(seconds), Number(run.rate), run.connections);
    let (worked_on, waiting) =
        (numbered(Number(at_once), "request"), Number((f64::from(all) - at_once).max(0.0)));
    Some(format!(
        "A single request takes {alone}; under load, a response takes {latency}, because requests are queued. {rate} \
        per second at {alone} each is {worked_on} at once (Little's law): the API works on that many, and the other \
        {waiting} of {all} wait."
    ))
}

const QUIET: &str = "Run this again when the machine is quiet.";
const MORE: &str = "More connections (-c) would bring more responses.";

fn no_rule(facts: &Facts<'_>) -> Ruling {
    let (evidence, run) = (facts.evidence, &facts.evidence.top);
    let is_crowded = |share: &f64| *share > 1.0 - ALWAYS && evidence.found.machine_busy > MOST;
    let alone = evidence.direct.map_or(0.0, |once| once.mean);
    if facts.stolen > 1.0 - ALWAYS {
        stolen(facts)
    } else if let Some(api) = facts.api.filter(|api| facts.is_starved(api)) {
        starved(facts, &api)
    } else if let Some(share) = facts.strangers_share().filter(is_crowded) {
        let share = Share(share);
        let reason =
            format!("other processes used {share} of this machine, and no party was busy all the time.");
        unknown(reason, QUIET)
    } else if !facts.asks_api() {
        let idle = "no bottleneck was reached. Hardly any request reached the API, and no CPU was saturated.";
        unknown(idle, MORE)
    } else if facts.api.is_none() && run.latency > 0.0 {
        let tells =
            "Run `millstream bench` on the API's machine, or watch it there with top, under this load.";
        unknown(unseen(facts), tells)
    } else if facts.in_api() > MOST && alone > 0.0 {
        let [under_load, alone] = [run.latency, alone].map(seconds);
        let reason =
            format!("no bottleneck was reached. A response takes {under_load} under load and {alone} alone.");
        unknown(reason, MORE)
    } else if facts.in_api() > MOST {
        let reason = "requests are in the API, but nothing shows whether more of them bring more responses.";
        unknown(reason, "Measure again with half as many connections (-c).")
    } else {
        let reason = "no CPU was saturated, and no single place has most of a request's time.";
        unknown(
            reason,
            "More connections (-c) or a longer run (--duration) show which one is the bottleneck.",
        )
    }
}

fn unseen(facts: &Facts<'_>) -> String {
    let run = &facts.evidence.top;
    let whose =
        if facts.evidence.is_here { "its process cannot be seen" } else { "it is on another machine" };
    let body = run.latency - run.first_byte;
    let [all, part] = [run.latency, body].map(seconds);
    let way = match body > MOST * run.latency {
        true => format!(
            " Of the {all} that a response takes, its body takes {part}: the network may be slow, or the API writes slowly."
        ),
        false => String::new(),
    };
    format!("the API's CPU cannot be seen, because {whose}.{way}")
}

fn stolen(facts: &Facts<'_>) -> Ruling {
    let share = Share(facts.evidence.found.stolen);
    unknown(
        format!("the host of this virtual machine gave {share} of its CPU to other machines (steal)."),
        QUIET,
    )
}

fn starved(facts: &Facts<'_>, party: &Watched) -> Ruling {
    let [used, waited] = [facts.strangers_share().unwrap_or(0.0), party.waited].map(Share);
    let who = party.who.words().0;
    let reason = format!(
        "other processes used {used} of this machine, and the {who} waited for a core {waited} of the time."
    );
    unknown(reason, QUIET)
}

fn several(parties: &[Watched], link: Option<String>) -> Ruling {
    let names: Vec<String> = parties.iter().map(|party| format!("the {}", party.who.words().0)).collect();
    let names = names.join(" and ");
    let had = match link {
        Some(link) => format!("{names} had no idle time, and the network was saturated. {link}"),
        None => format!("{names} were each busy most of the time."),
    };
    let has_generator = parties.iter().any(|party| party.who == Limit::Generator);
    let tells = if has_generator {
        "Put the generator on another machine"
    } else {
        "Give each of them its own cores"
    };
    unknown(had, &format!("{tells}: the next run then shows which of them is the bottleneck."))
}

fn why_saturated(facts: &Facts<'_>, limit: &Watched) -> String {
    let run = &facts.evidence.top;
    if let (Limit::Generator, Some(floor)) = (limit.who, &facts.evidence.floor) {
        return because(floor);
    }
    let wanted = match limit.held_back {
        Some(share) if limit.is_held_back() => {
            format!(
                "Its CPU limit (of a container, for example) throttled it in {} of its periods",
                Share(share)
            )
        }
        _ => format!(
            "It was busy {} of the time{}",
            Share(limit.at_work.max(limit.wanted)),
            if limit.waited > 1.0 - ALWAYS { ", often waiting for a core" } else { "" }
        ),
    };
    let each = if run.rate > 0.0 { limit.used / run.rate * (1.0 - run.error_share) } else { 0.0 };
    let (used, cores, each) = (limit.used, facts.evidence.cores, seconds(each));
    format!("{wanted}: it used {used:.2} cores of {cores}, which is {each} per response.")
}

fn because(floor: &str) -> String {
    format!("It was saturated: {}.", floor.trim_end_matches('.'))
}

fn shares(facts: &Facts<'_>) -> Option<String> {
    let part = |party: Watched| format!("{} {}", party.who.words().0, Share(party.used / facts.cores()));
    let parts: Vec<String> = facts.parties().map(part).collect();
    let busy = Share(facts.evidence.found.machine_busy);
    (!parts.is_empty()).then(|| format!("The machine was {busy} busy ({}).", parts.join(", ")))
}

fn link_full(facts: &Facts<'_>) -> Option<String> {
    let evidence = facts.evidence;
    let link = evidence.link.filter(|link| *link > 0.0)?;
    let carried = evidence.top.bytes_per_second * evidence.origin_share.min(1.0);
    let [part, all] = [carried, link].map(Bytes);
    (carried >= ALWAYS * link).then(|| {
        format!("The network path to the API carried {part} per second of the {all} that it can carry.")
    })
}

fn compared_with_alone(evidence: &Evidence, limit: Limit) -> Option<String> {
    let alone = evidence.alone.map(|run| run.rate).filter(|rate| *rate > 0.0)?;
    let rate = evidence.top.rate;
    let ([of_all, of_those], share) = ([alone, rate].map(Number), Share((rate / alone).min(1.0)));
    match limit {
        Limit::Api if evidence.origin_share >= ALWAYS && rate >= ALWAYS * alone => Some(format!(
            "The proxy passes on {share} of the {of_all} responses per second that the API gives without it."
        )),
        Limit::Proxy if rate < ALWAYS * alone => Some(format!(
            "The API gives {of_all} responses per second without the proxy and {of_those} through it."
        )),
        _ => None,
    }
}

fn doubts(facts: &Facts<'_>, limit: Limit) -> Vec<String> {
    let evidence = facts.evidence;
    let generator = facts.generator.map_or(0.0, |generator| generator.used / facts.cores());
    let is_shared =
        evidence.found.machine_busy >= ALWAYS && !matches!(limit, Limit::Generator | Limit::Unknown);
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
    told.map(|(share, _, words)| format!("{} {words}", Share(share))).collect()
}
