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

use super::wording::{count, duration, percent, volume};
use super::{Evidence, Limit, Once, Verdict};
use crate::party::Spent;

/// From here on a party counts as one that wants a core all the time.
const FULL: f64 = 0.85;
/// From here on it may be waited for, where nothing else is.
const NEARLY: f64 = 0.6;
/// By so much one must be fuller than another so that this alone tells which of them limits.
const MARGIN: f64 = 0.07;
/// Of what it wanted, so much a party must have got, for its wish to mean work: on a crowded machine one that does little
/// waits for long each time it wakes.
const RAN: f64 = 0.3;
/// In this share of the periods of its CPU limit a party must have used it up for that to be what it lacks.
const HELD_BACK: f64 = 0.5;
/// Below this share of requests that reach the API it cannot be what limits.
const REACHED: f64 = 0.05;
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
/// From this share of stolen CPU on nobody's waiting says anything.
const STOLEN: f64 = 0.15;
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
/// By so much rate times latency may be less than the connections.
const LITTLE: f64 = 0.15;

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

/// With the time that a hypervisor took from those that ran, as much for each second that they did as of the whole machine:
/// the scheduler's clock stands still meanwhile (Linux's paravirtual time accounting), so that who wants a core all the
/// time seems to want it for what is left. Where much was taken, it is not known from whom.
fn with_stolen_time(evidence: &Evidence) -> Evidence {
    let ran = evidence.machine_busy - evidence.stolen;
    if evidence.stolen >= STOLEN || ran <= 0.0 {
        return evidence.clone();
    }
    let lost = evidence.stolen / ran;
    let made_up = |spent: Spent| Spent {
        wanted: (spent.wanted + lost * spent.busiest).min(1.0),
        wanted_cores: spent.wanted_cores + lost * cores_used(&spent),
        ..spent
    };
    Evidence {
        proxy: evidence.proxy.map(made_up),
        api: evidence.api.map(made_up),
        generator: evidence.generator.map(made_up),
        ..evidence.clone()
    }
}

/// The parties that can be seen.
fn parties(evidence: &Evidence) -> impl Iterator<Item = (Limit, Spent)> {
    let all =
        [(Limit::Api, evidence.api), (Limit::Proxy, evidence.proxy), (Limit::Generator, evidence.generator)];
    all.into_iter().filter_map(|(limit, spent)| Some((limit, spent?)))
}

/// Cores that a party used on average; 0 where it was not watched for any time.
fn cores_used(spent: &Spent) -> f64 {
    if spent.seconds > 0.0 { spent.cpu_seconds / spent.seconds } else { 0.0 }
}

/// Parties that want a core all the time.
fn full(evidence: &Evidence) -> Vec<(Limit, Spent)> {
    parties(evidence)
        .filter(|(limit, _)| *limit != Limit::Api || evidence.origin_share >= REACHED)
        .filter(|(_, spent)| {
            is_held_back(spent)
                || fullness(spent, evidence.cores) >= FULL && is_working(spent, evidence.cores)
        })
        .collect()
}

/// 1: a thread wants a core all the time, or all threads together want all cores.
fn fullness(spent: &Spent, cores: u32) -> f64 {
    spent.wanted.max(spent.wanted_cores / f64::from(cores.max(1))).min(1.0)
}

/// Whether a limit of its own leaves it no more.
fn is_held_back(spent: &Spent) -> bool {
    spent.held_back >= HELD_BACK
}

fn is_working(spent: &Spent, cores: u32) -> bool {
    let wanted = spent.wanted_cores.min(f64::from(cores.max(1)));
    wanted > 0.0 && cores_used(spent) >= RAN * wanted
}

/// Which of the full ones limits.
fn fullest(evidence: &Evidence, full: &[(Limit, Spent)]) -> Option<Limit> {
    let held_back = full.iter().filter(|(_, spent)| is_held_back(spent));
    if let Some((limit, _)) =
        held_back.max_by(|(_, one), (_, other)| one.held_back.total_cmp(&other.held_back))
    {
        return Some(*limit);
    }
    let share = |spent: &Spent| fullness(spent, evidence.cores);
    let highest = full.iter().map(|(_, spent)| share(spent)).fold(0.0, f64::max);
    // Those that are about as full as the fullest have work all the time; the one that does most of it is in the way.
    let close = full.iter().filter(|(_, spent)| share(spent) > highest - MARGIN);
    close
        .max_by(|(_, one), (_, other)| one.cpu_seconds.total_cmp(&other.cpu_seconds))
        .map(|(limit, _)| *limit)
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

fn doubts(evidence: &Evidence, limit: Limit, full: &[(Limit, Spent)]) -> Vec<String> {
    let mut doubts = Vec::new();
    let run = &evidence.top;
    if run.error_share > 0.01 {
        doubts.push(format!(
            "{} of the requests failed, so the figures do not describe a healthy system.",
            percent(run.error_share)
        ));
    }
    let in_flight = run.rate * run.latency;
    let connections = f64::from(run.connections);
    if run.error_share <= 0.01 && in_flight < (1.0 - LITTLE) * connections {
        doubts.push(format!(
            "{} per second times {} is {} requests at once (Little's law), but there were {} connections: the \
             generator did not keep them busy.",
            count(run.rate),
            duration(run.latency),
            count(in_flight),
            run.connections
        ));
    }
    if limit != Limit::Others {
        doubts.extend(strangers(evidence));
    }
    let generator_share = evidence.generator.filter(|spent| spent.seconds > 0.0);
    if limit != Limit::Generator
        && !full.is_empty()
        && evidence.machine_busy > 0.9
        && let Some(spent) = generator_share
    {
        let share = cores_used(&spent) / f64::from(evidence.cores.max(1));
        if share > 0.1 {
            doubts.push(format!(
                "The machine was full, and the generator used {} of it: the figure would be higher with the \
                 generator on another machine.",
                percent(share)
            ));
        }
    }
    if evidence.api.is_none() && evidence.origin_share >= REACHED && limit != Limit::Generator {
        doubts.push("The API's CPU use cannot be seen from here.".to_owned());
    }
    doubts
}

/// Others on this machine that took a good part of it.
fn strangers(evidence: &Evidence) -> Option<String> {
    let share = strangers_share(evidence)?;
    (share > 0.2).then(|| {
        format!(
            "Other processes used {} of this machine meanwhile, {}.",
            percent(share),
            match evidence.proxy {
                Some(_) => "which may have lowered the figures",
                None => "for this server or at its expense",
            }
        )
    })
}

/// The share of the machine that none of the parties had; `None` where one of them cannot be seen.
fn strangers_share(evidence: &Evidence) -> Option<f64> {
    let known: f64 = parties(evidence).map(|(_, spent)| cores_used(&spent)).sum();
    // Where a party cannot be seen, it is among the strangers; so is what stands behind an API that is asked straight.
    if evidence.generator.is_none() || evidence.proxy.or(evidence.api).is_none() {
        return None;
    }
    Some(evidence.machine_busy - known / f64::from(evidence.cores.max(1)))
}
