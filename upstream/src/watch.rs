//! The watch over the outliers of a group: takes servers out, and brings them back, for all workers at once.
//!
//! ```text
//!                    errors in a row, or a success rate far below the others'
//!          judged ────────────────────────────────────────────────────────────▶ out
//!            ▲                                                                    │
//!            └──────────────────── `time` × how often of late ────────────────────┘
//! ```
//!
//! Workers count, each for itself but for errors in a row; this alone decides, on one thread, and takes `now`. That a server is out is
//! one more reason in the number that every choice reads (`health`). Before: `outlier`, the decisions; `peers`; next:
//! `millstream-server`'s `health/outliers`, which runs it.

use crate::outlier::{Conduct, Conviction, Outliers, by_rate, has_room, sentence};
use crate::peer::Member;
use crate::peers::Peers;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is to be told.
#[derive(Debug, Clone, PartialEq)]
pub enum OutlierNews {
    /// A server is out from now on.
    Ejected {
        /// Its address.
        peer: Arc<str>,
        /// Why.
        why: Conviction,
        /// For how long.
        time: Duration,
    },
    /// A server is back.
    Returned {
        /// Its address.
        peer: Arc<str>,
    },
}

/// The watch over one group.
#[derive(Debug)]
pub struct OutlierWatch {
    outliers: Arc<Outliers>,
    /// What each server had answered when the interval began, by its number.
    past: HashMap<u64, Conduct>,
    /// Who was out the last time, by number.
    out: BTreeMap<u64, Arc<str>>,
    /// When the interval ends.
    end: Instant,
}

impl OutlierWatch {
    /// One that begins now.
    pub fn new(outliers: &Arc<Outliers>, peers: &Peers, now: Instant) -> OutlierWatch {
        let end = now + outliers.terms.interval;
        let ejected = peers.members.iter().filter(|member| until(member).is_some());
        let out = ejected.map(|member| (member.peer.id, member.peer.name.clone())).collect();
        OutlierWatch { outliers: outliers.clone(), past: conduct(peers), out, end }
    }

    /// When it is to look again, unless it is woken before.
    pub fn next(&self, peers: &Peers) -> Instant {
        peers.members.iter().filter_map(until).min().map_or(self.end, |until| until.min(self.end))
    }

    /// Brings back whose time is over and who is more than may be out of what the group has become, and takes out who deserves it.
    pub fn look(&mut self, peers: &Peers, now: Instant) -> Vec<OutlierNews> {
        peers.readmit(now);
        while is_over(&self.outliers, peers) && peers.recall(now) {}
        let mut news = self.returned(peers);
        if let (false, Some(queue)) = (news.is_empty(), peers.queue()) {
            queue.call();
        }
        let most = self.outliers.terms.consecutive_errors;
        if most > 0 {
            for (place, member) in peers.members.iter().enumerate() {
                let errors = member.standing.errors_in_a_row();
                if errors >= most {
                    news.extend(self.eject(peers, place, Conviction::InARow(errors), now));
                }
            }
        }
        if now >= self.end {
            self.end = now + self.outliers.terms.interval;
            let present = conduct(peers);
            let of = |id: &u64| {
                let past = self.past.get(id).copied().unwrap_or_default();
                present.get(id).copied().unwrap_or_default().since(past)
            };
            let all: Vec<Conduct> = peers.members.iter().map(|member| of(&member.peer.id)).collect();
            self.past = present;
            for (place, why) in by_rate(&self.outliers.terms, &all) {
                news.extend(self.eject(peers, place, why, now));
            }
            peers.members.iter().for_each(|member| member.standing.health().forgive());
        }
        news
    }

    /// Who is back since the last time, also where a request could not wait for it.
    fn returned(&mut self, peers: &Peers) -> Vec<OutlierNews> {
        let mut news = Vec::new();
        self.out.retain(|id, peer| {
            let member = peers.members.iter().find(|member| member.peer.id == *id);
            let is_back = member.is_some_and(|member| until(member).is_none());
            if is_back {
                news.push(OutlierNews::Returned { peer: peer.clone() });
            }
            member.is_some() && !is_back
        });
        news
    }

    fn eject(&mut self, peers: &Peers, place: usize, why: Conviction, now: Instant) -> Option<OutlierNews> {
        let (outliers, member) = (self.outliers.clone(), &peers.members[place]);
        let mut ejection = member.standing.health().ejection();
        if ejection.until.is_some() || !may_be_ejected(&outliers, peers, place, now) {
            return None;
        }
        ejection.times += 1;
        ejection.count += 1;
        let time = sentence(&outliers.terms, ejection.times);
        ejection.until = Some(now + time);
        member.standing.eject(ejection, now);
        self.out.insert(member.peer.id, member.peer.name.clone());
        Some(OutlierNews::Ejected { peer: member.peer.name.clone(), why, time })
    }
}

/// Until when a server is out.
fn until(member: &Member) -> Option<Instant> {
    member.standing.health().ejection().until
}

/// How many servers are out, and of how many.
fn share_out(peers: &Peers) -> (usize, usize) {
    let used = peers.members.iter().filter(|member| !member.parameters.down);
    used.fold((0, 0), |(out, all), member| (out + usize::from(until(member).is_some()), all + 1))
}

/// Whether more than may be are out: others of the group have gone since.
fn is_over(outliers: &Outliers, peers: &Peers) -> bool {
    let (out, all) = share_out(peers);
    out.checked_sub(1).is_some_and(|others| !has_room(&outliers.terms, others, all))
}

/// Whether the group can do without it: no more than its share is out, and somebody else can be asked.
fn may_be_ejected(outliers: &Outliers, peers: &Peers, place: usize, now: Instant) -> bool {
    let (out, used) = share_out(peers);
    let is_other = |(other, _): &(usize, &Member)| *other != place;
    let mut others = peers.members.iter().enumerate().filter(is_other);
    has_room(&outliers.terms, out, used)
        && others.any(|(_, member)| member.standing.is_live(&member.parameters, now))
}

/// What each server has answered so far.
fn conduct(peers: &Peers) -> HashMap<u64, Conduct> {
    let of = |member: &Member| {
        let (judged, errors) = member.counts.sum((0, 0), |cells, sum| cells.add_judged_to(sum));
        Conduct { judged, errors }
    };
    peers.members.iter().map(|member| (member.peer.id, of(member))).collect()
}

#[cfg(test)]
mod tests;
