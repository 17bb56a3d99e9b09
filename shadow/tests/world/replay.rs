//! Replays requests against what is recommended, and against the best that is possible.

use super::endpoint::{Asked, Client};
use super::{Event, History, START, Traffic, skewed};
use fastrand::Rng;
use millstream_shadow::report::{RouteReport, UsualField};
use millstream_wire::FieldId;
use millstream_wire::unlisted::is_listed;
use std::collections::{BTreeSet, HashMap};

const LIFETIMES: [u32; 7] = [1, 2, 5, 10, 30, 60, 300];

#[derive(Debug, Default, Clone)]
pub struct Score {
    /// Routes that are cached though a client gets another's response.
    pub leaks: Vec<String>,
    pub cacheable: u32,
    pub found: u32,
    pub missed: Vec<String>,
    pub lifetimes: u32,
    pub wrong_lifetimes: Vec<String>,
    /// Cached routes whose hit ratio with other clients was measured, and those with which it was outside of the interval.
    pub ratios: u32,
    pub wrong_ratios: Vec<String>,
    /// Hits, and stale ones, of all cached routes.
    pub hits: u64,
    pub stale: u64,
    /// Cached routes with a higher rate of stale hits than the budget, and runs of all routes.
    pub over_budget: Vec<String>,
    pub runs_over_budget: u32,
}

impl Score {
    pub fn add(&mut self, other: Score) {
        self.leaks.extend(other.leaks);
        self.cacheable += other.cacheable;
        self.found += other.found;
        self.missed.extend(other.missed);
        self.lifetimes += other.lifetimes;
        self.wrong_lifetimes.extend(other.wrong_lifetimes);
        self.ratios += other.ratios;
        self.wrong_ratios.extend(other.wrong_ratios);
        self.hits += other.hits;
        self.stale += other.stale;
        self.over_budget.extend(other.over_budget);
        self.runs_over_budget += other.runs_over_budget;
    }
}

/// The key of the recommended cache, and whether the response may be stored; `None` if the request is passed on. Written from the report
/// alone.
fn key(route: &RouteReport, asked: &Asked) -> Option<(String, bool)> {
    let value = |label: &str| -> Option<String> {
        match label.split_once(' ') {
            Some(("cookie", name)) => asked.cookie(name).map(str::to_owned),
            Some(("header", name)) => asked.field(name).map(str::to_owned),
            Some(("query", name)) => asked.argument(name).map(str::to_owned),
            _ if label == "certificate" => asked.certificate.clone(),
            _ => None,
        }
    };
    if asked.method != "GET" || route.bypasses.iter().any(|label| value(label).is_some()) {
        return None;
    }
    let is_known = |label: &String| {
        route.shares.contains(label) || route.varies_by.contains(label) && !route.bypasses.contains(label)
    };
    let mut cookies = asked.field("cookie").into_iter().flat_map(|cookies| cookies.split("; "));
    if !cookies.all(|cookie| is_known(&format!("cookie {}", cookie.split('=').next().unwrap_or_default()))) {
        return None;
    }
    let has_usual_value = |of: &UsualField| {
        let value = asked.field(&of.field).unwrap_or_default();
        of.values.as_ref().is_none_or(|values| values.iter().any(|of| of == value))
    };
    let may_matter = |name: &str| !is_listed(FieldId::of(name.as_bytes()), name.as_bytes());
    let is_of_a_rule =
        |name: &str| route.usual.iter().any(|of| of.field == name) || is_known(&format!("header {name}"));
    let mut fields = asked.fields.iter().map(|(name, _)| *name);
    if !route.usual.iter().all(has_usual_value) || fields.any(|name| may_matter(name) && !is_of_a_rule(name))
    {
        return None;
    }
    if let Some(of) = &route.key_values {
        let values: Vec<String> = of.names.iter().map(|label| value(label).unwrap_or_default()).collect();
        if !of.values.contains(&values) {
            return None;
        }
    }
    let mut key = format!("{}{}?", asked.host(), asked.path);
    for argument in asked.query.iter().flat_map(|query| query.split('&')) {
        let name = argument.split('=').next().unwrap_or_default();
        let is_ignored = |of: &String| match of.strip_prefix("query ").map(|of| (of, of.strip_suffix('*'))) {
            Some((_, Some(prefix))) => name.starts_with(prefix),
            Some((of, None)) => of == name,
            None => false,
        };
        if !route.ignores.iter().any(is_ignored) {
            key += &format!("{argument}&");
        }
    }
    for label in
        route.varies_by.iter().filter(|label| !label.starts_with("query") && !route.bypasses.contains(label))
    {
        key += &format!("|{label}={}", value(label).unwrap_or_default());
    }
    Some((key, !route.served_only.iter().any(|label| value(label).is_some())))
}

pub fn judge(history: &mut History, seed: u64, budget: f64) -> Score {
    let mut score = Score::default();
    history.endpoints.iter_mut().for_each(|endpoint| endpoint.is_silent = true);
    let mut kept: HashMap<usize, Vec<&RouteReport>> = HashMap::new();
    let mut cache: HashMap<String, (u64, u64)> = HashMap::new();
    let mut leaking: HashMap<usize, u64> = HashMap::new();
    let report = history.report.clone();
    let mut serve = |asked: &Asked, at: u64, class: u64, is_storable: bool, endpoint: usize| {
        let Some(route) = report.route_of(0, asked.path.as_bytes()).map(|number| &report.routes[number])
        else {
            return;
        };
        let Some(seconds) = route.keep_seconds else { return };
        let Some((key, may_store)) = key(route, asked) else { return };
        match cache.get(&key) {
            Some((until, stored)) if *until > at => {
                *leaking.entry(endpoint).or_default() += u64::from(*stored != class);
            }
            _ if is_storable && may_store => {
                cache.insert(key, (at + u64::from(seconds) * 1_000, class));
            }
            _ => {}
        }
    };
    for event in &history.events {
        serve(&event.asked, event.at, event.class, event.is_storable, event.endpoint);
    }
    // The same endpoints, ten other clients among twenty known ones.
    let mut rng = Rng::with_seed(seed ^ 0x5a5a);
    let clients: Vec<Client> = (20..50).map(|number| Client::new(number, &mut rng)).collect();
    let mut now = history.events.last().map_or(START, |event| event.at) + 1_000_000;
    for endpoint in 0..history.endpoints.len() {
        let mut other: Option<Asked> = None;
        for _ in 0..2_000 {
            now += rng.u64(0..120);
            let client = &clients[skewed(&mut rng, clients.len())];
            let mut asked = history.endpoints[endpoint].ask(client, &mut rng);
            // One in five has forged credentials, and one in five none.
            let tries = rng.u8(..5);
            if tries < 2 {
                asked = asked.with_credentials(tries == 0);
            }
            // One in three tries the URL of another client.
            if let Some(other) = other.as_ref().filter(|_| rng.u8(..3) == 0) {
                asked = asked.for_that_of(other);
            } else if asked.method == "GET" {
                other = Some(asked.clone());
            }
            let reply = history.endpoints[endpoint].respond(&asked, now, &mut rng);
            serve(&asked, now, reply.class, reply.is_storable, endpoint);
        }
    }
    for (endpoint, count) in leaking.into_iter().filter(|(_, count)| *count > 0) {
        score.leaks.push(format!("{seed}: {:?} ({count})", history.endpoints[endpoint].kind));
    }
    for event in history.events.iter().filter(|event| event.asked.method == "GET") {
        let Some(number) = history.report.route_of(0, event.asked.path.as_bytes()) else { continue };
        let routes = kept.entry(event.endpoint).or_default();
        if !routes.iter().any(|route| std::ptr::eq(*route, &history.report.routes[number])) {
            routes.push(&history.report.routes[number]);
        }
    }
    for (number, endpoint) in
        history.endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.is_shareable())
    {
        let Some((best, hits)) = best(&history.events, number, budget) else { continue };
        score.cacheable += 1;
        let routes = kept.get(&number).map_or(&[][..], Vec::as_slice);
        let Some(route) = routes.iter().find(|route| route.keep_seconds.is_some()) else {
            let reason = routes.first().map_or("no route", |route| route.reason.as_str());
            score.missed.push(format!("{seed}: {:?} ({best} s, {hits} hits): {reason}", endpoint.kind));
            continue;
        };
        score.found += 1;
        score.lifetimes += 1;
        let step =
            |seconds: u32| LIFETIMES.iter().position(|of| *of >= seconds).unwrap_or(LIFETIMES.len() - 1);
        let best = if format!("{:?}", endpoint.kind) == "OwnLifetime" { best.min(30) } else { best };
        let chosen = route.keep_seconds.unwrap_or(0);
        if step(chosen).abs_diff(step(best)) > 1 {
            score
                .wrong_lifetimes
                .push(format!("{seed}: {:?}: {chosen} s instead of {best} s", endpoint.kind));
        }
    }
    measure(history, seed, budget, &mut score);
    score
}

/// What one route did with other clients.
#[derive(Debug, Default, Clone, Copy)]
struct Measured {
    requests: u64,
    hits: u64,
    stale: u64,
}

/// Runs what is recommended for as many requests of forty other clients, at the same rate.
fn measure(history: &mut History, seed: u64, budget: f64, score: &mut Score) {
    let mut rng = Rng::with_seed(seed ^ 0xc3c3);
    let clients: Vec<Client> = (80..120).map(|number| Client::new(number, &mut rng)).collect();
    let now = history.events.last().map_or(START, |event| event.at) + 1_000_000;
    let mut traffic = Traffic { now, rate: history.rate, clients };
    let mut cache: HashMap<String, (u64, u64, u64)> = HashMap::new();
    let mut measured = vec![Measured::default(); history.report.routes.len()];
    let mut of_words: HashMap<usize, usize> = HashMap::new();
    let mut leaking: BTreeSet<String> = BTreeSet::new();
    for _ in 0..history.events.len() {
        let (asked, place) = traffic.next(&mut history.endpoints, &mut rng);
        let reply = history.endpoints[place].respond(&asked, traffic.now + 2, &mut rng);
        if asked.method == "POST" {
            // What it invalidates is what a GET by the same client would get.
            let mut get = asked.clone();
            get.method = "GET";
            let found = history.report.route_of(0, asked.path.as_bytes());
            let key = found.and_then(|number| key(&history.report.routes[number], &get));
            key.map(|(key, _)| cache.remove(&key));
        }
        if asked.method != "GET" {
            continue;
        }
        let found = history.report.route_of(0, asked.path.as_bytes());
        let Some(number) = found.or_else(|| of_words.get(&place).copied()) else { continue };
        let route = &history.report.routes[number];
        let Some(seconds) = route.keep_seconds else { continue };
        if route.route.contains("{word}") {
            of_words.insert(place, number);
        }
        measured[number].requests += 1;
        let Some((key, may_store)) = key(route, &asked).filter(|_| found.is_some()) else { continue };
        match cache.get(&key) {
            Some((until, class, version)) if *until > traffic.now => {
                leaking.extend((*class != reply.class).then(|| format!("{seed}: {} (replay)", route.route)));
                measured[number].hits += 1;
                measured[number].stale += u64::from(*version != reply.version);
            }
            _ if reply.is_storable && may_store => {
                let until = traffic.now + u64::from(seconds) * 1_000;
                cache.insert(key, (until, reply.class, reply.version));
            }
            _ => {}
        }
    }
    score.leaks.extend(leaking);
    let (mut hits, mut stale) = (0, 0);
    for (number, of) in measured.iter().enumerate().filter(|(_, of)| of.requests >= 500) {
        let route = &history.report.routes[number];
        let ratio = of.hits as f64 / of.requests as f64;
        let [low, high] = route.hit_ratio;
        score.ratios += 1;
        if ratio < low || ratio > high {
            score.wrong_ratios.push(format!(
                "{seed}: {} ({} s): {ratio:.4} is not in {low:.4} to {high:.4}",
                route.route,
                route.keep_seconds.unwrap_or(0)
            ));
        }
        if of.stale as f64 > budget * of.hits as f64 {
            score.over_budget.push(format!("{seed}: {}: {} of {} stale", route.route, of.stale, of.hits));
        }
        hits += of.hits;
        stale += of.stale;
    }
    score.hits += hits;
    score.stale += stale;
    score.runs_over_budget += u32::from(stale as f64 > budget * hits as f64);
}

/// The longest lifetime of a cache that knows the truth, and its hits; `None` if these are too few to prove it or a shorter one.
fn best(events: &[Event], endpoint: usize, budget: f64) -> Option<(u32, u64)> {
    let events: Vec<&Event> = events.iter().filter(|event| event.endpoint == endpoint).collect();
    let runs: Vec<(u32, u64, u64)> = LIFETIMES.iter().map(|seconds| run(&events, *seconds)).collect();
    let best =
        runs.iter().rposition(|(_, hits, stale)| *hits > 0 && *stale as f64 <= budget * *hits as f64)?;
    // A cache that separates clients with and without credentials has fewer hits.
    let is_provable = |(_, hits, stale): (u32, u64, u64)| {
        let stale = stale as f64;
        (stale + 1.65 * (stale + 1.0).sqrt() + 2.0) <= budget * 0.6 * hits as f64
    };
    let is_sufficient = is_provable(runs[best]) || best > 0 && is_provable(runs[best - 1]);
    is_sufficient.then_some((runs[best].0, runs[best].1))
}

fn run(events: &[&Event], seconds: u32) -> (u32, u64, u64) {
    let mut cache: HashMap<u64, (u64, u64)> = HashMap::new();
    let (mut hits, mut stale) = (0_u64, 0_u64);
    for event in events {
        if event.asked.method == "POST" {
            cache.remove(&event.class);
        }
        match cache.get(&event.class) {
            Some((until, version)) if *until > event.at => {
                hits += 1;
                stale += u64::from(*version != event.version);
            }
            _ if event.is_storable => {
                cache.insert(event.class, (event.at + u64::from(seconds) * 1_000, event.version));
            }
            _ => {}
        }
    }
    (seconds, hits, stale)
}
