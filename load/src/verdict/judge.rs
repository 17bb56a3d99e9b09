//! The decision: first who is out of CPU, and where nobody is, what the time goes to.
//!
//! ```text
//! somebody wants a core all the time? ── one ──▶ that one
//!        │                            └─ several ──▶ by a clear margin, else who used most
//!        ├─ nobody, and strangers have much of a full machine, or its host gives it to others ─▶ they
//!        ├─ nobody, but the machine is full, and requests are not in the API ─▶ who used most
//!        ├─ nobody, and requests are not in the API ─▶ the busiest, if somebody is busy
//!        └─ nobody ─▶ through the proxy alone slow? ─▶ proxy
//!                     the way is long, narrow or full? ─▶ network
//!                     else ─▶ API (its workers, or what it waits for)
//! ```

use super::doubts::doubts;
use super::fullness::{
    REACHED, STOLEN, cores_used, full, fullest, fullness, is_held_back, is_working, parties, strangers_share,
    with_stolen_time,
};
use super::wording::{count, duration, percent, volume};
use super::{Evidence, Limit, Once, Verdict};
use crate::party::Spent;

/// From here on it may be waited for, where nothing else is.
const NEARLY: f64 = 0.6;
/// A smaller body comes with the first byte, so when its end comes says nothing of the network.
const TELLING_BODY: f64 = 16_384.0;
/// The share of an answer's time that its body must take for the network to be what is waited for.
const BODY_SHARE: f64 = 0.5;
/// The share of the time to the first byte that the way there and back must take for the same.
const DISTANCE_SHARE: f64 = 0.5;
/// A shorter way, in seconds, is none worth naming.
const NEAR: f64 = 0.001;
/// A link counts as full from here.
const LINK_FULL: f64 = 0.9;
/// How many times slower a single request must be through the proxy for that to be its fault.
const SLOWED: f64 = 2.0;
/// A machine that is this busy leaves nobody a core.
const CROWDED: f64 = 0.9;
/// Strangers that have this share of it hide who would be the limit without them.
const TAKEN: f64 = 0.3;
/// By so many times one party must have used more than the next for it to be the limit even then.
const CLEARLY: f64 = 2.0;
/// Cores that a party must have used to be in the way there.
const CROWDED_USE: f64 = 0.25;
/// Where the API works on a larger share of the requests on their way than this, they wait for it.
const CROWDED_SHARE: f64 = 0.25;
/// Where so many requests fail, what the API works on is not what it answers.
const FAILING: f64 = 0.1;
/// An answer under load that takes so much less than a single request is no sign of a load.
const QUICKER: f64 = 0.7;

/// Says what limits.
pub fn judge(evidence: &Evidence) -> Verdict {
    let evidence = &with_stolen_time(evidence);
    let full = full(evidence);
    let (limit, mut why) = match fullest(evidence, &full) {
        Some(limit) => (limit, why_full(evidence, limit, &full)),
        None => stolen(evidence)
            .or_else(|| taken(evidence))
            .or_else(|| crowded(evidence))
            .or_else(|| nearly(evidence))
            .unwrap_or_else(|| by_time(evidence)),
    };
    why.extend(compared_with_alone(evidence, limit));
    why.extend(with_fewer(evidence, limit));
    Verdict { limit, why, doubts: doubts(evidence, limit, &full) }
}

fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::Api => "API",
        Limit::Proxy => "proxy",
        Limit::Generator => "generator",
        Limit::Network => "network",
        Limit::Others => "others",
    }
}

fn why_full(evidence: &Evidence, limit: Limit, full: &[(Limit, Spent)]) -> Vec<String> {
    let mut why = Vec::new();
    let Some((_, spent)) = full.iter().find(|(other, _)| *other == limit) else { return why };
    let run = &evidence.top;
    let used = cores_used(spent);
    let wanted = match is_held_back(spent) {
        true => format!(
            "Its CPU limit (a container's, say) held it back in {} of its periods: it",
            percent(spent.held_back)
        ),
        false => format!(
            "Its threads wanted the CPU {} of the time{} and",
            percent(fullness(spent, evidence.cores)),
            if used < 0.8 * spent.wanted_cores { ", often waiting for a core," } else { "" },
        ),
    };
    why.push(format!(
        "{wanted} used {} of {} {}, which is {} per answer.",
        trim_cores(used),
        evidence.cores,
        if evidence.cores == 1 { "core" } else { "cores" },
        duration(if run.rate > 0.0 { used / run.rate * (1.0 - run.error_share) } else { 0.0 }),
    ));
    let others = parties(evidence).filter(|(other, spent)| *other != limit && spent.seconds > 0.0);
    let others: Vec<String> = others
        .map(|(other, spent)| format!("the {} used {}", name(other), trim_cores(cores_used(&spent))))
        .collect();
    if !others.is_empty() {
        why.push(format!("Meanwhile {}.", others.join(" and ")));
    }
    why
}

fn trim_cores(cores: f64) -> String {
    format!("{cores:.2}")
}

/// A virtual machine at work whose host gives its cores to others: who waits for them looks as idle as who waits for an answer.
fn stolen(evidence: &Evidence) -> Option<(Limit, Vec<String>)> {
    let is_busy = evidence.machine_busy >= NEARLY;
    (evidence.stolen >= STOLEN && is_busy && is_elsewhere(evidence)).then(|| {
        let why = format!(
            "The host of this virtual machine gave {} of its CPU to other machines (steal): run this again when it \
             is quiet.",
            percent(evidence.stolen)
        );
        (Limit::Others, vec![why])
    })
}

/// A full machine of which strangers have much and no party clearly most of the rest: what they would want of it cannot be
/// seen. Where requests are in the API all the time, it is the API that they wait for, however crowded it is.
fn taken(evidence: &Evidence) -> Option<(Limit, Vec<String>)> {
    // Of a server that is asked straight they may be what it waits for.
    evidence.proxy?;
    let share = strangers_share(evidence)?;
    let mut used: Vec<f64> = parties(evidence).map(|(_, spent)| cores_used(&spent)).collect();
    used.sort_by(f64::total_cmp);
    let is_clear = matches!(used.as_slice(), [.., second, most] if *most >= CLEARLY * second);
    let is_seen = evidence.api.is_some() || evidence.origin_share < REACHED;
    let is_full = evidence.machine_busy >= CROWDED && share >= TAKEN;
    (is_full && is_seen && !is_clear && is_elsewhere(evidence)).then(|| {
        let why = format!(
            "The machine was full, and processes other than API, proxy and generator used {} of it: run this again \
             when it is quiet.",
            percent(share)
        );
        (Limit::Others, vec![why])
    })
}

/// Requests that the API works on at once, by Little's law; without end where that is not known. A single request that
/// itself waited for a core would count as one that the API works on, so the shortest of them says how long it does.
fn in_api(evidence: &Evidence) -> f64 {
    if evidence.origin_share < REACHED {
        return 0.0;
    }
    // Nor does it work on a request for longer than an answer takes: single ones each have a connection of their own, which
    // may be dear.
    let longest = if evidence.top.latency > 0.0 { evidence.top.latency } else { f64::INFINITY };
    let Some(once) = evidence.direct else { return f64::INFINITY };
    // Where a host takes cores, who is asked wakes late, whoever it is: what the proxy adds to a single request tells by how
    // much.
    let wakes = evidence.through.map_or(0.0, |through| (through.least - once.least).max(0.0));
    let wakes = if evidence.stolen >= STOLEN { wakes } else { 0.0 };
    evidence.top.rate * evidence.origin_share * (once.least - wakes).max(0.0).min(longest)
}

/// Whether most requests on their way wait for something other than the API.
fn is_elsewhere(evidence: &Evidence) -> bool {
    in_api(evidence) < CROWDED_SHARE * f64::from(evidence.top.connections)
}

/// Strangers leave none of the parties a core, so that none can want one all the time; still the requests wait for CPU and
/// not in the API, and who needs most of it is in the way.
fn crowded(evidence: &Evidence) -> Option<(Limit, Vec<String>)> {
    let used = parties(evidence).map(|(limit, spent)| (limit, cores_used(&spent)));
    let (limit, most) = used.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let run = &evidence.top;
    let is_crowded = evidence.machine_busy >= CROWDED && most >= CROWDED_USE && is_elsewhere(evidence);
    is_crowded.then(|| {
        let why = format!(
            "The machine was full. Of {} requests under way the API worked on only {}, and the {} used the \
             most CPU: {most:.2} of {} cores, {} per answer.",
            run.connections,
            count(in_api(evidence)),
            name(limit),
            evidence.cores,
            duration(most / run.rate),
        );
        (limit, vec![why])
    })
}

/// Nobody wants a core all the time, and hardly a request is in the API: then they wait for the busiest, whose work comes in
/// bunches. Where nothing is asked of the API, a few connections may simply be too few.
fn nearly(evidence: &Evidence) -> Option<(Limit, Vec<String>)> {
    let fullness = |spent: &Spent| fullness(spent, evidence.cores);
    let busiest = parties(evidence)
        .filter(|(_, spent)| fullness(spent) >= NEARLY && is_working(spent, evidence.cores))
        .max_by(|(_, one), (_, other)| fullness(one).total_cmp(&fullness(other)))?;
    (evidence.origin_share >= REACHED && is_elsewhere(evidence))
        .then(|| (busiest.0, why_full(evidence, busiest.0, &[busiest])))
}

/// What the time goes to where nobody is out of CPU.
fn by_time(evidence: &Evidence) -> (Limit, Vec<String>) {
    let nobody = nobody_busy(evidence);
    if let Some(why) = slowed_by_proxy(evidence) {
        return (Limit::Proxy, std::iter::once(why).chain(nobody).collect());
    }
    let network = [link_full(evidence), narrow(evidence), far(evidence)];
    let network: Vec<String> = network.into_iter().flatten().collect();
    if !network.is_empty() && evidence.origin_share >= REACHED {
        return (Limit::Network, network.into_iter().chain(nobody).collect());
    }
    if evidence.origin_share < REACHED {
        // Hardly anything reaches the API, and everybody has CPU left: more load would have been answered.
        let idle = "Hardly any request reached the API, and the proxy had CPU to spare: it would have answered more \
         load.";
        return (Limit::Generator, std::iter::once(idle.to_owned()).chain(nobody).collect());
    }
    (Limit::Api, waits(evidence).into_iter().chain(nobody).collect())
}

fn nobody_busy(evidence: &Evidence) -> Option<String> {
    let parts: Vec<String> = parties(evidence)
        .filter(|(_, spent)| spent.seconds > 0.0)
        .map(|(limit, spent)| {
            format!("{} {}", name(limit), percent(cores_used(&spent) / f64::from(evidence.cores.max(1))))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let parts = parts.join(", ");
    // Full of whom these wait for, or of strangers: the figures do not say which.
    Some(match evidence.machine_busy >= CROWDED {
        true => format!("The machine was full; this much of it is accounted for: {parts}."),
        false => format!("Nobody ran out of CPU (shares of this machine: {parts})."),
    })
}

/// A single request, with nobody else about, is much slower through the proxy.
fn slowed_by_proxy(evidence: &Evidence) -> Option<String> {
    let (direct, through) = (evidence.direct?, evidence.through?);
    let added = through.least - direct.least;
    (through.least > SLOWED * direct.least && added > NEAR).then(|| {
        format!(
            "A single request takes {} when it is sent directly to the API and {} through the proxy.",
            duration(direct.least),
            duration(through.least)
        )
    })
}

fn link_full(evidence: &Evidence) -> Option<String> {
    let link = evidence.link.filter(|link| *link > 0.0)?;
    let carried = evidence.top.bytes_per_second * evidence.origin_share.min(1.0);
    (carried >= LINK_FULL * link).then(|| {
        format!(
            "The network path to the API carried {} per second of the {} that it can carry.",
            volume(carried),
            volume(link)
        )
    })
}

/// Most of an answer's time is its body on its way, already for a single request.
fn narrow(evidence: &Evidence) -> Option<String> {
    let once = evidence.direct.or(evidence.through)?;
    let run = &evidence.top;
    let on_the_way = once.least - once.least_first_byte;
    let under_load = run.latency - run.first_byte;
    // A proxy that reads an answer whole before it passes it on hides the way in the time to the first byte.
    let hidden = evidence.through.map_or(0.0, |through| through.least_first_byte - once.least_first_byte);
    let shows = under_load.max(hidden.min(on_the_way)) >= 0.3 * BODY_SHARE * run.latency
        || under_load >= 0.5 * on_the_way;
    let is_narrow = once.body_bytes >= TELLING_BODY
        && on_the_way >= BODY_SHARE * once.least
        && on_the_way > NEAR
        && shows;
    is_narrow.then(|| {
        format!(
            "A single request to the API gets its first byte after {} and its last after {}: {} arrive at {} per \
             second, and an answer takes {} under load.",
            duration(once.least_first_byte),
            duration(once.least),
            volume(once.body_bytes),
            volume(once.body_bytes / on_the_way),
            duration(run.latency),
        )
    })
}

/// Most of the time to the first byte is the way there and back.
fn far(evidence: &Evidence) -> Option<String> {
    let Once { connect, least_first_byte: first_byte, .. } = evidence.direct?;
    // Under load the API may be what makes it slow all the same.
    let is_far = !evidence.is_here
        && connect > NEAR
        && connect >= DISTANCE_SHARE * first_byte
        && evidence.top.latency < 2.0 * (first_byte + connect);
    is_far.then(|| {
        format!(
            "The round trip to the API takes {}, which is {} of the time to its first byte.",
            duration(connect),
            percent((connect / first_byte).min(1.0))
        )
    })
}

/// What a request waits for in the API, by Little's law.
fn waits(evidence: &Evidence) -> Vec<String> {
    let run = &evidence.top;
    let Some(once) = evidence.direct.or(evidence.through) else {
        return vec![format!(
            "An answer takes {1} on {0} connections, {2} of it before its first byte.",
            run.connections,
            duration(run.latency),
            duration(run.first_byte)
        )];
    };
    let asked = run.rate * evidence.origin_share.min(1.0);
    let at_once = asked * once.mean;
    let mut why = Vec::new();
    if run.latency < QUICKER * once.least {
        why.push(format!(
            "An answer takes {} under load; a single request before the load took {}, as first requests may. {} \
             connections at {} each give {} per second.",
            duration(run.latency),
            duration(once.least),
            run.connections,
            duration(run.latency),
            count(f64::from(run.connections) / run.latency.max(f64::MIN_POSITIVE)),
        ));
    } else if run.latency < 1.3 * once.mean {
        why.push(format!(
            "An answer takes {} under load and {} alone: the API needs nearly all of that itself, and {} connections \
             at {} each give {} per second.",
            duration(run.latency),
            duration(once.mean),
            run.connections,
            duration(run.latency),
            count(f64::from(run.connections) / run.latency.max(f64::MIN_POSITIVE)),
        ));
    } else if evidence.machine_busy >= CROWDED || run.error_share > FAILING {
        why.push(format!(
            "A single request takes {}; under load an answer takes {}, because it waits its turn.",
            duration(once.mean),
            duration(run.latency),
        ));
    } else {
        why.push(format!(
            "A single request takes {}; under load an answer takes {}, because it waits its turn. {} per second at \
             {} each is {} requests at once (Little's law): the API works on that many, and the other {} of {} wait.",
            duration(once.mean),
            duration(run.latency),
            count(asked),
            duration(once.mean),
            count(at_once.round().max(1.0)),
            count((f64::from(run.connections) - at_once).max(0.0).round()),
            run.connections,
        ));
    }
    why
}

/// What the API does alone at as many connections.
fn compared_with_alone(evidence: &Evidence, limit: Limit) -> Option<String> {
    let alone = evidence.api_rate.filter(|rate| *rate > 0.0)?;
    let ratio = evidence.top.rate / alone;
    match limit {
        Limit::Api if evidence.origin_share > 0.9 && ratio > 0.85 => Some(format!(
            "The proxy passes on {} of the {} answers per second that the API gives without it.",
            percent(ratio.min(1.0)),
            count(alone)
        )),
        Limit::Proxy if ratio < 0.9 => Some(format!(
            "The API gives {} answers per second without the proxy and {} through it.",
            count(alone),
            count(evidence.top.rate)
        )),
        _ => None,
    }
}

/// What more connections brought.
fn with_fewer(evidence: &Evidence, limit: Limit) -> Option<String> {
    let fewer = evidence.fewer.filter(|run| run.rate > 0.0 && run.connections < evidence.top.connections)?;
    let (rate, latency) =
        (evidence.top.rate / fewer.rate, evidence.top.latency / fewer.latency.max(f64::MIN_POSITIVE));
    let more = f64::from(evidence.top.connections) / f64::from(fewer.connections.max(1));
    if rate < 1.1 {
        return Some(format!(
            "{} connections instead of {} brought no more answers, and each took {} times as long.",
            evidence.top.connections,
            fewer.connections,
            super::factor(latency)
        ));
    }
    (rate > 0.8 * more && limit != Limit::Generator).then(|| {
        format!(
            "{} connections instead of {} brought {} times the answers: more connections would bring more still.",
            evidence.top.connections,
            fewer.connections,
            super::factor(rate)
        )
    })
}
