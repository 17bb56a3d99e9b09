//! Whose turn it is among the peers of one version of a group: one file per method, one door for all.
//!
//! A method gets the set to choose from (the servers proper, or the backups) and what the request knows; it never
//! connects and reads no clock. Methods that compare all peers do so under the group's lock; those that go by a key or
//! by chance take none. Next: the methods; `peers`, which asks.

pub(crate) mod round_robin;
mod least;
mod least_conn;
mod least_time;
mod shares;
mod ip_hash;
mod hash;
mod consistent;
mod random;

use crate::peer::Member;
use crate::times::Timing;
use crate::tried::Tried;
use consistent::Ring;
use millstream_conf::model::{BalanceMethod, TimeTo};
use shares::Shares;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Peers that a search by key or by chance may reject before the others take turns, as in nginx.
const MOST_MISSES: u32 = 20;

/// What a request needs of balancing.
#[derive(Debug)]
pub struct Ask<'a> {
    /// Empty if the method ignores the request.
    pub key: &'a [u8],
    /// The `sticky` name of the session's server.
    pub session: Option<&'a [u8]>,
    pub tried: &'a mut Tried,
    pub now: Instant,
}

/// A method with its precomputed data for the primary servers of one version. Backups take turns, or are
/// chosen by load with `least_conn`, by times with `least_time`.
#[derive(Debug)]
pub(crate) enum Balance {
    RoundRobin,
    LeastConn,
    LeastTime(Timing),
    IpHash(Shares),
    Hash(Shares),
    Consistent(Ring),
    Random(Shares),
    RandomTwo(Shares),
    RandomTwoLeastTime(Shares, TimeTo),
}

#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    members: &'a [Member],
    /// Index of the first of them in the version.
    first: usize,
    /// The lock under which all peers of the group are compared.
    turns: &'a Mutex<()>,
}

impl Balance {
    pub(crate) fn new(method: BalanceMethod, proper: &[Member]) -> Balance {
        match method {
            BalanceMethod::RoundRobin => Balance::RoundRobin,
            BalanceMethod::LeastConn => Balance::LeastConn,
            BalanceMethod::LeastTime { to, inflight } => Balance::LeastTime(Timing { to, inflight }),
            // One that has nobody to choose from takes turns, as in nginx.
            _ if proper.len() < 2 => Balance::RoundRobin,
            BalanceMethod::IpHash => Balance::IpHash(Shares::of(proper)),
            BalanceMethod::Hash => Balance::Hash(Shares::of(proper)),
            BalanceMethod::ConsistentHash => Balance::Consistent(Ring::of(proper)),
            BalanceMethod::Random => Balance::Random(Shares::of(proper)),
            BalanceMethod::RandomTwo => Balance::RandomTwo(Shares::of(proper)),
            BalanceMethod::RandomTwoLeastTime(to) => Balance::RandomTwoLeastTime(Shares::of(proper), to),
        }
    }

    /// Whether it looks at requests in progress, which are counted only then.
    pub(crate) fn counts(&self) -> bool {
        match self {
            Balance::LeastConn
            | Balance::LeastTime(_)
            | Balance::RandomTwo(_)
            | Balance::RandomTwoLeastTime(..) => true,
            Balance::RoundRobin
            | Balance::IpHash(_)
            | Balance::Hash(_)
            | Balance::Consistent(_)
            | Balance::Random(_) => false,
        }
    }

    pub(crate) fn timing(&self) -> Option<Timing> {
        match *self {
            Balance::LeastTime(timing) => Some(timing),
            Balance::RandomTwoLeastTime(_, to) => Some(Timing { to, inflight: false }),
            _ => None,
        }
    }

    /// The index in the version of a live primary server that was not asked.
    pub(crate) fn choose(&self, set: Set<'_>, ask: &mut Ask<'_>) -> Option<usize> {
        if let Some(own) = set.own(ask) {
            if let Balance::RoundRobin = self {
                round_robin::stay(set, ask, own);
            }
            return Some(set.first + own);
        }
        let found = match self {
            Balance::RoundRobin => None,
            Balance::LeastConn => return least_conn::choose(set, ask),
            Balance::LeastTime(timing) => return least_time::choose(timing.to, set, ask),
            Balance::IpHash(shares) => ip_hash::choose(shares, set, ask),
            Balance::Hash(shares) => hash::choose(shares, set, ask),
            Balance::Consistent(ring) => consistent::choose(ring, set, ask),
            Balance::Random(shares) => random::choose(shares, set, ask, &mut random::draw),
            Balance::RandomTwo(shares) => {
                random::choose_two(shares, set, ask, &mut random::draw, least_conn::cost)
            }
            Balance::RandomTwoLeastTime(shares, to) => {
                let now = ask.now;
                let cost = |member: &Member| least_time::cost(*to, member, now);
                random::choose_two(shares, set, ask, &mut random::draw, cost)
            }
        };
        found.or_else(|| round_robin::choose(set, ask))
    }

    pub(crate) fn choose_backup(&self, set: Set<'_>, ask: &Ask<'_>) -> Option<usize> {
        let own = set.own(ask);
        match self {
            Balance::LeastConn | Balance::LeastTime(_) if own.is_some() => own.map(|own| set.first + own),
            Balance::LeastConn => least_conn::choose(set, ask),
            Balance::LeastTime(timing) => least_time::choose(timing.to, set, ask),
            Balance::RoundRobin
            | Balance::IpHash(_)
            | Balance::Hash(_)
            | Balance::Consistent(_)
            | Balance::Random(_)
            | Balance::RandomTwo(_)
            | Balance::RandomTwoLeastTime(..) => match own {
                Some(own) => {
                    round_robin::stay(set, ask, own);
                    Some(set.first + own)
                }
                None => round_robin::choose(set, ask),
            },
        }
    }
}

impl<'a> Set<'a> {
    pub(crate) fn new(members: &'a [Member], first: usize, turns: &'a Mutex<()>) -> Set<'a> {
        Set { members, first, turns }
    }

    fn is_open(&self, index: usize, ask: &Ask<'_>) -> bool {
        !self.members[index].parameters.drain && self.is_left(index, ask)
    }

    /// Includes draining members.
    fn is_left(&self, index: usize, ask: &Ask<'_>) -> bool {
        let member = &self.members[index];
        !ask.tried.has(self.first + index) && member.standing.is_live(&member.parameters, ask.now)
    }

    /// The member that the request's session belongs to, if it can be asked: only the first of that name, as
    /// in nginx.
    fn own(&self, ask: &Ask<'_>) -> Option<usize> {
        let name = ask.session?;
        let own = self.members.iter().position(|member| member.session_name.as_bytes() == name)?;
        self.is_left(own, ask).then_some(own)
    }

    /// Weights stay consistent between single steps, so a poisoned lock is used as it is.
    fn lock(&self) -> MutexGuard<'a, ()> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
