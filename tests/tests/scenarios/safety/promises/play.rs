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
use super::front::{PAST_PROXY, PROXY, Way};
use super::history::{Act, History, Moment, What};
use super::judge::{Against, Change, End, Given, Promise, SLACK, judge, judge_changes};
use super::resource::{By, Delivery, Resource};

const PATIENCE: Duration = Duration::from_secs(25);
/// How long it stays with an endless, silent one.
const VISIT: Duration = Duration::from_millis(400);
/// How long the API may continue to respond without readers.
const BOUND: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub struct Played {
    pub found: Vec<(Against, String)>,
    pub given: usize,
    /// Responses made before they were requested.
    pub shared: usize,
}

type Tags = Rc<RefCell<HashMap<(usize, usize), String>>>;

pub async fn play(way: Way, api: &Api, promise: &Promise, number: usize, history: &History) -> Played {
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
                    let (tags, keeps) = (tags.clone(), promise.addresses);
                    clients.spawn_local(async move {
                        let client = Client::of(way, &person, keeps);
                        ask(client, number, act, &resource, was_broken, &tags).await
                    });
                }
                while let Some(given) = clients.join_next().await {
                    all.push(given.expect("no client panics"));
                }
            }
        }
    }
    let mut played = judged(api, promise, number, history, &all);
    // Counted in looks: the clock goes on while a machine stands still.
    let looks = (BOUND + SLACK).as_millis() / LOOK.as_millis();
    for _ in 0..looks {
        if api.open(number).is_empty() {
            break;
        }
        tokio::time::sleep(LOOK).await;
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
    let changes = |resource: usize| {
        let posts = all.iter().filter(move |given| given.act.resource == resource);
        posts.filter_map(|given| Change::of(given, given.id.and_then(|id| api.made(id)).as_ref()))
    };
    let changes: Vec<Vec<Change>> = (0..history.resources.len()).map(|at| changes(at).collect()).collect();
    for given in all {
        let made = given.id.and_then(|id| api.made(id));
        let takers = given.id.and_then(|id| takers.get(&id).copied()).unwrap_or(0);
        let place = (number, given.act.resource);
        let resource = &history.resources[given.act.resource];
        played.shared += usize::from(made.as_ref().is_some_and(|made| made.began < given.asked));
        let judged = judge(promise, place, resource, given, made.as_ref(), takers);
        let changes = &changes[given.act.resource];
        let judged = judged.and_then(|()| judge_changes(promise, given, made.as_ref(), changes));
        if let Err(against) = judged {
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

struct Client<'a> {
    person: &'a [(By, usize)],
    port: u16,
    from: &'static str,
    address: &'static str,
    forwarded: Option<&'static str>,
    tells: bool,
}

impl Client<'_> {
    /// `keeps`: what a client says of its own address does not reach the API.
    fn of(way: Way, person: &[(By, usize)], keeps: bool) -> Client<'_> {
        let side = |by: By| person.iter().find(|(field, _)| *field == by).map(|(_, side)| *side);
        let address = side(By::Address).map(|side| By::Address.value(side));
        let plain = |port| {
            let address = address.unwrap_or("127.0.0.1");
            Client { person, port, from: address, address, forwarded: None, tells: !keeps }
        };
        match way {
            Way::Direct(port) => plain(port),
            Way::Certified(ports) => plain(ports[side(By::Certificate).map_or(0, |side| 1 + side % 2)]),
            Way::Proxied(port) => match address {
                Some(address) => {
                    Client { person, port, from: PROXY, address, forwarded: Some(address), tells: true }
                }
                None => {
                    let forged = Some(By::Address.value(0));
                    Client {
                        person,
                        port,
                        from: PAST_PROXY,
                        address: PAST_PROXY,
                        forwarded: forged,
                        tells: false,
                    }
                }
            },
        }
    }

    fn side(&self, by: By) -> Option<&'static str> {
        self.person.iter().find(|(field, _)| *field == by).map(|(_, side)| by.value(*side))
    }

    fn host(&self) -> &'static str {
        self.side(By::Host).unwrap_or("api.example")
    }

    fn taker(&self, by: By) -> Option<&'static str> {
        match by {
            By::Host => Some(self.host()),
            By::Address => Some(self.address),
            By::Behind => self.side(by).filter(|_| self.tells),
            by => self.side(by),
        }
    }
}

async fn ask(
    client: Client<'_>,
    number: usize,
    act: Act,
    resource: &Resource,
    was_broken: bool,
    tags: &Tags,
) -> Given {
    let host = client.host();
    let method = match act.what {
        What::Head => "HEAD",
        What::Post => "POST",
        _ => "GET",
    };
    let mut request = format!("{method} /{number}/{} HTTP/1.1\r\nHost: {host}\r\n", act.resource);
    for (by, side) in client.person.iter().filter(|(by, _)| by.is_sent()) {
        request.push_str(&format!("{}: {}\r\n", by.field(), by.value(*side)));
    }
    if let Some(address) = client.forwarded {
        request.push_str(&format!("X-Forwarded-For: {address}\r\n"));
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
        taker: resource.by.and_then(|by| client.taker(by)).map(str::to_owned),
        client: (client.address.to_owned(), host.to_owned()),
        asked: Instant::now(),
        read: Instant::now(),
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
    let visit =
        visit((client.from, client.port), method, &request, enough, &mut given, &mut zipped, (act, tags));
    if tokio::time::timeout(patience, visit).await.is_err() {
        given.end = if resource.delivery.is_endless() { End::Left } else { End::Hung };
    }
    given.read = Instant::now();
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
