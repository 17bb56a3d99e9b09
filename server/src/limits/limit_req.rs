//! `limit_req`: the zones of a location are asked one after the other, and each must let the request in.
//!
//! Only once all have agreed it is counted in them; the longest delay is the request's. Before: `limit_zone/requests`, which does
//! the arithmetic.

use super::{Ruling, with_key};
use crate::counting;
use crate::failure;
use crate::limit_zone::Seat;
use crate::limit_zone::passed::RequestLimited;
use crate::limit_zone::requests::{RequestZone, Said};
use crate::request::Request;
use millstream_conf::model::{Level, RequestLimit, RequestLimits};
use millstream_net::clock;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer keys are not counted, as in nginx.
pub(super) const LONGEST_KEY: usize = 65535;

pub(super) enum Together {
    /// By no zone.
    Uncounted,
    /// With the limit of the longest delay.
    Counted { limit: usize, excess: i64, delay: u64 },
    /// `None`: the zone is full.
    Refused { limit: usize, excess: Option<i64> },
}

/// Unless it was counted already.
pub(super) fn pass(request: &mut Request, settings: &RequestLimits) -> Ruling {
    if settings.limits.is_empty() || request.limited.requests.is_some() {
        return Ruling::Passes;
    }
    let now = clock::now();
    let together = ask(request, &settings.limits, now);
    decide(request, settings, together, now)
}

pub(super) fn decide(
    request: &mut Request,
    settings: &RequestLimits,
    together: Together,
    now: Instant,
) -> Ruling {
    let decided = match together {
        Together::Uncounted => return Ruling::Passes,
        Together::Counted { limit, .. } | Together::Refused { limit, .. } => limit,
    };
    let ruling = rule(request, settings, together, now);
    if let Some(made) = request.limited.requests {
        counting::request_limited(request, settings.limits[decided].zone, made.outcome());
    }
    ruling
}

fn rule(request: &mut Request, settings: &RequestLimits, together: Together, now: Instant) -> Ruling {
    let dry_run = settings.too_much.dry_run;
    match together {
        Together::Uncounted => Ruling::Passes,
        Together::Counted { delay: 0, .. } => {
            request.limited.requests = Some(RequestLimited::Passed);
            Ruling::Passes
        }
        Together::Counted { limit, excess, delay } => {
            let level = less_severe(settings.too_much.log_level);
            log(request, level, Event::Delaying, dry_run, excess, &settings.limits[limit]);
            if dry_run {
                request.limited.requests = Some(RequestLimited::DelayedDryRun);
                return Ruling::Passes;
            }
            request.limited.requests = Some(RequestLimited::Delayed);
            Ruling::Until(now + Duration::from_millis(delay))
        }
        Together::Refused { limit, excess } => {
            if let Some(excess) = excess {
                let level = settings.too_much.log_level;
                log(request, level, Event::Limiting, dry_run, excess, &settings.limits[limit]);
            }
            if dry_run {
                request.limited.requests = Some(RequestLimited::RejectedDryRun);
                return Ruling::Passes;
            }
            request.limited.requests = Some(RequestLimited::Rejected);
            Ruling::Refused(settings.too_much.status)
        }
    }
}

fn ask(request: &Request, limits: &[RequestLimit], now: Instant) -> Together {
    let mut held: SmallVec<[(usize, Seat); 4]> = SmallVec::new();
    let mut last = None;
    for (number, limit) in limits.iter().enumerate() {
        let zone = zone(request, limit);
        let is_last = number + 1 == limits.len();
        let said = with_key(&limit.key, LONGEST_KEY, request, |key| zone.ask(key, limit.burst, is_last, now));
        match said {
            None => {}
            Some(Said::Held(seat)) => held.push((number, seat)),
            Some(Said::Counted(excess)) => last = Some((number, excess)),
            Some(refused @ (Said::TooMuch(_) | Said::Full)) => {
                held.iter().for_each(|(number, seat)| self::zone(request, &limits[*number]).release(*seat));
                let excess = if let Said::TooMuch(excess) = refused { Some(excess) } else { None };
                return Together::Refused { limit: number, excess };
            }
        }
    }
    if last.is_none() && held.is_empty() {
        return Together::Uncounted;
    }
    // The later a zone was asked, the sooner its delay counts: of equal ones that of the later stands, as in nginx.
    let counted = held.iter().rev().map(|(number, seat)| {
        let excess = zone(request, &limits[*number]).count(*seat, now);
        (*number, excess)
    });
    longest(last.into_iter().chain(counted).map(|(number, excess)| {
        let limit = &limits[number];
        (number, excess, zone(request, limit).wait_for(delayed(limit, excess), now))
    }))
}

/// What of an excess is to wait.
pub(super) fn delayed(limit: &RequestLimit, excess: i64) -> i64 {
    excess.saturating_sub_unsigned(limit.undelayed).max(0)
}

/// Of limits with their excess and delay.
pub(super) fn longest(counted: impl Iterator<Item = (usize, i64, u64)>) -> Together {
    let mut longest = (0, 0, 0);
    for (number, excess, delay) in counted {
        if delay > longest.2 {
            longest = (number, excess, delay);
        }
    }
    Together::Counted { limit: longest.0, excess: longest.1, delay: longest.2 }
}

pub(super) fn zone<'r>(request: &'r Request, limit: &RequestLimit) -> &'r Arc<RequestZone> {
    &request.generation.shared.zones.requests[limit.zone.0 as usize]
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Limiting,
    Delaying,
}

/// nginx's wording, which tools search for.
fn log(request: &Request, level: Level, event: Event, dry_run: bool, excess: i64, limit: &RequestLimit) {
    let zone = &request.generation.http().request_zones[limit.zone.0 as usize].zone.name;
    let dry_run = if dry_run { ", dry run" } else { "" };
    let (whole, thousandths) = (excess / 1000, excess % 1000);
    match event {
        Event::Limiting => {
            let what = format_args!(
                "limiting requests{dry_run}, excess: {whole}.{thousandths:03} by zone \"{zone}\""
            );
            failure::log(request, level, what);
        }
        Event::Delaying => {
            let what = format_args!(
                "delaying request{dry_run}, excess: {whole}.{thousandths:03}, by zone \"{zone}\""
            );
            failure::log(request, level, what);
        }
    }
}

fn less_severe(level: Level) -> Level {
    match level {
        Level::Error => Level::Warn,
        Level::Warn => Level::Notice,
        _ => Level::Info,
    }
}
