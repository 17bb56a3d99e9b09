//! One zone of a limit on the cluster's thread: sends what this node has counted, and takes in what others have.
//!
//! A node that was heard is one of those that share the limit if the engine is lost. What others counted is dated by how long ago the engine
//! took it, so no two machines' clocks are compared. Next: `limiter`, which calls it ten times a second.

use crate::engine::{Caller, Failure};
use crate::limit_door::{LimitDoor, sealed_name};
use crate::limit_script::{self, LEASE, MOST_ENTRIES, UsageEntry};
use crate::order::Issuer;
use crate::secret::{KeyHash, Kind, Seal};
use crate::settings::Settings;
use crate::tally::{FORGOTTEN, Unsent};
use crate::usage::{MOST_KEYS, Usage};
use crate::zone::{LimitKind, LimitedZone};
use millstream_net::clock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two entries of a node, if it has counted nothing.
const BEAT: Duration = Duration::from_secs(1);
/// Between two times that all requests under way are sent.
const REPEAT: Duration = Duration::from_secs(2);
/// A node that was not heard for as long has left.
const LEFT: Duration = Duration::from_secs(3);
/// Milliseconds after which an entry is not believed any more: someone may have repeated it.
const OLDEST: u64 = 30_000;
/// Nodes that are known; the stream is not ours alone to write.
const MOST_NODES: usize = 256;
/// Readings of a stream in one exchange.
const MOST_READINGS: usize = 16;
/// Keys whose count is renewed by one call.
const RENEWED: usize = 512;
/// Keys under way that are sent, or renewed, each time.
const MOST_REPEATED: usize = 8 * MOST_KEYS;

pub(crate) struct Ledger {
    door: Arc<LimitDoor>,
    counts: Arc<dyn LimitedZone>,
    seal: Seal,
    node: Issuer,
    number: u64,
    /// The last entry that was read.
    after: String,
    /// By the engine's clock, at the last exchange; 0 before the first.
    engine: u64,
    peers: HashMap<Issuer, LimitPeer>,
    beaten: Option<Instant>,
    repeated: Option<Instant>,
    /// When the session began: until a while after it nodes that are silent may be on their way back.
    began: Instant,
}

struct LimitPeer {
    number: u64,
    heard: Instant,
}

impl Ledger {
    pub(crate) fn open(
        settings: &Settings,
        door: Arc<LimitDoor>,
        counts: Arc<dyn LimitedZone>,
        node: Issuer,
    ) -> Option<Ledger> {
        let seal = settings.secret.seal(&settings.cluster, &sealed_name(door.kind(), door.zone()))?;
        Some(Ledger {
            door,
            counts,
            seal,
            node,
            number: 0,
            after: "0-0".to_owned(),
            engine: 0,
            peers: HashMap::new(),
            beaten: None,
            repeated: None,
            began: clock::now(),
        })
    }

    /// A session with the engine begins.
    pub(crate) fn begin(&mut self) {
        self.began = clock::now();
        (self.beaten, self.repeated) = (None, None);
        // None counts twice.
        "0-0".clone_into(&mut self.after);
    }

    pub(crate) async fn exchange(&mut self, caller: &mut Caller) -> Result<(), Failure> {
        let began = clock::now();
        let mut sealed = self.next(caller).await?;
        for _ in 0..MOST_READINGS {
            let stream = self.door.stream();
            let seen = limit_script::exchange(caller, &stream, &self.after, sealed.as_deref()).await?;
            sealed = None;
            if seen.now.saturating_add(1000) < self.engine {
                // Another engine, or its clock was set back: its entries are numbered anew. None counts twice.
                "0-0".clone_into(&mut self.after);
            }
            self.engine = seen.now;
            let is_all = seen.entries.len() < MOST_ENTRIES;
            for entry in seen.entries {
                self.take(&entry);
                // What someone else has dated in the future would hide whatever follows.
                if entry.at() <= self.engine {
                    self.after = entry.id;
                }
            }
            if is_all {
                break;
            }
        }
        self.close(began);
        Ok(())
    }

    /// What this node has to send.
    async fn next(&mut self, caller: &mut Caller) -> Result<Option<Vec<u8>>, Failure> {
        let now = clock::now();
        let since = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        if self.door.kind() == LimitKind::Connections
            && since(self.repeated).is_none_or(|past| past >= REPEAT)
        {
            self.repeated = Some(now);
            self.repeat(caller).await?;
        }
        let is_due = since(self.beaten).is_none_or(|past| past >= BEAT);
        // The first exchange only reads the engine's clock.
        if self.engine == 0 {
            return Ok(None);
        }
        let counts = self.door.unsent(Unsent::take);
        if counts.is_empty() && !is_due {
            return Ok(None);
        }
        self.beaten = Some(now);
        self.number += 1;
        let usage = Usage { node: self.node, number: self.number, at: self.engine, counts };
        self.seal.close(Kind::Usage, &usage.encode()).map(Some).ok_or(Failure::NoRandom)
    }

    /// All that are under way, because others forget what is not repeated.
    async fn repeat(&mut self, caller: &mut Caller) -> Result<(), Failure> {
        let all = self.counts.under_way(MOST_REPEATED);
        if !self.door.is_exact() {
            self.door.unsent(|unsent| all.into_iter().for_each(|(key, count)| unsent.offer(key, count)));
            return Ok(());
        }
        for some in all.chunks(RENEWED) {
            let key = |hash: &KeyHash| self.door.exact_key(hash);
            limit_script::renew(caller, &self.node.to_string(), some, key).await?;
        }
        Ok(())
    }

    /// Entries that are not sealed, or repeated, are left out.
    fn take(&mut self, entry: &UsageEntry) {
        let opened = self.seal.open(Kind::Usage, &entry.sealed).and_then(|plain| Usage::decode(&plain));
        let Some(usage) = opened else { return };
        let now = clock::now();
        if usage.node == self.node || usage.at.saturating_add(OLDEST) < self.engine {
            return;
        }
        if self.peers.len() >= MOST_NODES && !self.peers.contains_key(&usage.node) {
            return;
        }
        let peer = self.peers.entry(usage.node).or_insert(LimitPeer { number: 0, heard: now });
        if usage.number <= peer.number {
            return;
        }
        (peer.number, peer.heard) = (usage.number, now);
        let age = self.engine.saturating_sub(entry.at()).min(LEASE);
        let at = now.checked_sub(Duration::from_millis(age)).unwrap_or(now);
        match self.door.kind() {
            LimitKind::Requests => {
                usage.counts.iter().for_each(|(key, count)| self.counts.add(key, *count, at));
            }
            LimitKind::Connections => self.door.others(|others| {
                usage.counts.iter().for_each(|(key, count)| others.hear(usage.node, *key, *count, at));
            }),
        }
    }

    fn close(&mut self, began: Instant) {
        let now = clock::now();
        let silent = |peer: &LimitPeer| now.saturating_duration_since(peer.heard);
        let live = self.peers.values().filter(|peer| silent(peer) < LEFT).count() as u32 + 1;
        let is_early = now.saturating_duration_since(self.began) < LEFT;
        let nodes = if is_early { live.max(self.door.nodes()) } else { live };
        self.door.exchanged(began, nodes);
        // As long as an entry of theirs could be repeated, they are known.
        self.peers.retain(|_, peer| silent(peer) < Duration::from_millis(2 * OLDEST));
        if self.number.is_multiple_of(8) && self.door.kind() == LimitKind::Connections {
            self.door.others(|others| others.tidy(now));
        }
    }
}

const _: () =
    assert!(FORGOTTEN.as_millis() > 2 * REPEAT.as_millis(), "a count is repeated before it is forgotten");
