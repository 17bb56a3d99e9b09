//! `limit_conn`: the zones of a location count a request from here to its end.
//!
//! Where one of them refuses it, the others forget it at once. Before: `limit_zone/connections`.

use super::{Ruling, with_key};
use crate::counting;
use crate::failure;
use crate::limit_zone::connections::{Refused, UnderWay};
use crate::limit_zone::passed::ConnectionLimited;
use crate::request::Request;
use millstream_cluster::KeyHash;
use millstream_conf::model::{ConnectionLimit, ConnectionLimits};

/// Longer keys are not counted, as in nginx.
const LONGEST_KEY: usize = 255;

/// What the engine is to decide, it leaves in `exact`: each limit with the hash of its key.
pub(super) fn pass(
    request: &mut Request,
    settings: &ConnectionLimits,
    exact: &mut Vec<(usize, KeyHash)>,
) -> Ruling {
    if request.limited.connections.is_some() {
        return Ruling::Passes;
    }
    for (number, limit) in settings.limits.iter().enumerate() {
        let zone = request.generation.shared.zones.connections[limit.zone.0 as usize].clone();
        let door = zone.door().filter(|door| settings.is_exact && door.is_exact());
        if let Some(door) = door {
            let hash = with_key(&limit.key, LONGEST_KEY, request, |key| door.hash(key));
            exact.extend(hash.map(|hash| (number, hash)));
            continue;
        }
        match with_key(&limit.key, LONGEST_KEY, request, |key| zone.enter(key, limit.most)) {
            None => {}
            Some(Ok(under_way)) => entered(request, limit, under_way),
            Some(Err(refused)) => return self::refused(request, settings, limit, refused),
        }
    }
    Ruling::Passes
}

pub(super) fn entered(request: &mut Request, limit: &ConnectionLimit, under_way: UnderWay) {
    request.limited.connections = Some(ConnectionLimited::Passed);
    request.limited.under_way.push(under_way);
    counting::connection_limited(request, limit.zone, ConnectionLimited::Passed.outcome());
}

pub(super) fn refused(
    request: &mut Request,
    settings: &ConnectionLimits,
    limit: &ConnectionLimit,
    refused: Refused,
) -> Ruling {
    request.limited.under_way.clear();
    let too_much = &settings.too_much;
    let made = if too_much.dry_run { ConnectionLimited::RejectedDryRun } else { ConnectionLimited::Rejected };
    request.limited.connections = Some(made);
    counting::connection_limited(request, limit.zone, made.outcome());
    if refused == Refused::TooMany {
        let zone = &request.generation.http().connection_zones[limit.zone.0 as usize].zone.name;
        let dry_run = if too_much.dry_run { ", dry run," } else { "" };
        let what = format_args!("limiting connections{dry_run} by zone \"{zone}\"");
        failure::log(request, too_much.log_level, what);
    }
    if too_much.dry_run { Ruling::Passes } else { Ruling::Refused(too_much.status) }
}
