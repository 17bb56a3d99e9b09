//! What the dashboard's page and `millstream top` follow: the last hour as one event, then one each second (server-sent events).
//!
//! A viewer holds one frame at a time: who reads slowly misses some, and who reads nothing for `send_timeout` is closed on. The stream ends
//! by itself where the process stops, a reload puts another configuration in force, or a newcomer needs the place; the page comes
//! again. Before: `millstream-server`'s `recorder`.

use crate::refusal::ApiRefusal;
use crate::{cluster, misses, status};
use millstream_net::clock;
use millstream_server::client::{AnswerHead, Client, ClientFailure};
use millstream_server::generation::Shared;
use millstream_server::outcome::Outcome;
use millstream_server::request::Request;
use millstream_server::worker::{Awaits, Stage};
use millstream_wire::Headers;
use serde_json::Value;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

enum LiveEnd {
    Over,
    Client(ClientFailure),
}

pub fn tables(shared: &Shared) -> Value {
    let mut tables = status::tables(shared);
    tables["misses"] = serde_json::to_value(misses::most_valuable(shared)).unwrap_or_default();
    tables["cluster"] = serde_json::to_value(cluster::all(shared)).unwrap_or_default();
    tables["shadow"] = shared.zones.shadows.zone().map_or(Value::Null, |zone| Value::clone(&zone.latest()));
    tables
}

pub(crate) async fn answer(
    request: &mut Request,
    client: &mut Client,
    tables: Value,
) -> Result<Outcome, ApiRefusal> {
    let recorder = request.generation.shared.recorder.clone();
    let Some(mut frames) = recorder.watch() else {
        return Err(ApiRefusal::new(
            503,
            "TooManyViewers",
            "64 clients are already connected: close unused dashboard pages",
        ));
    };
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"text/event-stream");
    headers.push(b"Cache-Control", b"no-store");
    headers.push(b"X-Content-Type-Options", b"nosniff");
    // Nobody knows when it ends, and the connection is needed for nothing else.
    request.keep_alive = false;
    client.begin(request, AnswerHead { status: 200, fields: headers.view(), length: None, age: None });
    if !request.gets_body(200) {
        client.end(request, None);
        return Ok(client.flush(request).await.map_or_else(Outcome::Client, |()| Outcome::Done));
    }
    let mut history = recorder.history(&request.generation.shared.registry);
    history["tables"] = tables;
    history["nginx"] = status::process::nginx(request);
    push(request, client, "history", &history.to_string());
    let since = clock::now();
    let stop = loop {
        if let Err(stop) = flush(request, client, since).await {
            break stop;
        }
        let changed = poll_next(request, client, since, frames.changed()).await;
        if let Err(stop) = changed {
            break stop;
        }
        let frame: Arc<str> = frames.borrow_and_update().clone();
        push(request, client, "second", &frame);
    };
    Ok(match stop {
        LiveEnd::Client(failure) => Outcome::Client(failure),
        LiveEnd::Over => {
            client.end(request, None);
            // Who has not taken what was sent until now does not hold up the end.
            match poll_fn(|cx| Poll::Ready(client.poll_flush(cx, request))).await {
                Poll::Ready(Err(failure)) => Outcome::Client(failure),
                Poll::Ready(Ok(())) => Outcome::Done,
                Poll::Pending => {
                    client.abandon();
                    Outcome::Done
                }
            }
        }
    })
}

fn push(request: &mut Request, client: &mut Client, event: &str, data: &str) {
    let text = format!("event: {event}\ndata: {data}\n\n");
    client.push(request, text.as_bytes());
    client.pause();
}

/// Also registers for waking at the end.
fn is_over(request: &Request, client: &Client, since: Instant, cx: &Context<'_>) -> bool {
    client.wait(Awaits::Request(since), cx.waker());
    let worker = &request.worker;
    worker.stage() != Stage::Running || !worker.serves_with(&request.generation) || client.is_shed()
}

async fn flush(request: &mut Request, client: &mut Client, since: Instant) -> Result<(), LiveEnd> {
    poll_fn(|cx| match client.poll_flush(cx, request) {
        Poll::Ready(done) => Poll::Ready(done.map_err(LiveEnd::Client)),
        Poll::Pending if is_over(request, client, since, cx) => Poll::Ready(Err(LiveEnd::Over)),
        Poll::Pending => Poll::Pending,
    })
    .await
}

async fn poll_next<T, E>(
    request: &Request,
    client: &mut Client,
    since: Instant,
    change: impl Future<Output = Result<T, E>>,
) -> Result<T, LiveEnd> {
    let mut change = pin!(change);
    poll_fn(|cx| {
        if let Poll::Ready(changed) = change.as_mut().poll(cx) {
            return Poll::Ready(changed.map_err(|_| LiveEnd::Over));
        }
        if is_over(request, client, since, cx) {
            return Poll::Ready(Err(LiveEnd::Over));
        }
        client.poll_gone(cx).map(|()| Err(LiveEnd::Client(ClientFailure::Gone)))
    })
    .await
}
