//! The decision: three rules in order, each a name only where the facts show it, and then why it is unknown.
//!
//! 1. somebody is saturated: always at work on the cores that he may use, held back by a limit of his own; or a full link;
//! 2. the way: most of a request's time is the round trip;
//! 3. the place: nobody is saturated, more requests at once bring no more answers, and one place has most of their time.
//!
//! Next: `facts`, which the rules read.

use super::facts::{Facts, MOST, Watched};
use super::once::LONGER;
use super::wording::{count, duration, percent, volume};
use super::{Evidence, Limit, Verdict};
use crate::outcome::ALWAYS;

/// The least that counts as more: as in [`ALWAYS`], a tenth.
const GAIN: f64 = 1.0 / ALWAYS;
/// Of a hundred requests the 99th percentile is about one: where more fail, the figures are not those of answers alone.
const FAILING: f64 = 0.01;

/// What a rule found: who, or unknown, and how that is known.
type Ruling = (Limit, Vec<String>);

/// The rules, in the order in which they are asked; the last always says something.
const RULES: [fn(&Facts<'_>) -> Option<Ruling>; 4] =
    [saturated, long_way, one_place, |facts| Some((Limit::Unknown, unknown(facts)))];

/// Says what limits.
pub fn judge(evidence: &Evidence) -> Verdict {
    let facts = Facts::of(evidence);
    let (limit, mut why) = RULES.iter().find_map(|rule| rule(&facts)).unwrap_or((Limit::Unknown, Vec::new()));
    why.extend(compared_with_alone(evidence, limit));
    Verdict { limit, why, doubts: doubts(&facts, limit) }
}

/// The party in a sentence.
fn name(who: Limit) -> &'static str {
    match who {
        Limit::Api => "API",
        Limit::Proxy => "proxy",
        Limit::Generator => "load generator",
        Limit::Network => "network",
        Limit::Unknown => "?",
    }
}

/// Rule 1. Where parties share cores, several are at work most of the time, each because of the others: then it is the one
/// without which the answers would gain by far the most.
fn saturated(facts: &Facts<'_>) -> Option<Ruling> {
    let evidence = facts.evidence;
    let link = link_full(facts);
    let full = facts.parties().filter(|party| is_full(facts, party));
    let most = full.max_by(|one, other| facts.gain_without(one).total_cmp(&facts.gain_without(other)));
    let Some(limit) = most else {
        let out_of_ports = || evidence.floor.is_some().then(|| (Limit::Generator, why_floor(evidence)));
        return link.map(|why| (Limit::Network, vec![why])).or_else(out_of_ports);
    };
    let is_rival = |other: &Watched| {
        let is_in_question = other.at_work > MOST && (other.who != Limit::Api || facts.asks_api());
        other.who != limit.who
            && is_in_question
            && facts.gain_without(other) > MOST * facts.gain_without(&limit)
    };
    let rivals: Vec<Watched> = facts.parties().filter(is_rival).collect();
    if link.is_some() || !rivals.is_empty() {
        let several: Vec<Watched> = std::iter::once(limit).chain(rivals).collect();
        return Some((Limit::Unknown, why_several(facts, &several, link)));
    }
    if facts.stolen > 1.0 - ALWAYS && !limit.is_held_back() {
        return Some((Limit::Unknown, why_stolen(facts)));
    }
    // A generator that gets no core is the limit, whoever has it.
    if limit.who != Limit::Generator && !limit.is_held_back() && facts.is_starved(&limit) {
        return Some((Limit::Unknown, why_starved(facts, &limit)));
    }
    Some((limit.who, why_saturated(facts, &limit)))
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
    Some((Limit::Network, std::iter::once(why).chain(shares(facts)).collect()))
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
        return Some((Limit::Proxy, std::iter::once(why).chain(shares(facts)).collect()));
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
    Some((Limit::Api, [waits, place].into_iter().chain(shares(facts)).collect()))
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

/// Why it is unknown, and what would tell.
fn unknown(facts: &Facts<'_>) -> Vec<String> {
    let (evidence, run) = (facts.evidence, &facts.evidence.top);
    let crowd = facts.strangers_share().filter(|share| *share > 1.0 - ALWAYS && evidence.machine_busy > MOST);
    let said = |reason: String, tells: &str| std::iter::once(reason).chain([tells.to_owned()]);
    let is_open = brings_no_more(facts).is_none() && (evidence.direct.is_some() || evidence.fewer.is_some());
    let reason: Vec<String> = if facts.stolen > 1.0 - ALWAYS {
        return why_stolen(facts);
    } else if let Some(api) = facts.api.filter(|api| facts.is_starved(api)) {
        return why_starved(facts, &api);
    } else if let Some(share) = crowd {
        said(
            format!(
                "other processes used {} of this machine, and no party was at work all the time.",
                percent(share)
            ),
            "Run this again when the machine is quiet.",
        )
        .collect()
    } else if !facts.asks_api() {
        said(
            "no limit was reached. Hardly any request reached the API, and everybody had CPU to spare."
                .to_owned(),
            "More connections (-c) would bring more answers.",
        )
        .collect()
    } else if facts.api.is_none() && run.latency > 0.0 {
        said(
            unseen(facts),
            "Run `millstream bench` on the API's machine, or watch it there with top, under this load.",
        )
        .collect()
    } else if facts.in_api() > MOST && is_open {
        said(
            format!(
                "no limit was reached. An answer takes {} under load and {} alone.",
                duration(run.latency),
                duration(evidence.direct.map_or(0.0, |once| once.mean))
            ),
            "More connections (-c) would bring more answers.",
        )
        .collect()
    } else if facts.in_api() > MOST {
        said(
            "requests spend most of their time in the API, but nothing shows whether more of them bring more answers."
                .to_owned(),
            "Measure again with half as many connections (-c).",
        )
        .collect()
    } else {
        said(
            "nobody was at work all the time, and no single place has most of a request's time.".to_owned(),
            "More connections (-c) or a longer run (--duration) show who runs out first.",
        )
        .collect()
    };
    reason.into_iter().chain(shares(facts)).collect()
}

/// What is said of an API whose CPU is not seen.
fn unseen(facts: &Facts<'_>) -> String {
    let run = &facts.evidence.top;
    let body = run.latency - run.first_byte;
    let way = if body > MOST * run.latency {
        format!(
            " Most of an answer's time is its body ({} of {}): the network may be narrow, or the API writes slowly.",
            duration(body),
            duration(run.latency)
        )
    } else {
        String::new()
    };
    let whose =
        if facts.evidence.is_here { "its process cannot be seen" } else { "it is on another machine" };
    format!("the API's CPU cannot be seen, because {whose}.{way}")
}

fn why_stolen(facts: &Facts<'_>) -> Vec<String> {
    vec![
        format!(
            "the host of this virtual machine gave {} of its CPU to other machines (steal).",
            percent(facts.evidence.stolen)
        ),
        "Run this again when it is quiet.".to_owned(),
    ]
}

fn why_starved(facts: &Facts<'_>, party: &Watched) -> Vec<String> {
    vec![
        format!(
            "other processes used {} of this machine, and the {} waited for a core {} of the time.",
            percent(facts.strangers_share().unwrap_or(0.0)),
            name(party.who),
            percent(party.waited)
        ),
        "Run this again when the machine is quiet.".to_owned(),
    ]
}

/// Several of which each may be the limit.
fn why_several(facts: &Facts<'_>, several: &[Watched], link: Option<String>) -> Vec<String> {
    let names: Vec<String> = several.iter().map(|party| format!("the {}", name(party.who))).collect();
    let used: Vec<String> =
        several.iter().map(|party| format!("the {} used {:.2}", name(party.who), party.used)).collect();
    let used = format!("{} of {}", used.join(", "), cores(facts));
    let reason = match link {
        Some(_) => {
            format!("{} had work all the time, and the network was full: {used}.", names.join(" and "))
        }
        None => format!("{} each had work most of the time: {used}.", names.join(" and ")),
    };
    let tells = match several.iter().any(|party| party.who == Limit::Generator) {
        true => "Put the generator on another machine: then it is seen which of them is left.",
        false => "Give each of them cores of its own: then it is seen which of them is left.",
    };
    std::iter::once(reason).chain([tells.to_owned()]).chain(link).collect()
}

fn why_floor(evidence: &Evidence) -> Vec<String> {
    let floor = evidence.floor.as_deref().unwrap_or_default();
    let mut letters = floor.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    vec![format!("{first}{}.", letters.as_str().trim_end_matches('.'))]
}

fn why_saturated(facts: &Facts<'_>, limit: &Watched) -> Vec<String> {
    let run = &facts.evidence.top;
    if limit.who == Limit::Generator {
        return why_floor(facts.evidence).into_iter().chain(meanwhile(facts, limit.who)).collect();
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
    let used = format!(
        "{wanted}: it used {:.2} of {}, which is {} per answer.",
        limit.used,
        cores(facts),
        duration(each)
    );
    std::iter::once(used).chain(meanwhile(facts, limit.who)).collect()
}

/// `2 cores`.
fn cores(facts: &Facts<'_>) -> String {
    format!("{} {}", facts.evidence.cores, if facts.evidence.cores == 1 { "core" } else { "cores" })
}

/// What the others used.
fn meanwhile(facts: &Facts<'_>, limit: Limit) -> Option<String> {
    let others = facts.parties().filter(|party| party.who != limit);
    let used: Vec<String> =
        others.map(|party| format!("the {} used {:.2}", name(party.who), party.used)).collect();
    (!used.is_empty()).then(|| format!("Meanwhile {}.", used.join(" and ")))
}

/// What each had of this machine.
fn shares(facts: &Facts<'_>) -> Option<String> {
    let cores = facts.cores();
    let parts: Vec<String> =
        facts.parties().map(|party| format!("{} {}", name(party.who), percent(party.used / cores))).collect();
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
    let errors = facts.evidence.top.error_share;
    let failing = (errors > FAILING).then(|| {
        format!(
            "{} of the requests failed, so the figures do not describe a healthy system.",
            percent(errors)
        )
    });
    let strangers = facts.strangers_share().filter(|share| *share > 1.0 - ALWAYS && limit != Limit::Unknown);
    let strangers = strangers.map(|share| {
        format!(
            "Other processes used {} of this machine meanwhile, which may have lowered the figures.",
            percent(share)
        )
    });
    let share = facts.generator.map_or(0.0, |generator| generator.used / facts.cores());
    let is_shared = facts.evidence.machine_busy >= ALWAYS && share > 1.0 - ALWAYS;
    let shared = (is_shared && !matches!(limit, Limit::Generator | Limit::Unknown)).then(|| {
        format!(
            "The machine was full, and the generator used {} of it: the figure would be higher with the generator on \
             another machine.",
            percent(share)
        )
    });
    [failing, strangers, shared].into_iter().flatten().collect()
}
