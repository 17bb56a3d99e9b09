//! A stored answer in memory, made ready: head and body as they go on the wire, kept per thread and location.
//!
//! A hit copies a prepared head, puts the date in and points at the body; nothing is allocated, nothing shared is written.
//! A coded body is made once for all and kept with the entry; no hit compresses.
//! Next: `stored`, for what takes more than one write; `cached`, which decides what is answered from an entry.

use super::chosen::{self, Chosen, Offer};
use crate::client::WholeBody;
use crate::filter::chain;
use crate::filter::{charset, expires, head};
use crate::intercepted;
use crate::request::Request;
use crate::tries::CachedFacts;
use bytes::Bytes;
use millstream_cache::{Entry, Head, Held, Hit, Now};
use millstream_net::buffers::Pooled;
use millstream_net::memory_file::MemoryFile;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::{Coding, FieldId, Headers, date};
use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

/// A prepared response: one representation in one location.
pub struct Prepared {
    head: head::Fixed,
    status: u16,
    body: Held,
    uses: Cell<u32>,
    file: OnceCell<Option<Rc<dyn AsFd>>>,
}

/// Popular bodies from this size on are sent from a memory file, whose pages the kernel takes without
/// copying. Each worker has its own: the kernel counts the uses of a page, and a count that two workers
/// change costs as much as the sending. Below it a second system call costs more.
const FILE_FROM: usize = 24 * 1024;
/// Larger bodies are not held twice.
const FILE_UP_TO: usize = 1024 * 1024;
/// Uses of a prepared form before it gets a file.
const FILE_AFTER: u32 = 8;
/// Per thread: at most 64 MiB besides the cache's memory.
const FILES: usize = 64;

thread_local! {
    static OPEN_FILES: Cell<usize> = const { Cell::new(0) };
}

/// Counted while it exists, for a slow client too.
struct SentFile(MemoryFile);

impl SentFile {
    fn of(body: &Bytes) -> Option<Rc<dyn AsFd>> {
        let open = OPEN_FILES.get();
        if open >= FILES {
            return None;
        }
        let file = MemoryFile::holding(body).ok()?;
        OPEN_FILES.set(open + 1);
        Some(Rc::new(SentFile(file)))
    }
}

impl AsFd for SentFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for SentFile {
    fn drop(&mut self) {
        OPEN_FILES.set(OPEN_FILES.get() - 1);
    }
}

pub enum Ready {
    /// HEAD, 204, 304.
    HeadOnly,
    Body(Rc<Prepared>),
    /// A range of the body without a copy: its bytes, their holder, and the offset in it.
    Part(Bytes, Held, u64),
    Text(Pooled),
}

impl Ready {
    pub fn whole(&self) -> WholeBody<'_> {
        match self {
            Ready::HeadOnly => WholeBody { bytes: b"", shared: None, held: None, file: None },
            Ready::Body(prepared) => {
                let held = &prepared.body;
                WholeBody { bytes: held, shared: Some(&**held), held: Some((held, 0)), file: self.file() }
            }
            Ready::Text(text) => WholeBody { bytes: text, shared: None, held: None, file: None },
            Ready::Part(part, held, at) => {
                WholeBody { bytes: part, shared: Some(part), held: Some((held, *at)), file: None }
            }
        }
    }

    fn file(&self) -> Option<&Rc<dyn AsFd>> {
        let Ready::Body(prepared) = self else { return None };
        if !(FILE_FROM..=FILE_UP_TO).contains(&prepared.body.len()) {
            return None;
        }
        let uses = prepared.uses.get().saturating_add(1);
        prepared.uses.set(uses);
        if uses <= FILE_AFTER {
            return None;
        }
        prepared.file.get_or_init(|| SentFile::of(&prepared.body)).as_ref()
    }
}

pub fn choose(request: &Request, entry: &Arc<Entry>) -> Chosen {
    chosen::choose(request, &Offer::stored(entry.head(), Some(entry.length()), false))
}

/// Writes the head of a hit and returns what follows. `None` if it needs more than one write: the body is not
/// in memory, several ranges are requested, it is an error, its coding is missing, or the entry is only a
/// part.
pub fn ready(
    request: &mut Request,
    hit: &Hit,
    chosen: &Chosen,
    now: Now,
    out: &mut Vec<u8>,
) -> Option<Ready> {
    let entry = &hit.entry;
    let stored = entry.head();
    if stored.part.is_some() || intercepted::gets_page(request, stored.status) {
        return None;
    }
    remember(request, stored, now);
    let coding = match chosen {
        Chosen::NotModified => {
            shaped(request, entry, chosen.clone(), now, out)?;
            return Some(Ready::HeadOnly);
        }
        _ if chain::is_there(request) => return None,
        Chosen::Part(part) => return part_of(request, entry, part, now, out),
        Chosen::Parts(_) | Chosen::Unsatisfiable(_) | Chosen::PreconditionFailed => return None,
        Chosen::Whole(coding) => *coding,
    };
    let tag = tag(request, coding);
    if request.descent.error_status.is_some()
        || request.descent.accel_fields.is_some()
        || !head::can_be_fixed(request)
    {
        return unprepared(request, entry, coding, now, out);
    }
    let prepared = match hit.prepared.find::<Prepared>(tag) {
        Some(prepared) => prepared,
        None => {
            let made = Rc::new(prepare(request, entry, coding)?);
            hit.prepared.keep(tag, made.clone());
            made
        }
    };
    let has_body = head::from_fixed(out, request, &prepared.head, Some(entry.age(now)), prepared.status);
    Some(if has_body { Ready::Body(prepared) } else { Ready::HeadOnly })
}

fn shaped(
    request: &mut Request,
    entry: &Arc<Entry>,
    chosen: Chosen,
    now: Now,
    out: &mut Vec<u8>,
) -> Option<bool> {
    let headers = passed_on(request, entry.head());
    let coding = if let Chosen::Whole(coding) = chosen { coding } else { None };
    // A body that is coded is there whole by now.
    let coded = coding.and_then(|coding| entry.coded_body(coding)).map(|body| body.len() as u64);
    let shape = chosen.shape(request, headers, entry.head().status, Some(entry.length())).ok()?;
    let plan = head::HeadPlan {
        status: shape.status,
        fields: shape.headers.view(),
        length: coded.or(shape.length),
        chunked: false,
        coding,
        age: Some(entry.age(now)),
    };
    Some(head::encode(out, request, &plan))
}

fn part_of(
    request: &mut Request,
    entry: &Arc<Entry>,
    part: &Range<u64>,
    now: Now,
    out: &mut Vec<u8>,
) -> Option<Ready> {
    let held = entry.body().memory()?.clone();
    let body = held.slice(part.start as usize..part.end as usize);
    let has_body = shaped(request, entry, Chosen::Part(part.clone()), now, out)?;
    Some(if has_body { Ready::Part(body, held, part.start) } else { Ready::HeadOnly })
}

/// Sets `$upstream_http_…` and `$upstream_cache_…` from the entry.
pub fn remember(request: &mut Request, head: Head<'_>, now: Now) {
    if request.generation.shared.reads.upstream_heads {
        request.tries.headers = Some(Rc::new(Headers::from(head.fields())));
        request.tries.cached = Some(CachedFacts { age: head.age(now), last_modified: head.last_modified });
    }
}

/// An entry served as an error page has the error's status, so its head is made here.
fn unprepared(
    request: &mut Request,
    entry: &Arc<Entry>,
    coding: Option<Coding>,
    now: Now,
    out: &mut Vec<u8>,
) -> Option<Ready> {
    let prepared = prepare(request, entry, coding)?;
    let has_body = shaped(request, entry, Chosen::Whole(coding), now, out)?;
    Some(if has_body { Ready::Body(Rc::new(prepared)) } else { Ready::HeadOnly })
}

pub fn passed_on(request: &mut Request, head: Head<'_>) -> Headers {
    charset::take(request, head.fields());
    head::draft(request, head.fields());
    let proxy = request.location().settings.pass();
    // The answer was made when its Date says. Another one beside its Age and Expires would shorten its life twice
    // (RFC 9111 §4.2.1); only where `expires` gives it a new one it has a new Date too.
    let keeps_date = expires::in_force(request, request.outgoing(head.status)).is_none();
    let mut headers = Headers::default();
    for (id, name, value) in head.fields().iter() {
        let hidden = match id {
            // Werkzeug's server sends two of Date.
            _ if id.is_said_once() && headers.view().has(id) => true,
            FieldId::Date => !keeps_date,
            _ => proxy.is_some_and(|proxy| proxy.exchange.hides(name)),
        };
        if !hidden {
            headers.push(name, value);
        }
    }
    if keeps_date && !headers.view().has(FieldId::Date) {
        headers.push(b"Date", &date::format_http(head.stored_at.div_euclid(1000)));
    }
    headers
}

fn prepare(request: &mut Request, entry: &Arc<Entry>, coding: Option<Coding>) -> Option<Prepared> {
    let body = match coding {
        None => entry.body().memory()?.clone(),
        Some(coding) => entry.coded_body(coding)?.clone(),
    };
    let mut headers = passed_on(request, entry.head());
    chosen::announce(request, entry.head().status, &mut headers);
    let plan = head::HeadPlan {
        status: entry.head().status,
        fields: headers.view(),
        length: Some(body.len() as u64),
        chunked: false,
        coding,
        age: None,
    };
    let (head, status) = (head::fixed(request, &plan), entry.head().status);
    Some(Prepared { head, status, body, uses: Cell::new(0), file: OnceCell::new() })
}

fn tag(request: &Request, coding: Option<Coding>) -> u64 {
    let status = request.cache.status.map_or(0, CacheStatus::number);
    request.generation.shared.edition.number << 37
        | u64::from(request.route.location.0) << 9
        | u64::from(request.is_on_stream()) << 8
        | u64::from(status) << 3
        | coding.map_or(0, |coding| u64::from(coding.number()) + 1)
}
