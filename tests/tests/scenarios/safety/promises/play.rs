//! Playing a history: each request on a connection of its own, those of one moment at once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::rc::Rc;
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use millstream_tests::client::Answer;
use millstream_tests::visitor::{Framing, Visitor};
use tokio::task::JoinSet;

use super::api::Api;
use super::history::{Act, History, Moment, What};
use super::judge::{Against, End, Given, Promise, SLACK, judge};
use super::resource::{By, Delivery, Resource};

/// How long a client waits for an answer that has an end.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long it stays with one that has none and says nothing.
const VISIT: Duration = Duration::from_millis(400);
/// How long the API may go on answering when nobody reads.
const BOUND: Duration = Duration::from_secs(5);

/// What came of a history.
#[derive(Debug, Default)]
pub struct Played {
    pub found: Vec<(Against, String)>,
    pub given: usize,
    /// Answers that had been made before they were asked for.
    pub shared: usize,
}

/// The ETags that clients were given, by client and resource.
type Tags = Rc<RefCell<HashMap<(usize, usize), String>>>;

pub async fn play(port: u16, api: &Api, promise: &Promise, number: usize, history: &History) -> Played {
    api.put(number, &history.resources);
    let (mut broken, tags) = (vec![false; history.resources.len()], Tags::default());
    let mut all = Vec::new();
    for moment in &history.moments {
        match moment {
            Moment::Quiet => {
                if let Some(longest) = promise.longest() {
                    tokio::time::sleep(longest + Duration::from_millis(500)).await;
                }
            }
            Moment::Breaks(resource) => {
                broken[*resource] = true;
                api.set_broken(number, *resource, true);
            }
            Moment::Mends(resource) => api.set_broken(number, *resource, false),
            Moment::Together(acts) => {
                let mut clients = JoinSet::new();
                for act in acts {
                    let act = *act;
                    let resource = history.resources[act.resource];
                    let person = history.people[act.person].clone();
                    let was_broken = broken[act.resource];
                    let tags = tags.clone();
                    clients.spawn_local(async move {
                        ask(port, number, act, &person, &resource, was_broken, &tags).await
                    });
                }
                while let Some(given) = clients.join_next().await {
                    all.push(given.expect("no client panics"));
                }
            }
        }
    }
    let mut played = judged(api, promise, number, history, &all);
    let end = Instant::now() + BOUND + SLACK;
    while !api.open(number).is_empty() && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for id in api.open(number) {
        played.found.push((Against::Outlived, format!("{:?}", api.made(id))));
    }
    played
}

fn judged(api: &Api, promise: &Promise, number: usize, history: &History, all: &[Given]) -> Played {
    let mut takers: HashMap<usize, usize> = HashMap::new();
    // A 304 is of what a client has had before.
    for id in all.iter().filter(|given| given.status != 304).filter_map(|given| given.id) {
        *takers.entry(id).or_default() += 1;
    }
    let mut played = Played { given: all.len(), ..Played::default() };
    for given in all {
        let made = given.id.and_then(|id| api.made(id));
        let takers = given.id.and_then(|id| takers.get(&id).copied()).unwrap_or(0);
        let place = (number, given.act.resource);
        let resource = &history.resources[given.act.resource];
        played.shared += usize::from(made.as_ref().is_some_and(|made| made.began < given.asked));
        if let Err(against) = judge(promise, place, resource, given, made.as_ref(), takers) {
            let age = made.as_ref().and_then(|made| {
                Some(given.asked.saturating_duration_since(made.ended.max(made.confirmed)?))
            });
            let text = String::from_utf8_lossy(&given.body[..given.body.len().min(60)]).into_owned();
            played.found.push((
                against,
                format!(
                    "{:?} by {:?} was given {} ({:?}, {} bytes: {text:?}), {age:?} after it was made: {made:?}; {resource:?}",
                    given.act,
                    given.taker,
                    given.status,
                    given.end,
                    given.body.len(),
                ),
            ));
        }
    }
    played
}

async fn ask(
    port: u16,
    number: usize,
    act: Act,
    person: &[(By, usize)],
    resource: &Resource,
    was_broken: bool,
    tags: &Tags,
) -> Given {
    let side = |by: By| person.iter().find(|(field, _)| *field == by).map(|(_, side)| by.value(*side));
    let host = side(By::Host).unwrap_or("api.example");
    let address = side(By::Address).unwrap_or("127.0.0.1");
    let taker = match resource.by {
        Some(By::Host) => Some(host.to_owned()),
        Some(By::Address) => Some(address.to_owned()),
        Some(by) => side(by).map(str::to_owned),
        None => None,
    };
    let method = match act.what {
        What::Head => "HEAD",
        What::Post => "POST",
        _ => "GET",
    };
    let mut request = format!("{method} /{number}/{} HTTP/1.1\r\nHost: {host}\r\n", act.resource);
    for by in By::ALL.into_iter().filter(|by| !matches!(by, By::Host | By::Address)) {
        if let Some(value) = side(by) {
            request.push_str(&format!("{}: {value}\r\n", by.field()));
        }
    }
    if act.zipped {
        request.push_str("Accept-Encoding: gzip\r\n");
    }
    match act.what {
        What::Range(first, last) => request.push_str(&format!("Range: bytes={first}-{last}\r\n")),
        What::Again => {
            if let Some(tag) = tags.borrow().get(&(act.person, act.resource)) {
                request.push_str(&format!("If-None-Match: {tag}\r\n"));
            }
        }
        What::Post => request.push_str("Content-Length: 4\r\n"),
        _ => {}
    }
    request.push_str(if act.what == What::Post { "\r\npost" } else { "\r\n" });
    let mut given = Given {
        act,
        taker,
        asked: Instant::now(),
        status: 0,
        id: None,
        cookie: None,
        first: None,
        body: Vec::new(),
        end: End::Broken,
        was_broken,
    };
    let enough = match (act.what, resource.delivery) {
        (What::Leave(enough), _) => Some(enough),
        (_, Delivery::Events) => Some(80),
        (_, Delivery::Stalls(_)) => Some(1_000),
        _ => None,
    };
    let patience = if resource.delivery.is_endless() { VISIT } else { PATIENCE };
    let mut zipped = false;
    let visit = visit((address, port), method, &request, enough, &mut given, &mut zipped, (act, tags));
    if tokio::time::timeout(patience, visit).await.is_err() {
        given.end = if resource.delivery.is_endless() { End::Left } else { End::Hung };
    }
    if zipped {
        let mut plain = Vec::new();
        // What was cut is decoded as far as it goes.
        let whole = MultiGzDecoder::new(given.body.as_slice()).read_to_end(&mut plain).is_ok();
        given.body = plain;
        if !whole && given.end == End::Whole {
            given.end = End::Broken;
        }
    }
    given
}

async fn visit(
    (address, port): (&str, u16),
    method: &str,
    request: &str,
    enough: Option<usize>,
    given: &mut Given,
    zipped: &mut bool,
    (act, tags): (Act, &Tags),
) {
    let address = address.parse().expect("an address");
    let Ok(mut visitor) = Visitor::connect_from(address, port).await else { return };
    if visitor.send(request).await.is_err() {
        return;
    }
    let Ok(answer) = visitor.head().await else { return };
    note(&answer, given);
    *zipped = answer.field("content-encoding") == Some("gzip");
    if let Some(tag) = answer.field("etag") {
        tags.borrow_mut().insert((act.person, act.resource), tag.to_owned());
    }
    let Ok(mut framing) = Framing::of(method, &answer) else { return };
    loop {
        if enough.is_some_and(|enough| given.body.len() >= enough) {
            given.end = End::Left;
            return;
        }
        match visitor.piece(&mut framing).await {
            Ok(Some(piece)) => given.body.extend_from_slice(&piece),
            Ok(None) => {
                given.end = End::Whole;
                return;
            }
            Err(_) => return,
        }
    }
}

fn note(answer: &Answer, given: &mut Given) {
    given.status = answer.status;
    // A 304 names the answer by its ETag alone.
    let tag = answer.field("etag").filter(|_| answer.status == 304);
    let tag = tag.map(|tag| tag.trim_start_matches("W/").trim_matches('"'));
    given.id = answer.field("x-made").or(tag).and_then(|text| text.parse().ok());
    given.cookie = answer.field("set-cookie").map(str::to_owned);
    let range = answer.field("content-range").and_then(|range| range.strip_prefix("bytes "));
    given.first = range.and_then(|range| range.split('-').next()?.parse().ok());
}
