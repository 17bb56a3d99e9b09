//! A stored answer that takes more than one write: a body in a file, or several ranges of any body.
//!
//! Read piece by piece, so what is held in memory has a bound; one that turns out damaged ends the answer, for its
//! length is announced. What is in memory and asked for in one piece is `hit`'s.

use super::Outcome;
use crate::client::{AnswerHead, Client, Unsent};
use crate::filter::head;
use crate::representation::hit;
use crate::representation::ranges::multipart::Multipart;
use crate::representation::ranges::{self, Selection};
use crate::request::Request;
use millstream_cache::{BodyReader, Entry, Hit, Now};
use std::rc::Rc;
use std::sync::Arc;

/// Answers from an entry, which comes back where its file has vanished: nothing was sent. While it is sent nothing holds
/// a body in memory but its readers.
pub async fn answer(
    request: &mut Request,
    client: &mut Client,
    hit: Rc<Hit>,
    now: Now,
) -> Result<Outcome, Rc<Hit>> {
    let entry = &hit.entry;
    hit::remember(request, entry.head(), now);
    let mut headers = hit::passed_on(request, entry.head());
    let (status, length) = (entry.head().status, entry.length());
    let selection = ranges::select(request, &hit::offer(entry));
    let first = match &selection {
        Selection::Whole => 0..length,
        Selection::Part(part) => part.clone(),
        Selection::Parts(parts) => parts.first().cloned().unwrap_or_default(),
        Selection::Unsatisfiable(length) => return Ok(Outcome::Status(ranges::refuse(request, *length))),
    };
    let Ok(mut reader) = entry.body().open(first.clone()).await else { return Err(hit) };
    if let Selection::Part(_) | Selection::Parts(_) = selection {
        head::vary_as_whole(request, &mut headers, Some(length));
    }
    let (status, length, multipart) = match selection {
        Selection::Parts(parts) => {
            let multipart = Multipart::new(&mut headers, parts, length);
            (206, multipart.length(), Some(multipart))
        }
        Selection::Part(part) => {
            ranges::describe_part(&mut headers, &part, Some(length));
            (206, part.end - part.start, None)
        }
        Selection::Whole | Selection::Unsatisfiable(_) => {
            ranges::announce(request, status, &mut headers);
            (status, length, None)
        }
    };
    let age = Some(entry.age(now));
    let (fields, length) = (headers.view(), Some(length));
    client.begin(request, AnswerHead { status, fields, length, compressible: true, age });
    let file = in_file(entry);
    let body = multipart.as_ref().map(|_| reader.again());
    drop(hit);
    let sent = match (&multipart, body, request.wants_body()) {
        (_, _, false) => Ok(()),
        (Some(multipart), Some(body), true) => send_parts(request, client, &body, multipart).await,
        (_, _, true) => client.send_stored(request, &mut reader).await,
    };
    Ok(ended(request, client, file.as_ref(), sent).await)
}

/// The entry, where its body is in a file and may turn out to be damaged.
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
        client.send_stored(request, &mut reader).await?;
    }
    text.clear();
    multipart.write_end(&mut text);
    client.push(request, &text);
    Ok(())
}

/// Ends an answer whose every byte was handed over.
pub async fn close(request: &mut Request, client: &mut Client) -> Outcome {
    client.end(request, None);
    match client.flush(request).await {
        Ok(()) => Outcome::Done,
        Err(failure) => Outcome::Client(failure),
    }
}

/// Sends what a reader gives of an entry under a head that is already made, and ends the answer. `file` is the entry
/// where it is in a file.
pub async fn send_all(
    request: &mut Request,
    client: &mut Client,
    file: Option<Arc<Entry>>,
    reader: &mut BodyReader,
) -> Outcome {
    let sent = client.send_stored(request, reader).await;
    ended(request, client, file.as_ref(), sent).await
}

/// What follows from how a body went out; an entry that cannot be read is of no use to the next request either.
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

/// A piece of an entry could not be read as it was written.
pub fn damaged(request: &Request, entry: &Arc<Entry>) {
    let cache = request.location().settings.cache();
    if let Some(cache) = cache {
        request.generation.shared.stores[cache.zone.0 as usize].damaged(entry);
    }
}
