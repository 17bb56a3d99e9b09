//! One piece of a sliced answer: from the cache, or from a fetch that nobody but the cache waits for.
//!
//! A fetch is a task of its own, so it goes on while another piece is sent and when the client leaves; it is never longer
//! than a piece. What reads it follows the fill. Next: `gateway::open`.

use super::Broken;
use crate::answer::{cached, stored};
use crate::cache_report::{CacheReport, Forward};
use crate::client::{Client, Unsent};
use crate::gateway::{self, Filling, Opened, Proxied};
use crate::request::Request;
use crate::tries::Tries;
use millstream_cache::{Entry, Follower, Head, Hit, Lookup, Now, StaleCause, Woken};
use millstream_conf::model::ProxyCache;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::FieldId;
use millstream_wire::range::ContentRange;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::sync::oneshot;

/// Look-ups for one piece at the most.
const LOOKUPS: usize = 8;

/// Where a piece's bytes come from.
pub(super) enum Source {
    Entry(Arc<Entry>),
    Stream(Follower),
}

/// A piece.
pub(super) struct Piece {
    pub(super) source: Source,
    pub(super) cache_status: Option<CacheStatus>,
    /// The upstream servers that were asked for it.
    pub(super) tries: Option<Tries>,
    /// What is to be said of the cache.
    pub(super) report: Option<Box<CacheReport>>,
}

impl Piece {
    pub(super) fn head(&self) -> Head<'_> {
        match &self.source {
            Source::Entry(entry) => entry.head(),
            Source::Stream(follower) => follower.head().view(),
        }
    }

    pub(super) fn status(&self) -> u16 {
        self.head().status
    }

    /// Its place in the whole.
    fn place(&self) -> Option<ContentRange> {
        let head = self.head();
        if head.status != 206 {
            return None;
        }
        head.fields().get(FieldId::ContentRange).and_then(ContentRange::parse)
    }
}

/// What all pieces of an answer have in common.
pub(super) struct Whole {
    /// Where the piece begins that it was learnt from.
    pub(super) first: u64,
    /// Length of the whole.
    pub(super) complete: u64,
    etag: Option<Vec<u8>>,
    last_modified: Option<i64>,
}

impl Whole {
    /// What a first piece says; `None` where it is not the piece that was asked for.
    pub(super) fn of(piece: &Piece, start: u64, size: u64) -> Option<Whole> {
        let complete = piece.place()?.complete?;
        let head = piece.head();
        let etag = head.etag().map(<[u8]>::to_vec);
        let whole = Whole { first: start, complete, etag, last_modified: head.last_modified };
        whole.has(piece, start, size).then_some(whole)
    }

    /// Whether a piece is that of this answer which begins there. Without a tag the date of the last change tells.
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

/// A copy of a request that asks for one piece.
pub(super) fn copy(request: &Request, start: u64) -> Request {
    let mut copy = request.for_refresh();
    copy.slice = Some(start);
    copy.in_error_page = request.in_error_page;
    copy
}

/// Looks for a piece, or fetches it. `None` where the cache has no part in the request.
pub(super) async fn open(mut request: Request) -> Result<Option<Piece>, Proxied> {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
    let Some(cache) = settings.cache() else { return Ok(None) };
    let Some((key, mut lookup)) = cached::find(&mut request, cache, Now::read()) else { return Ok(None) };
    for _ in 0..LOOKUPS {
        if request.wish.only_if_cached
            && !matches!(lookup, Lookup::Fresh(_) | Lookup::Ahead(..) | Lookup::Disk(_))
        {
            return Err(Proxied::Failed(504));
        }
        lookup = match lookup {
            Lookup::Fresh(found) => {
                return Ok(Some(of_entry(request.report.take(), found.entry.clone(), CacheStatus::Hit)));
            }
            Lookup::Ahead(found, permit) => {
                cached::refresh_detached(&request, permit, &found);
                return Ok(Some(of_entry(request.report.take(), found.entry.clone(), CacheStatus::Hit)));
            }
            Lookup::Stale(found, permit) => {
                return stale(request, cache, &key, found, permit).await.map(Some);
            }
            Lookup::Miss(permit) => {
                let status = request.cache_status.unwrap_or(CacheStatus::Miss);
                return ask(request, Filling::Permit(permit), None, status).await.map(Some);
            }
            Lookup::Apart(permit) => {
                return ask(request, Filling::Permit(permit), None, CacheStatus::Bypass).await.map(Some);
            }
            Lookup::Busy(waiter, fallback) => match waiter.wait(request.fields(), cache, Now::read()).await {
                Woken::Retry => match cached::find(&mut request, cache, Now::read()) {
                    Some((_, lookup)) => lookup,
                    None => return Ok(None),
                },
                Woken::Streaming(follower) => return Ok(Some(of_other(request, follower))),
                Woken::Fill(permit) => {
                    let status = if fallback.is_some() { CacheStatus::Expired } else { CacheStatus::Miss };
                    return ask(request, Filling::Permit(permit), fallback, status).await.map(Some);
                }
                Woken::Failed(failure) => {
                    let now = Now::read();
                    let may = |found: &Rc<Hit>| found.entry.may_serve_stale(failure.cause, cache, now);
                    let found = fallback.filter(may).ok_or(Proxied::Failed(failure.status))?;
                    return Ok(Some(of_entry(
                        request.report.take(),
                        found.entry.clone(),
                        CacheStatus::Stale,
                    )));
                }
                Woken::Timeout => break,
            },
            Lookup::Scarce => break,
            Lookup::Disk(probe) => {
                let found = probe.load(request.fields(), cache, Now::read()).await;
                let front = generation.fronts[cache.zone.0 as usize].borrow();
                cached::wished(&front, &request, &key, found, Now::read())
            }
        };
    }
    let permit = generation.fronts[cache.zone.0 as usize].borrow().beside(&key, request.asker);
    ask(request, Filling::Along(permit), None, CacheStatus::Miss).await.map(Some)
}

fn of_entry(mut report: Option<Box<CacheReport>>, entry: Arc<Entry>, status: CacheStatus) -> Piece {
    if let Some(report) = &mut report {
        report.note_lifetime(&entry.head().lifetime, Now::read());
    }
    Piece { source: Source::Entry(entry), cache_status: Some(status), tries: None, report }
}

/// A piece that somebody else's request brings.
fn of_other(mut request: Request, follower: Follower) -> Piece {
    request.report_forward(Forward::Miss, None);
    if let Some(report) = &mut request.report {
        report.collapsed = true;
        report.note_lifetime(&follower.head().lifetime, Now::read());
    }
    let (cache_status, report) = (Some(CacheStatus::Hit), request.report);
    Piece { source: Source::Stream(follower), cache_status, tries: None, report }
}

/// As for any answer: a stale piece is used where that is allowed, else confirmed or fetched anew.
async fn stale(
    mut request: Request,
    cache: &ProxyCache,
    key: &[u8],
    found: Rc<Hit>,
    permit: Option<millstream_cache::FillPermit>,
) -> Result<Piece, Proxied> {
    let now = Now::read();
    let insists = cached::insists(&request, &found, now);
    let permit = permit.or_else(|| insists.then(|| cached::beside(&request, cache, key)));
    let Some(permit) = permit else {
        return Ok(of_entry(request.report.take(), found.entry.clone(), CacheStatus::Updating));
    };
    let may = found.entry.may_serve_stale(StaleCause::Updating, cache, now);
    let detached = found.entry.is_updated_behind(cache, now);
    if may && detached && !insists {
        cached::refresh_detached(&request, permit, &found);
        return Ok(of_entry(request.report.take(), found.entry.clone(), CacheStatus::Stale));
    }
    ask(request, Filling::Permit(permit), Some(found), CacheStatus::Expired).await
}

/// Fetches a piece in a task of its own and reads along.
async fn ask(
    mut request: Request,
    filling: Filling,
    fallback: Option<Rc<Hit>>,
    status: CacheStatus,
) -> Result<Piece, Proxied> {
    request.cache_status = Some(status);
    let forward = match status {
        CacheStatus::Bypass => Forward::Bypass,
        CacheStatus::Expired => Forward::Stale,
        _ => Forward::Miss,
    };
    request.report_forward(forward, None);
    let filling = match filling {
        Filling::Permit(permit) if request.wish.no_store => Filling::Along(permit),
        filling => filling,
    };
    let (tap, opened) = oneshot::channel();
    let stale = fallback.clone();
    tokio::task::spawn_local(gateway::open(request, filling, stale, tap));
    match opened.await {
        Ok(Opened::Stream(follower, tries, report)) => {
            let source = Source::Stream(follower);
            Ok(Piece { source, cache_status: Some(status), tries: Some(*tries), report })
        }
        Ok(Opened::Ended(Proxied::Revalidated(entry), report)) => {
            Ok(of_entry(report, entry, CacheStatus::Revalidated))
        }
        Ok(Opened::Ended(Proxied::Stale(status), mut report)) => match fallback {
            Some(hit) => {
                if let Some(report) = &mut report {
                    report.detail = Some("stale_on_error");
                }
                Ok(of_entry(report, hit.entry.clone(), CacheStatus::Stale))
            }
            None => Err(Proxied::Failed(status)),
        },
        Ok(Opened::Ended(ending, _)) => Err(ending),
        Err(_) => Err(Proxied::Failed(502)),
    }
}

/// Sends bytes of a piece; positions within it.
pub(super) async fn send(
    request: &mut Request,
    client: &mut Client,
    source: Source,
    range: Range<u64>,
) -> Result<(), Broken> {
    let mut follower = match source {
        Source::Entry(entry) => {
            let mut reader = entry.body().open(range).await.map_err(|_| Broken::Piece)?;
            let file = stored::in_file(&entry);
            drop(entry);
            return client.send_stored(request, &mut reader).await.map_err(|unsent| match unsent {
                Unsent::Client(failure) => Broken::Client(failure),
                Unsent::Body => {
                    if let Some(entry) = &file {
                        stored::damaged(request, entry);
                    }
                    Broken::Piece
                }
            });
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
                    client.pause(request);
                    ready!(client.poll_flush(context, request)).map_err(Broken::Client)?;
                    Poll::Pending
                }
            })
            .await?
        };
        let Some(Ok(bytes)) = bytes else { return Err(Broken::Piece) };
        let end = position + bytes.len() as u64;
        let (from, to) = (range.start.max(position), range.end.min(end));
        if from < to {
            let wanted = bytes.slice((from - position) as usize..(to - position) as usize);
            drop(bytes);
            client.send(request, wanted).await.map_err(Broken::Client)?;
        }
        position = end;
    }
    Ok(())
}
