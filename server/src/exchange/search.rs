//! The search for a server that answers: one after another, until a final head is accepted or nobody else is to be asked.
//!
//! Next: `asked`, what one is asked; `millstream-upstream`'s `retry`, what follows a failure.

use super::answered::Answered;
use super::asked::Asked;
use super::broken::AttemptFailure;
use super::destination::Destination;
use super::queueing::wait_for_turn;
use super::{Passing, sticky};
use crate::client::ClientFailure;
use millstream_net::clock;
use millstream_telemetry::metrics::Counter;
use millstream_upstream::{Ask, Attempt, Condition, Decision, Tried, Turn, decide};
use millstream_wire::h1::head::ResponseHead;
use std::time::Instant;

pub(super) enum Stop {
    Client(ClientFailure),
    Upstream(Condition, u16),
}

/// Retries on a server that refused a request unprocessed: it may count calls longer than it takes to learn
/// of their end.
const MOST_REFUSALS: u32 = 8;

pub(super) struct ServerSearch {
    tried: Tried,
    started: Instant,
    /// The first server, until it is asked; what it was asked already.
    pub(super) first: Option<(Turn, Option<Asked>)>,
}

impl ServerSearch {
    pub(super) fn begin(passing: &mut Passing<'_>, now: Instant) -> ServerSearch {
        passing.request.tries.begin();
        let tried = passing.destination.peers.tried(passing.proxy.exchange.next_upstream_tries);
        let mut search = ServerSearch { tried, started: now, first: None };
        search.first = search.choose(passing, now).map(|turn| (turn, None));
        search
    }

    fn choose(&mut self, passing: &mut Passing<'_>, now: Instant) -> Option<Turn> {
        let Destination { peers, key, session, .. } = passing.destination;
        let ask = Ask { key, session: session.server(), tried: &mut self.tried, now };
        let turn = peers.choose(ask).ok()?;
        sticky::chosen(passing.request, &passing.destination.session, &turn);
        Some(turn)
    }

    /// Tries servers until one sends an acceptable head.
    pub(super) async fn run(
        mut self,
        passing: &mut Passing<'_>,
        head: &mut ResponseHead,
    ) -> Result<Answered, Stop> {
        let (mut now, mut next) = (self.started, self.first.take());
        loop {
            let (turn, asked) = match next.take() {
                Some(next) => next,
                None => {
                    let turn = self.wait(passing).await?;
                    now = clock::now();
                    (turn, None)
                }
            };
            if let Some(ending) = self.ask(passing, turn, asked, head, now).await {
                return ending;
            }
            passing.count(Counter::UpstreamRetries, 1);
            now = clock::now();
            next = self.choose(passing, now).map(|turn| (turn, None));
        }
    }

    /// Before the first try there may be a queue.
    async fn wait(&mut self, passing: &mut Passing<'_>) -> Result<Turn, Stop> {
        match wait_for_turn(passing, &mut self.tried).await.map_err(Stop::Client)? {
            Some(turn) => {
                sticky::chosen(passing.request, &passing.destination.session, &turn);
                Ok(turn)
            }
            None => {
                passing.nobody(passing.destination.peers.group());
                Err(Stop::Upstream(Condition::Error, 502))
            }
        }
    }

    /// Asks one server, twice if the first connection was stale. `None`: try the next one.
    async fn ask(
        &self,
        passing: &mut Passing<'_>,
        turn: Turn,
        asked: Option<Asked>,
        head: &mut ResponseHead,
        mut now: Instant,
    ) -> Option<Result<Answered, Stop>> {
        let mut asked = asked;
        let (mut fresh, mut refusals) = (false, 0);
        loop {
            let attempted = match asked.take() {
                Some(asked) => asked.answer(passing, head).await,
                None => match Asked::begin(passing, &turn, fresh, now).await {
                    Ok(asked) => asked.answer(passing, head).await,
                    Err(failure) => Err(failure),
                },
            };
            let (connection, failure) = match attempted {
                Ok(connection) if !may_ask_again(head.status) => {
                    return Some(Ok(Answered::of(passing, connection, turn, head)));
                }
                Ok(connection) => (Some(connection), None),
                Err(AttemptFailure::Client(failure)) => return Some(Err(Stop::Client(failure))),
                Err(AttemptFailure::Exchange(failure)) => (None, Some(failure)),
            };
            now = clock::now();
            let is_refusal = failure.as_ref().is_some_and(|failure| failure.error.is_untouched());
            let is_final = failure.as_ref().is_some_and(|failure| failure.error.is_final());
            let may_be_fresh = !fresh || is_refusal && refusals < MOST_REFUSALS;
            let condition =
                failure.as_ref().map_or(Condition::Status(head.status), |failure| failure.error.condition());
            let attempt = Attempt {
                condition,
                method: passing.terms.method,
                request_sent: failure.as_ref().is_none_or(|failure| failure.sent),
                body_replayable: passing.terms.body.is_replayable(),
                stale: failure.as_ref().is_some_and(|failure| failure.stale) && may_be_fresh,
                tries_left: if is_final { 0 } else { self.tried.left() },
                elapsed: now.saturating_duration_since(self.started),
            };
            let decision = decide(&passing.proxy.exchange, &attempt);
            if decision == Decision::Fresh {
                passing.note_failure(condition);
                refusals += u32::from(is_refusal);
                fresh = true;
                continue;
            }
            if let (Decision::GiveUp(_), Some(connection)) = (decision, connection) {
                return Some(Ok(Answered::of(passing, connection, turn, head)));
            }
            if let Some(failure) = &failure {
                passing.report_failure(turn.peer(), failure);
            }
            if failure.is_none_or(|failure| !failure.error.is_not_its_fault()) {
                passing.hold_against(turn, condition, now);
            }
            return match decision {
                Decision::GiveUp(status) => Some(Err(Stop::Upstream(condition, status))),
                Decision::Next | Decision::Fresh => None,
            };
        }
    }
}

/// Statuses that `proxy_next_upstream` can name.
fn may_ask_again(status: u16) -> bool {
    matches!(status, 403 | 404 | 429 | 500 | 502 | 503 | 504)
}
