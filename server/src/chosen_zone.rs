//! The zone of a request where `proxy_cache` has variables.
//!
//! A location whose zone is written never comes here. One that leaves the choice to the request has a face for each zone, a location of
//! its own in which that zone is fixed, and no cache itself; to choose a zone is to go to its face. Before: `millstream-conf`'s
//! `zones`, which makes them. Next: `caching/keyed`.

use crate::failure;
use crate::request::Request;
use crate::variables;
use millstream_cache::policy;
use millstream_conf::model::{Level, LocationId, ProxyCache};

/// The location for the zone that a request chooses; `None` without a choice. The error is a status for an
/// unknown zone.
pub fn chosen(request: &Request) -> Result<Option<LocationId>, u16> {
    let location = request.location();
    let Some(zone) = location.settings.pass().and_then(|pass| pass.chosen_zone.as_ref()) else {
        return Ok(None);
    };
    let name = variables::value(zone, request);
    if let Some((_, face)) = location.zones.iter().find(|(zone, _)| zone.as_bytes() == name) {
        return Ok(Some(*face));
    }
    // As in nginx, it does not matter what requests name that are passed on in any case.
    let is_passed_on = any(request).is_some_and(|(_, cache)| !policy::looks_up(cache, request.method));
    if name.is_empty() || name == b"off" || is_passed_on {
        return Ok(None);
    }
    let name = String::from_utf8_lossy(&name);
    failure::log(request, Level::Error, format_args!("cache \"{name}\" not found"));
    Err(500)
}

/// Caches that the location's requests may use, the request's own first.
pub fn caches(request: &Request) -> impl Iterator<Item = &ProxyCache> {
    let location = request.location();
    let own = location.settings.cache();
    let others = location.zones.iter().filter_map(|(_, face)| of(request, *face));
    own.into_iter().chain(others.filter(move |other| own.is_none_or(|own| own.zone != other.zone)))
}

pub fn any(request: &Request) -> Option<(LocationId, &ProxyCache)> {
    let (_, face) = request.location().zones.first()?;
    Some((*face, of(request, *face)?))
}

fn of(request: &Request, face: LocationId) -> Option<&ProxyCache> {
    request.generation.http().location(face).settings.cache()
}
