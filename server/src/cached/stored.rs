//! A stored answer that takes more than one write: a body in a file, or several ranges of any body.
//!
//! Read piece by piece and off the loop, so what is held in memory has a bound; one that turns out damaged ends the answer, for its
//! length is announced. What is in memory and asked for in one piece is `hit`'s.

use crate::client::{Client, ClientFailure};
use crate::outcome::Outcome;
use crate::representation::chosen::{self, Extent};
use crate::representation::hit;
use crate::request::Request;
use millstream_cache::{BodyReader, Entry, Hit, Now, Piece};
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug)]
pub enum Unsent {
    Client(ClientFailure),
    /// The body, or a piece of it, cannot be read or is not what was announced: the response must be cut.
    Body,
}

/// Returns the entry if its file has vanished; nothing was sent. While sending, only readers hold the body in
/// memory.
pub async fn answer(
    request: &mut Request,
    client: &mut Client,
    hit: Rc<Hit>,
    now: Now,
) -> Result<Outcome, Rc<Hit>> {
    let entry = &hit.entry;
    hit::remember(request, entry.head(), now);
    let (headers, status) = (hit::passed_on(request, entry.head()), entry.head().status);
    let shape = match hit::choose(request, entry).shape(request, headers, status, Some(entry.length())) {
        Ok(shape) => shape,
        Err(unmet) => return Ok(Outcome::Status(chosen::refuse(request, unmet))),
    };
    let first = match &shape.extent {
        Extent::Nothing | Extent::Whole => 0..entry.length(),
        Extent::Part(part) => part.clone(),
        Extent::Parts(layout) => layout.ranges.first().cloned().unwrap_or_default(),
    };
    // Read before the head is sent: the file may be gone.
    let Ok(mut reader) = entry.body().open(first).await else { return Err(hit) };
    shape.begin(request, client, Some(entry.age(now)));
    let (file, body) = (in_file(entry), reader.again());
    drop(hit);
    let sent = match &shape.extent {
        Extent::Nothing => Ok(()),
        Extent::Parts(multipart) => {
            let part = async |request: &mut Request, client: &mut Client, range| {
                send(request, client, &mut body.part(range)).await
            };
            multipart.send(request, client, part).await
        }
        Extent::Whole | Extent::Part(_) => {
            drop(body);
            send(request, client, &mut reader).await
        }
    };
    Ok(ended(request, client, file.as_ref(), sent).await)
}

/// `Some` if its body is in a file, which may be damaged.
pub fn in_file(entry: &Arc<Entry>) -> Option<Arc<Entry>> {
    entry.body_in_file().is_some().then(|| entry.clone())
}

/// Piece by piece: by the kernel out of its file where that can be, else through memory. The kernel sends files on plain connections and as
/// they are; TLS and compression need the bytes.
pub async fn send(request: &mut Request, client: &mut Client, reader: &mut BodyReader) -> Result<(), Unsent> {
    let takes_files = client.takes_files();
    loop {
        client.room(request).await.map_err(Unsent::Client)?;
        let piece = match takes_files {
            true => reader.next_to_send().await,
            false => reader.next().await.map(|bytes| bytes.map(Piece::Bytes)),
        };
        let sent = match piece {
            None => return Ok(()),
            Some(Err(_)) => return Err(Unsent::Body),
            Some(Ok(Piece::Bytes(bytes))) => client.send(request, bytes).await,
            Some(Ok(Piece::Span(span))) => client.send_file(request, &span, span.part()).await,
        };
        sent.map_err(Unsent::Client)?;
    }
}

/// `file`: the entry if it is in a file, removed if that is unreadable.
pub async fn ended(
    request: &mut Request,
    client: &mut Client,
    file: Option<&Arc<Entry>>,
    sent: Result<(), Unsent>,
) -> Outcome {
    match sent {
        Ok(()) => client.finish(request, None).await.into(),
        Err(Unsent::Client(failure)) => Outcome::Client(failure),
        Err(Unsent::Body) => {
            damaged(request, file);
            client.abandon();
            Outcome::Done
        }
    }
}

pub fn damaged(request: &Request, file: Option<&Arc<Entry>>) {
    if let (Some(entry), Some(cache)) = (file, request.location().settings.cache()) {
        request.generation.shared.zones.stores[cache.zone.0 as usize].damaged(entry);
    }
}
