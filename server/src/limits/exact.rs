//! `sync=exact`: the engine of a cluster decides about a request, for at most the cluster's `timeout`; without it, this node allows its share.
//!
//! Zones that need no engine are asked first, and count only once all agree, as in nginx. The engine counts a request in all of its zones or
//! in none. Zones of different clusters are asked one after the other. Before: `limit_req` and `limit_conn`, which begin this; next:
//! `millstream-cluster`'s `limit_door`.

use super::limit_req::{LONGEST_KEY, Together, decide, delayed, longest, zone};
use super::{Ruling, limit_conn, with_key};
use crate::limit_zone::Seat;
use crate::limit_zone::connections::Refused;
use crate::limit_zone::requests::{RequestZone, Said};
use crate::request::Request;
use millstream_cluster::{ExactRequest, KeyHash, LimitDoor, RequestVerdict};
use millstream_conf::model::RequestLimits;
use millstream_net::clock;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;

/// A request that zones of `limit_req` have held, until the engine has decided.
#[derive(Debug)]
pub struct Asking {
    held: SmallVec<[HeldSeat; 2]>,
    asked: SmallVec<[(usize, KeyHash); 2]>,
}

/// A key of a zone that agrees; released unless it is counted.
#[derive(Debug)]
struct HeldSeat {
    limit: usize,
    zone: Arc<RequestZone>,
    seat: Option<Seat>,
}

impl Drop for HeldSeat {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.zone.release(seat);
        }
    }
}

/// Unless it was counted already.
pub(super) fn pass(request: &mut Request, settings: &RequestLimits) -> Ruling {
    if request.limited.requests.is_some() {
        return Ruling::Passes;
    }
    let now = clock::now();
    match Asking::begin(request, settings, now) {
        Ok(asking) => Ruling::Asks(Box::new(asking)),
        Err(together) => decide(request, settings, together, now),
    }
}

impl Asking {
    /// The error is a decision that needs no engine.
    fn begin(request: &Request, settings: &RequestLimits, now: Instant) -> Result<Asking, Together> {
        let mut asking = Asking { held: SmallVec::new(), asked: SmallVec::new() };
        for (number, limit) in settings.limits.iter().enumerate() {
            let zone = zone(request, limit);
            if let Some(door) = exact(zone) {
                let hash = with_key(&limit.key, LONGEST_KEY, request, |key| door.hash(key));
                asking.asked.extend(hash.map(|hash| (number, hash)));
                continue;
            }
            let ask = |key: &[u8]| zone.ask(key, limit.burst, false, now);
            if let Some(said) = with_key(&limit.key, LONGEST_KEY, request, ask) {
                asking.hold(number, zone, said)?;
            }
        }
        match (asking.held.is_empty(), asking.asked.is_empty()) {
            (true, true) => Err(Together::Uncounted),
            (false, true) => Err(asking.count(request, settings, SmallVec::new(), now)),
            _ => Ok(asking),
        }
    }

    pub async fn decided(mut self: Box<Self>, request: &mut Request) -> Ruling {
        let generation = request.generation.clone();
        let settings = &generation.http().location(request.route.location).settings.limit_req;
        let together = match self.ask(request, settings).await {
            Ok(excesses) => self.count(request, settings, excesses, clock::now()),
            Err(refused) => refused,
        };
        decide(request, settings, together, clock::now())
    }

    /// Asks the engine of each cluster; returns each limit with its excess.
    async fn ask(
        &mut self,
        request: &Request,
        settings: &RequestLimits,
    ) -> Result<SmallVec<[(usize, i64); 2]>, Together> {
        let mut excesses = SmallVec::new();
        let mut left = std::mem::take(&mut self.asked);
        while let Some((number, _)) = left.first() {
            let Some(first) = exact(zone(request, &settings.limits[*number])).cloned() else { break };
            let is_beside = |(number, _): &(usize, KeyHash)| {
                exact(zone(request, &settings.limits[*number])).is_some_and(|door| door.is_beside(&first))
            };
            let (together, others): (SmallVec<[_; 2]>, _) = left.into_iter().partition(is_beside);
            left = others;
            let asked: SmallVec<[ExactRequest<'_>; 2]> = together
                .iter()
                .filter_map(|(number, key)| {
                    let limit = &settings.limits[*number];
                    let zone = zone(request, limit);
                    let door = exact(zone)?;
                    Some(ExactRequest { door, key: *key, rate: zone.rate(), burst: limit.burst })
                })
                .collect();
            match first.ask(&asked).await {
                Some(RequestVerdict::Counted(counted)) => {
                    for ((number, key), excess) in together.iter().zip(counted) {
                        zone(request, &settings.limits[*number]).counted_elsewhere(key);
                        excesses.push((*number, excess));
                    }
                }
                Some(RequestVerdict::TooMuch { at, excess }) => {
                    return Err(Together::Refused { limit: together[at].0, excess: Some(excess) });
                }
                None => self.ask_here(request, settings, &together)?,
            }
        }
        Ok(excesses)
    }

    /// The engine does not respond.
    fn ask_here(
        &mut self,
        request: &Request,
        settings: &RequestLimits,
        asked: &[(usize, KeyHash)],
    ) -> Result<(), Together> {
        let now = clock::now();
        for (number, key) in asked {
            let limit = &settings.limits[*number];
            let zone = zone(request, limit);
            if let Some(door) = exact(zone) {
                self.hold(*number, zone, zone.ask_shared(door, key, limit.burst, false, now))?;
            }
        }
        Ok(())
    }

    fn hold(&mut self, limit: usize, zone: &Arc<RequestZone>, said: Said) -> Result<(), Together> {
        match said {
            Said::Held(seat) => self.held.push(HeldSeat { limit, zone: zone.clone(), seat: Some(seat) }),
            Said::TooMuch(excess) => return Err(Together::Refused { limit, excess: Some(excess) }),
            Said::Full => return Err(Together::Refused { limit, excess: None }),
            // Only if it was asked as the last.
            Said::Counted(_) => {}
        }
        Ok(())
    }

    /// All agree.
    fn count(
        &mut self,
        request: &Request,
        settings: &RequestLimits,
        excesses: SmallVec<[(usize, i64); 2]>,
        now: Instant,
    ) -> Together {
        let limits = &settings.limits;
        let by_engine = excesses.into_iter().map(|(number, excess)| {
            let limit = &limits[number];
            (number, excess, zone(request, limit).wait_together(delayed(limit, excess)))
        });
        let here = self.held.iter_mut().rev().filter_map(|held| {
            let excess = held.zone.count(held.seat.take()?, now);
            Some((held.limit, excess, held.zone.wait_for(delayed(&limits[held.limit], excess), now)))
        });
        longest(by_engine.chain(here))
    }
}

fn exact(zone: &RequestZone) -> Option<&Arc<LimitDoor>> {
    zone.door().filter(|door| door.is_exact())
}

/// A request that waits for the engine to count it as under way.
#[derive(Debug)]
pub struct Beginning(Vec<(usize, KeyHash)>);

impl Beginning {
    pub(super) fn new(asked: Vec<(usize, KeyHash)>) -> Beginning {
        Beginning(asked)
    }

    pub async fn decided(self: Box<Self>, request: &mut Request) -> Ruling {
        let generation = request.generation.clone();
        let settings = &generation.http().location(request.route.location).settings.limit_conn;
        for (number, key) in self.0 {
            let limit = &settings.limits[number];
            let zone = &generation.shared.zones.connections[limit.zone.0 as usize];
            let Some(door) = zone.door() else { continue };
            let entered = match door.begin(&key, limit.most).await {
                Some(true) => zone.enter_counted(&key).inspect_err(|_| door.end(&key)),
                Some(false) => Err(Refused::TooMany),
                None => zone.enter_shared(door, &key, limit.most),
            };
            match entered {
                Ok(under_way) => limit_conn::entered(request, limit, under_way),
                Err(refused) => return limit_conn::refused(request, settings, limit, refused),
            }
        }
        Ruling::Passes
    }
}
