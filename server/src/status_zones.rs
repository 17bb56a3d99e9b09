//! Under which numbers requests are counted: in the zone of their server, in that of their location, in that of their cache.
//!
//! Numbers are given when a configuration is loaded and stay with their names over reloads. Next: `counting`, which counts.

use millstream_conf::model::{
    CacheZoneId, ConnectionZoneId, Http, LocationId, LocationMatch, RequestZoneId, Server, ServerId,
    StatusZone,
};
use millstream_telemetry::metrics::Registry;

/// For what is not counted.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub struct StatusZones {
    /// One per `Http::servers`.
    servers: Vec<u32>,
    /// One per `Http::locations`.
    locations: Vec<u32>,
    /// One per `Http::cache_zones`.
    caches: Vec<u32>,
    /// One per `Http::request_zones`.
    request_limits: Vec<u32>,
    /// One per `Http::connection_zones`.
    connection_limits: Vec<u32>,
}

impl StatusZones {
    pub fn of(http: &Http, registry: &Registry) -> StatusZones {
        let servers = http.servers.iter().map(|server| match &server.status_zone {
            StatusZone::Off => NOWHERE,
            StatusZone::Named(name) => registry.server(name),
            StatusZone::Unnamed => registry.server(shown(server)),
        });
        let servers = servers.collect();
        let mut locations = vec![NOWHERE; http.locations.len()];
        for server in &http.servers {
            for id in http.locations_of(server) {
                let location = http.location(id);
                locations[id.0 as usize] = match &location.settings.status_zone {
                    StatusZone::Off => NOWHERE,
                    StatusZone::Named(name) => registry.location(name),
                    StatusZone::Unnamed => registry.location(&location_name(server, &location.matches)),
                };
            }
        }
        let caches = http.cache_zones.iter().map(|zone| registry.cache(&zone.name)).collect();
        let requests = http.request_zones.iter().map(|zone| registry.request_limit(&zone.zone.name));
        let connections = http.connection_zones.iter().map(|zone| registry.connection_limit(&zone.zone.name));
        StatusZones {
            servers,
            locations,
            caches,
            request_limits: requests.collect(),
            connection_limits: connections.collect(),
        }
    }

    pub fn server(&self, id: ServerId) -> u32 {
        number(&self.servers, id.0)
    }

    pub fn cache(&self, id: CacheZoneId) -> u32 {
        number(&self.caches, id.0)
    }

    pub fn request_limit(&self, id: RequestZoneId) -> u32 {
        number(&self.request_limits, id.0)
    }

    pub fn connection_limit(&self, id: ConnectionZoneId) -> u32 {
        number(&self.connection_limits, id.0)
    }

    pub fn location(&self, id: LocationId) -> u32 {
        number(&self.locations, id.0)
    }
}

fn number(numbers: &[u32], index: u32) -> u32 {
    numbers.get(index as usize).copied().unwrap_or(NOWHERE)
}

fn shown(server: &Server) -> &str {
    if server.name.is_empty() { "_" } else { &server.name }
}

/// Such as `example.com /api/`.
pub fn location_name(server: &Server, matches: &LocationMatch) -> String {
    let server = shown(server);
    match matches {
        LocationMatch::Server => server.to_owned(),
        LocationMatch::Exact(path) => format!("{server} = {path}"),
        LocationMatch::Prefix { path, .. } => format!("{server} {path}"),
        LocationMatch::Regex(regex) => format!("{server} ~ {}", regex.source),
        LocationMatch::Named(name) => format!("{server} {name}"),
    }
}
