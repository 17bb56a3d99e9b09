//! The other nodes of a zone, by their beats.
//!
//! How long a node has been silent is counted on this node's monotonic clock, from the moment when its latest beat was first seen: later
//! than it was written, so a node that is taken for cut off here has been cut off by its own count. No clock is compared with another
//! machine's. Next: `member`, `standing`.

use crate::beat::Beat;
use crate::order::Issuer;
use crate::secret::{Kind, Seal};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What two monotonic clocks and one tick of a timer may differ by.
pub(crate) const MARGIN: Duration = Duration::from_secs(1);
/// Nodes of a zone.
const MOST: usize = 256;
/// Processes of one node that are remembered.
const MOST_ENDED: usize = 16;
/// How long others wait for one that serves while it is cut off.
const SERVING: Duration = Duration::from_secs(10);
/// A node that was silent for as long is removed.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// The same of one that has left.
const LEFT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) beat: Beat,
    sealed: Vec<u8>,
    /// When this beat was first seen.
    seen: Instant,
    /// Processes of this node that another one has followed, the latest last.
    ended: Vec<u64>,
}

impl Peer {
    fn following(known: Option<Peer>, beat: Beat, sealed: Vec<u8>, now: Instant) -> Peer {
        let (mut ended, process) =
            known.map_or((Vec::new(), beat.process), |known| (known.ended, known.beat.process));
        if process != beat.process {
            ended.push(process);
            ended.drain(..ended.len().saturating_sub(MOST_ENDED));
        }
        Peer { beat, sealed, seen: now, ended }
    }

    /// Whether a beat is not the latest of this node: someone has put it back.
    fn has_ended(&self, beat: &Beat) -> bool {
        let is_earlier = beat.process == self.beat.process && beat.count < self.beat.count;
        is_earlier || self.ended.contains(&beat.process)
    }

    pub(crate) fn silent(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.seen)
    }

    /// For how long it has been silent, if it has cut itself off. `now` is when the engine was asked.
    pub(crate) fn cut_off(&self, now: Instant) -> Option<Duration> {
        let silent = self.silent(now);
        (self.beat.cut_off.is_some_and(|time| silent > time + MARGIN)).then_some(silent)
    }

    /// One that serves when it is cut off is not waited for either.
    fn may_serve(&self, now: Instant) -> bool {
        let time = self.beat.cut_off.unwrap_or(SERVING);
        !self.beat.has_left && self.silent(now) <= time + MARGIN
    }
}

#[derive(Debug, Default)]
pub(crate) struct Peers(BTreeMap<Issuer, Peer>);

impl Peers {
    /// Takes over what the engine has. What this secret does not open is no beat. A node of which the engine
    /// has lost the beat stays until it would be cut off.
    pub(crate) fn update(
        &mut self,
        beats: Vec<(Issuer, Vec<u8>)>,
        (own, seal): (Issuer, &Seal),
        now: Instant,
    ) {
        let mut known = std::mem::take(&mut self.0);
        for (issuer, sealed) in beats.into_iter().filter(|(issuer, _)| *issuer != own) {
            let peer = match known.remove(&issuer) {
                Some(peer) if peer.sealed == sealed => Some(peer),
                known => {
                    let beat = seal.open(Kind::Beat, &sealed).and_then(|plain| Beat::decode(&plain));
                    let beat = beat.filter(|beat| beat.issuer == issuer);
                    match (known, beat) {
                        (Some(known), Some(beat)) if known.has_ended(&beat) => Some(known),
                        (known, Some(beat)) => Some(Peer::following(known, beat, sealed, now)),
                        (known, None) => known.filter(|known| known.may_serve(now)),
                    }
                }
            };
            // Counted after they were opened: what is not a beat takes no node's place.
            if let Some(peer) = peer.filter(|_| self.0.len() < MOST) {
                self.0.insert(issuer, peer);
            }
        }
        known.retain(|_, peer| peer.may_serve(now));
        self.0.extend(known);
    }

    pub(crate) fn get(&self, issuer: Issuer) -> Option<&Peer> {
        self.0.get(&issuer)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Issuer, &Peer)> {
        self.0.iter().map(|(issuer, peer)| (*issuer, peer))
    }

    /// Those that may serve without asking: others have cut themselves off.
    pub(crate) fn live(&self, now: Instant) -> impl Iterator<Item = (Issuer, &Peer)> {
        self.iter().filter(move |(_, peer)| peer.may_serve(now))
    }

    /// One that is not expected to come back, with its beat.
    pub(crate) fn forgotten(&self, now: Instant) -> Option<(Issuer, Vec<u8>)> {
        let limit = |peer: &Peer| if peer.beat.has_left { LEFT } else { FORGOTTEN };
        let mut silent = self.iter().filter(|(_, peer)| peer.silent(now) > limit(peer));
        silent.next().map(|(issuer, peer)| (issuer, peer.sealed.clone()))
    }
}
