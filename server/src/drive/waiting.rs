//! Waits for what must be known before a request is decided about, and goes on behind it.
//!
//! What is waited for guards whatever comes behind it, hits included: nothing is looked for in the cache before. Next: `phase`.

use super::{copies, subrequest};
use crate::access::{Opinion, Question, auth_request};
use crate::client::{Client, ClientFailure};
use crate::exchange;
use crate::outcome::Outcome;
use crate::phase::{self, Guard, Step, Wait};
use crate::request::Request;
use crate::rewrite::From;
use millstream_cache::Now;
use millstream_net::buffers;
use millstream_net::timer::Deadline;
use std::time::Instant;

pub(super) async fn on(
    check: Wait,
    request: &mut Request,
    client: &mut Client,
    out: &mut Vec<u8>,
) -> Result<Step, ClientFailure> {
    Ok(match check {
        Wait::File(test, paused) => {
            let from = From::Script(paused.answered(test.ask(request).await));
            phase::decide(request, from, Now::read(), out)
        }
        Wait::Body => match held(request, client).await? {
            Some(step) => step,
            None => phase::with_body(request, From::Server, Now::read(), out),
        },
        Wait::Mirror => {
            let generation = request.generation.clone();
            let mirror = &generation.http().location(request.route.location).settings.mirror;
            let refused = if mirror.request_body { held(request, client).await? } else { None };
            if let Some(step) = refused {
                return Ok(step);
            }
            copies::send(request, &mirror.uris, mirror.request_body);
            phase::mirrored(request, Now::read(), out)
        }
        Wait::Until(moment) => {
            until(moment, client).await?;
            phase::guarded(request, Guard::Limits, Now::read(), out)
        }
        Wait::Asking(asking) => {
            let ruling = client.unless_gone(asking.decided(request)).await?;
            phase::limited(request, ruling, Now::read(), out)
        }
        Wait::Beginning(beginning) => {
            let ruling = client.unless_gone(beginning.decided(request)).await?;
            phase::limited(request, ruling, Now::read(), out)
        }
        Wait::Refusal(moment, status) => {
            until(moment, client).await?;
            Step::Status(status)
        }
        Wait::Access(question, weighing) => {
            let opinion = match question {
                Question::Password(question) => client.unless_gone(question.answer(request)).await?,
                Question::Service => service(request, client).await?,
            };
            phase::guarded(request, Guard::Access(weighing.hears(opinion)), Now::read(), out)
        }
        Wait::Tries(tries) => {
            let is_found = tries.ask(request).await;
            phase::tried(request, is_found, Now::read(), out)
        }
    })
}

async fn held(request: &mut Request, client: &mut Client) -> Result<Option<Step>, ClientFailure> {
    match exchange::hold(request, client).await {
        Ok(()) => Ok(None),
        Err(Outcome::Client(failure)) => Err(failure),
        Err(Outcome::Status(status)) => Ok(Some(Step::Status(status))),
        Err(_) => Ok(Some(Step::Status(500))),
    }
}

async fn service(request: &mut Request, client: &mut Client) -> Result<Opinion, ClientFailure> {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings.auth_request;
    let uri = settings.uri.as_deref().unwrap_or_default();
    let answered = subrequest::ask(request, client, uri.as_bytes()).await?;
    let opinion = auth_request::heard(request, settings, &answered.request, &answered.head);
    buffers::give(answered.head);
    Ok(opinion)
}

async fn until(moment: Instant, client: &mut Client) -> Result<(), ClientFailure> {
    let mut deadline = Deadline::new();
    deadline.set(moment);
    client.unless_gone(deadline.passed()).await
}
