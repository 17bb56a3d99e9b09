//! A stored answer that takes more than one write: a body in a file, or several ranges of any body.
//!
//! Read piece by piece, so what is held in memory has a bound; one that turns out damaged ends the answer, for its
//! length is announced. What is in memory and asked for in one piece is `hit`'s.

use crate::client::{Client, Unsent, send_stored};
use crate::outcome::Outcome;
use crate::representation::chosen::{self, Extent};
use crate::representation::hit;
use crate::representation::multipart::Multipart;
use crate::request::Request;
use millstream_cache::{BodyReader, Entry, Hit, Now};
use std::rc::Rc;
use std::sync::Arc;

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
        Extent::Parts(multipart) => send_parts(request, client, &body, multipart).await,
        Extent::Whole | Extent::Part(_) => {
            drop(body);
            send_stored(client, request, &mut reader).await
        }
    };
    Ok(ended(request, client, file.as_ref(), sent).await)
}

/// `Some` if its body is in a file, which may be damaged.
pub fn in_file(entry: &Arc<Entry>) -> Option<Arc<Entry>> {
    entry.body_in_file().is_some().then(|| entry.clone())
}

async fn send_parts(
    request: &mut Request,
    client: &mut Client,
    body: &BodyReader,
    multipart: &Multipart,
) -> Result<(), Unsent> {
    let mut text = Vec::with_capacity(256);
    for range in &multipart.ranges {
        text.clear();
        multipart.write_head(range, &mut text);
        client.push(request, &text);
        let mut reader = body.part(range.clone());
        send_stored(client, request, &mut reader).await?;
    }
    text.clear();
    multipart.write_end(&mut text);
    client.push(request, &text);
    Ok(())
}

pub async fn close(request: &mut Request, client: &mut Client) -> Outcome {
    client.end(request, None);
    match client.flush(request).await {
        Ok(()) => Outcome::Done,
        Err(failure) => Outcome::Client(failure),
    }
}

/// `file`: the entry if it is in a file. The head is ready.
pub async fn send_all(
    request: &mut Request,
    client: &mut Client,
    file: Option<Arc<Entry>>,
    reader: &mut BodyReader,
) -> Outcome {
    let sent = send_stored(client, request, reader).await;
    ended(request, client, file.as_ref(), sent).await
}

/// An unreadable entry is removed.
async fn ended(
    request: &mut Request,
    client: &mut Client,
    file: Option<&Arc<Entry>>,
    sent: Result<(), Unsent>,
) -> Outcome {
    match sent {
        Ok(()) => close(request, client).await,
        Err(Unsent::Client(failure)) => Outcome::Client(failure),
        Err(Unsent::Body) => {
            if let Some(entry) = file {
                damaged(request, entry);
            }
            client.abandon();
            Outcome::Done
        }
    }
}

pub fn damaged(request: &Request, entry: &Arc<Entry>) {
    let cache = request.location().settings.cache();
    if let Some(cache) = cache {
        request.generation.shared.zones.stores[cache.zone.0 as usize].damaged(entry);
    }
}
