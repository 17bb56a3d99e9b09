//! The task of a cluster's limits: one connection, over which zones exchange what they have counted, and requests are decided about.
//!
//! It knows no request: what the doors put into the queue it sends, many at a time, and gives back what comes. After a failure the doors
//! decide by themselves until the next session. Next: `bus`, which starts it.

use crate::attempts::Attempts;
use crate::engine::{self, Caller, Failure};
use crate::ledger::Ledger;
use crate::limit_door::{Board, Call, INTERVAL};
use crate::limit_script;
use crate::order::Issuer;
use crate::script;
use crate::settings::Settings;
use crate::shared_logs::SharedLogs;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_net::timer::pause;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Calls under way.
const MOST_UNDER_WAY: usize = 1024;

pub(crate) struct Limiter {
    pub(crate) settings: Arc<Settings>,
    pub(crate) node: Issuer,
    pub(crate) board: Arc<Board>,
    pub(crate) calls: mpsc::Receiver<Call>,
    pub(crate) ledgers: Vec<Ledger>,
    pub(crate) log: SharedLogs,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Limiter {
    /// Sessions, one after the other, until it is to stop.
    pub(crate) async fn run(mut self) {
        let (mut attempts, mut complaint) = (Attempts::new(), None);
        while !*self.stop.borrow() {
            let ended = self.session(&mut attempts, &mut complaint).await;
            self.board.connected(false);
            if let Err(failure) = ended {
                let text = failure.to_string();
                if complaint.as_ref() != Some(&text) {
                    self.write(Level::Error, &text);
                }
                complaint = Some(text);
            }
            attempts.rest(&self.stop).await;
        }
    }

    async fn session(
        &mut self,
        attempts: &mut Attempts,
        complaint: &mut Option<String>,
    ) -> Result<(), Failure> {
        let mut line = engine::open(&self.settings.engine).await?;
        script::prove(&mut line, &self.settings).await?;
        self.ledgers.iter_mut().for_each(Ledger::begin);
        exchange_once(&mut self.ledgers, &mut line.caller()).await?;
        if complaint.take().is_some() {
            self.write(Level::Notice, "the engine is back");
        }
        attempts.succeeded();
        self.board.connected(true);
        let mut stop = self.stop.clone();
        tokio::select! {
            failure = exchange(&mut self.ledgers, line.caller()) => Err(failure),
            () = serve(&mut self.calls, line.caller(), self.node.to_string()) => Ok(()),
            _ = stop.changed() => Ok(()),
        }
    }

    fn write(&self, level: Level, what: &str) {
        self.log.write(level, format_args!("cluster {}: limits: {what}", self.settings.cluster));
    }
}

async fn exchange_once(ledgers: &mut [Ledger], caller: &mut Caller) -> Result<(), Failure> {
    for ledger in ledgers {
        ledger.exchange(caller).await?;
    }
    Ok(())
}

/// Until a failure.
async fn exchange(ledgers: &mut [Ledger], mut caller: Caller) -> Failure {
    loop {
        let began = clock::now();
        if let Err(failure) = exchange_once(ledgers, &mut caller).await {
            return failure;
        }
        pause(INTERVAL.saturating_sub(clock::now().saturating_duration_since(began))).await;
    }
}

async fn serve(calls: &mut mpsc::Receiver<Call>, caller: Caller, node: String) {
    let node: Arc<str> = node.into();
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = under_way.join_next() => {}
            call = calls.recv(), if under_way.len() < MOST_UNDER_WAY => match call {
                Some(call) => _ = under_way.spawn_local(carry_out(call, caller.clone(), node.clone())),
                None => return,
            },
        }
    }
}

/// A call that fails drops its reply, and the request is decided about without the engine.
async fn carry_out(call: Call, mut caller: Caller, node: Arc<str>) {
    match call {
        Call::Ask { reply, .. } if reply.is_closed() => {}
        Call::Begin { reply, .. } if reply.is_closed() => {}
        Call::Ask { asked, reply } => {
            if let Ok(verdict) = limit_script::ask(&mut caller, &asked).await {
                // It may not wait any more.
                _ = reply.send(verdict);
            }
        }
        Call::Begin { key, most, reply } => {
            if let Ok(may_begin) = limit_script::begin(&mut caller, &key, &node, most).await
                && reply.send(may_begin).is_err()
                && may_begin
            {
                // The request was decided about without it.
                _ = limit_script::end(&mut caller, &key, &node).await;
            }
        }
        Call::End { key } => _ = limit_script::end(&mut caller, &key, &node).await,
    }
}
