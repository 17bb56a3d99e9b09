//! What must hold at a rate, and why it did not: a judgement of one trial's figures, pure.

use crate::outcome::{Goal, KEPT_UP, Outcome};
use crate::report::quantity::{Count, Share, Time};
use std::fmt;

/// Answers that are errors by so much more than the goal allows are the server's, however late the generator was.
const FAR: f64 = 0.1;
/// Fewer answers than this on a connection are few.
const FEW: u64 = 10;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Miss {
    /// In words.
    pub(super) why: String,
    /// Whether the generator could not send so much: that says nothing about the server.
    pub(super) is_generators: bool,
}

impl fmt::Display for Goal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keeps_up = || "the server keeps up".to_owned();
        let p99 = self.p99.map_or_else(keeps_up, |p99| format!("p99 at most {}", Time(p99 as f64)));
        write!(out, "{p99}, at most {} errors", Share(self.errors))
    }
}

impl Goal {
    /// Whether an open loop held; its outcome says which rate it was. So many may be on their way at its end. What was
    /// answered was answered, however late it was sent; a miss is the generator's where its lateness may be the cause.
    pub(super) fn judge(&self, outcome: &Outcome, on_their_way: f64) -> Option<Miss> {
        let (generator, counted) = (&outcome.generator, &outcome.counts.errors);
        let (errors, kept_up) = (outcome.error_share(), outcome.kept_up_but_for(on_their_way));
        // An answer that took longer than the whole trial came out of a queue.
        let trial = (outcome.seconds * 1e6) as u64;
        let (p99, limit) = (outcome.latency.percentile(99.0), self.p99.unwrap_or(u64::MAX).min(trial));
        // What the generator could not send is its own; so is a latency that is its own delay.
        let (why, is_its_own) = if outcome.due() == outcome.counts.unfinished {
            ("there was no response in time".to_owned(), false)
        } else if errors > self.errors {
            let kinds = counted.found().map(|(kind, count, _)| format!("{kind} {}", Count(count)));
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            // A late generator sends several at once, which a server may refuse, and one without ports cannot connect.
            let far = errors - outcome.share(counted.connect) > self.errors + FAR;
            (format!("{} were errors ({kinds})", Share(errors)), !far && !generator.is_busy())
        } else if kept_up < KEPT_UP {
            (format!("only {} got a response in time", Share(kept_up)), true)
        } else if p99 > limit {
            let is_its_own = generator.is_busy() || p99.saturating_sub(generator.send_lag_p99) <= limit;
            (format!("p99 was {}", Time(p99 as f64)), is_its_own)
        } else {
            return None;
        };
        Some(match &generator.limits {
            Some(limits) if is_its_own => Miss { why: limits.clone(), is_generators: true },
            _ => Miss { why: why + &closings(outcome), is_generators: false },
        })
    }
}

/// A cause, where the server closed many connections that clients went on with: behind the first of each client one was opened for every
/// few answers.
fn closings(outcome: &Outcome) -> String {
    let (opened, clients) = (outcome.counts.connections, u64::from(outcome.connections));
    let more = opened.saturating_sub(clients);
    if !outcome.keep_alive || more < clients / 2 || more < outcome.counts.whole() / FEW || more == 0 {
        return String::new();
    }
    let [opened, clients] = [opened, clients].map(Count);
    format!(
        "; {opened} connections were opened for {clients}, because the server closes those in use: see its limit of connections \
         (worker_connections), and of requests on one"
    )
}
