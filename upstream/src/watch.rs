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

/// An event to be reported.
#[derive(Debug, Clone, PartialEq)]
pub enum OutlierNews {
    Ejected { peer: Arc<str>, why: Conviction, time: Duration },
    Returned { peer: Arc<str> },
}

/// The watch over one group.
#[derive(Debug)]
pub struct OutlierWatch {
    outliers: Arc<Outliers>,
    /// By id: each server's conduct when the interval began.
    past: HashMap<u64, Conduct>,
    /// By id: who was out the last time.
    out: BTreeMap<u64, Arc<str>>,
    end: Instant,
}

impl OutlierWatch {
    pub fn new(outliers: &Arc<Outliers>, peers: &Peers, now: Instant) -> OutlierWatch {
        let end = now + outliers.terms.interval;
        let ejected = peers.members.iter().filter(|member| until(member).is_some());
        let out = ejected.map(|member| (member.peer.id, member.peer.name.clone())).collect();
        OutlierWatch { outliers: outliers.clone(), past: conduct(peers), out, end }
    }

    /// Unless it is woken before.
    pub fn next(&self, peers: &Peers) -> Instant {
        peers.members.iter().filter_map(until).min().map_or(self.end, |until| until.min(self.end))
    }

    /// Brings back those whose ejection has ended or exceeds the allowed share, and ejects new outliers.
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

    /// Also those that a request brought back early.
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

fn until(member: &Member) -> Option<Instant> {
    member.standing.health().ejection().until
}

fn share_out(peers: &Peers) -> (usize, usize) {
    let used = peers.members.iter().filter(|member| !member.parameters.down);
    used.fold((0, 0), |(out, all), member| (out + usize::from(until(member).is_some()), all + 1))
}

/// Whether more than the allowed share are out, since others of the group have gone.
fn is_over(outliers: &Outliers, peers: &Peers) -> bool {
    let (out, all) = share_out(peers);
    out.checked_sub(1).is_some_and(|others| !has_room(&outliers.terms, others, all))
}

/// Whether the group can spare it: the share is not exceeded, and another server can be asked.
fn may_be_ejected(outliers: &Outliers, peers: &Peers, place: usize, now: Instant) -> bool {
    let (out, used) = share_out(peers);
    let is_other = |(other, _): &(usize, &Member)| *other != place;
    let mut others = peers.members.iter().enumerate().filter(is_other);
    has_room(&outliers.terms, out, used)
        && others.any(|(_, member)| member.standing.is_live(&member.parameters, now))
}

fn conduct(peers: &Peers) -> HashMap<u64, Conduct> {
    let of = |member: &Member| {
        let (judged, errors) = member.counts.sum((0, 0), |cells, sum| cells.add_judged_to(sum));
        Conduct { judged, errors }
    };
    peers.members.iter().map(|member| (member.peer.id, of(member))).collect()
}

#[cfg(test)]
mod tests;
