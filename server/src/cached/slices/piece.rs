//! One piece of a sliced answer: from the cache, or from a fetch that nobody but the cache waits for.
//!
//! A fetch is a task of its own, so it goes on while another piece is sent and, where the piece is stored, when the client leaves;
//! it is never longer than a piece. What reads it follows the fill. Next: `course`, which says how a piece is had, and
//! `exchange::open`.

use crate::cache_report::CacheReport;
use crate::cached::course::{self, Course, LOOKUPS, Right};
use crate::cached::stored::{self, Unsent};
use crate::caching::keyed;
use crate::client::{Client, ClientFailure};
use crate::counting;
use crate::exchange::{self, Filling, OpenedFill, Proxied};
use crate::request::Request;
use crate::tries::Tries;
use crate::worker::Worker;
use millstream_cache::{Entry, Follower, Head, Hit, Now, Sliced};
use millstream_conf::model::ProxyCache;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::FieldId;
use millstream_wire::range::ContentRange;
use std::future::{Future, poll_fn};
use std::ops::{ControlFlow, Range};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// nginx's `postpone_output`.
const HELD_BACK: usize = 1460;

pub(super) enum Source {
    Entry(Arc<Entry>),
    Stream(Follower),
}

pub(super) struct Piece {
    pub(super) source: Source,
    pub(super) cache_status: Option<CacheStatus>,
    pub(super) tries: Option<Tries>,
    pub(super) report: Option<Box<CacheReport>>,
}

impl Piece {
    fn stream(follower: Follower, cache_status: Option<CacheStatus>) -> Piece {
        Piece { source: Source::Stream(follower), cache_status, tries: None, report: None }
    }

    pub(super) fn head(&self) -> Head<'_> {
        match &self.source {
            Source::Entry(entry) => entry.head(),
            Source::Stream(follower) => follower.head().view(),
        }
    }

    pub(super) fn status(&self) -> u16 {
        self.head().status
    }

    fn place(&self) -> Option<ContentRange> {
        let head = self.head();
        if head.status != 206 {
            return None;
        }
        head.fields().get(FieldId::ContentRange).and_then(ContentRange::parse)
    }
}

/// Common to all pieces of a response.
pub(super) struct Whole {
    /// Start of the first piece.
    pub(super) first: u64,
    pub(super) complete: u64,
    pub(super) is_cached: bool,
    etag: Option<Vec<u8>>,
    last_modified: Option<i64>,
}

impl Whole {
    /// `None` if it is not the requested piece.
    pub(super) fn of(piece: &Piece, start: u64, size: u64, is_cached: bool) -> Option<Whole> {
        let complete = piece.place()?.complete?;
        let head = piece.head();
        let etag = head.etag().map(<[u8]>::to_vec);
        let whole = Whole { first: start, complete, is_cached, etag, last_modified: head.last_modified };
        whole.has(piece, start, size).then_some(whole)
    }

    /// Whether it is the piece of this response at `start`. Without an ETag, Last-Modified decides.
    pub(super) fn has(&self, piece: &Piece, start: u64, size: u64) -> bool {
        let head = piece.head();
        let end = start.saturating_add(size).min(self.complete);
        start < end
            && piece.place()
                == Some(ContentRange { first: start, last: end - 1, complete: Some(self.complete) })
            && head.etag() == self.etag.as_deref()
            && (self.etag.is_some() || head.last_modified == self.last_modified)
    }
}

/// The response by its key without slices, which ties its pieces together.
pub(super) fn whole(request: &Request) -> Option<Rc<Sliced>> {
    let cache = request.location().settings.cache()?;
    let whole = request.for_refresh();
    let store = &request.generation.shared.zones.stores[cache.zone.0 as usize];
    keyed::key(&whole, cache).map(|key| Rc::new(Sliced::of(store, key)))
}

pub(super) fn copy(request: &Request, start: u64) -> Request {
    request.has_asked.set(true);
    let mut copy = request.for_refresh();
    copy.cache.slice = Some(start);
    copy
}

pub(super) async fn first(request: &mut Request, client: &mut Client) -> Result<Piece, Proxied> {
    let (tap, mut opened) = oneshot::channel();
    let ending = exchange::open_piece(request, client, tap).await;
    match opened.try_recv() {
        Ok(OpenedFill::Stream(follower, ..)) => Ok(Piece::stream(follower, request.cache.status)),
        _ => Err(ending),
    }
}

pub(super) async fn fetch(request: Request) -> Result<Piece, Proxied> {
    ask(request, Filling::No, None).await
}

/// From the cache or the upstream. `None` if the cache is not involved.
pub(super) async fn open(mut request: Request) -> Result<Option<Piece>, Proxied> {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings;
    let Some(cache) = settings.cache() else { return Ok(None) };
    let Some((key, mut lookup)) = course::find(&mut request, cache, Now::read()) else { return Ok(None) };
    for _ in 0..LOOKUPS {
        if course::is_refused(&request, &lookup) {
            return Err(Proxied::Failed(504));
        }
        lookup = match course::step(&mut request, cache, &key, lookup).await {
            ControlFlow::Continue(lookup) => lookup,
            ControlFlow::Break(course) => return take(request, cache, &key, course).await.map(Some),
        };
    }
    let course = course::given_up(&mut request);
    take(request, cache, &key, course).await.map(Some)
}

async fn take(
    mut request: Request,
    cache: &ProxyCache,
    key: &[u8],
    course: Course,
) -> Result<Piece, Proxied> {
    let (cache_status, report) = (request.cache.status, request.cache.report.take());
    match course {
        Course::Entry(found) => Ok(of_entry(report, found.entry.clone(), cache_status)),
        Course::Follow(follower) => Ok(Piece { report, ..Piece::stream(follower, cache_status) }),
        Course::Ask(right, fallback) => {
            request.cache.report = report;
            let filling = match right {
                Right::Fill(permit) | Right::Apart(permit) if request.cache.wish.no_store => {
                    Filling::Along(permit)
                }
                Right::Fill(permit) | Right::Apart(permit) => Filling::Permit(permit),
                Right::None => Filling::Along(course::beside(&request, cache, key)),
            };
            ask(request, filling, fallback).await
        }
        Course::Failed(ending, fallback) => {
            let counted = (request.worker.clone(), counting::cache_zone(&request));
            instead(ending, report, fallback, &counted)
        }
    }
}

fn of_entry(mut report: Option<Box<CacheReport>>, entry: Arc<Entry>, status: Option<CacheStatus>) -> Piece {
    if let Some(report) = &mut report {
        report.note_lifetime(&entry.head().lifetime, Now::read());
    }
    Piece { source: Source::Entry(entry), cache_status: status, tries: None, report }
}

/// Fetches a piece in its own task and reads along.
async fn ask(request: Request, filling: Filling, fallback: Option<Rc<Hit>>) -> Result<Piece, Proxied> {
    let cache_status = request.cache.status;
    let (tap, opened) = oneshot::channel();
    let stale = fallback.clone();
    let counted = (request.worker.clone(), counting::cache_zone(&request));
    let is_for_others = !matches!(filling, Filling::No)
        || request.location().settings.pass().is_some_and(|proxy| proxy.exchange.ignore_client_abort);
    let mut asking = JoinSet::new();
    asking.spawn_local(exchange::open(request, filling, stale, tap));
    if is_for_others {
        asking.detach_all();
    }
    let opened = opened.await;
    // From here on it goes on for as long as it is read.
    asking.detach_all();
    match opened {
        Ok(OpenedFill::Stream(follower, tries, report)) => {
            Ok(Piece { tries: Some(*tries), report, ..Piece::stream(follower, cache_status) })
        }
        Ok(OpenedFill::Ended(ending, report)) => instead(ending, report, fallback, &counted),
        Err(_) => Err(Proxied::Failed(502)),
    }
}

fn instead(
    ending: Proxied,
    mut report: Option<Box<CacheReport>>,
    fallback: Option<Rc<Hit>>,
    (worker, zone): &(Rc<Worker>, Option<u32>),
) -> Result<Piece, Proxied> {
    match (ending, fallback) {
        (Proxied::Revalidated(entry), _) => Ok(of_entry(report, entry, Some(CacheStatus::Revalidated))),
        (Proxied::Stale(_), Some(hit)) => {
            zone.iter().for_each(|zone| worker.metrics.stale_on_error(*zone));
            if let Some(report) = &mut report {
                report.detail = Some("stale_on_error");
            }
            Ok(of_entry(report, hit.entry.clone(), Some(CacheStatus::Stale)))
        }
        (Proxied::Stale(status), None) => Err(Proxied::Failed(status)),
        (ending, _) => Err(ending),
    }
}

/// `range` counts within the piece.
pub(super) async fn send(
    request: &mut Request,
    client: &mut Client,
    source: Source,
    range: Range<u64>,
) -> Result<(), Unsent> {
    let mut follower = match source {
        Source::Entry(entry) => {
            let mut reader = entry.body().open(range).await.map_err(|_| Unsent::Body)?;
            let file = stored::in_file(&entry);
            drop(entry);
            let sent = stored::send(request, client, &mut reader).await;
            if let Err(Unsent::Body) = sent {
                stored::damaged(request, file.as_ref());
            }
            return sent;
        }
        Source::Stream(follower) => follower,
    };
    let mut position = 0;
    while position < range.end {
        let bytes = {
            let mut next = pin!(follower.next());
            poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(bytes) => Poll::Ready(Ok(bytes)),
                Poll::Pending => {
                    if !is_held_back(request, client) {
                        client.pause();
                        ready!(client.poll_flush(context, request)).map_err(Unsent::Client)?;
                    }
                    client.poll_gone(context).map(|()| Err(Unsent::Client(ClientFailure::Gone)))
                }
            })
            .await?
        };
        let Some(Ok(bytes)) = bytes else {
            super::log(request, "slice response ended prematurely");
            return Err(Unsent::Body);
        };
        let end = position + bytes.len() as u64;
        let (from, to) = (range.start.max(position), range.end.min(end));
        if from < to {
            let wanted = bytes.slice((from - position) as usize..(to - position) as usize);
            drop(bytes);
            if request.sent.bytes > 0 || client.queued() + wanted.len() > HELD_BACK {
                client.send(request, wanted).await.map_err(Unsent::Client)?;
            } else {
                client.push(request, &wanted);
            }
        }
        position = end;
    }
    Ok(())
}

/// Whether the start of a response is buffered: until something is sent, a wrong piece can be replaced by an
/// error.
pub(super) fn is_held_back(request: &Request, client: &Client) -> bool {
    request.sent.bytes == 0 && client.queued() <= HELD_BACK
}
