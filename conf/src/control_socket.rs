//! The `control_socket`: a server of its own on a Unix socket, with the API in its only location.
//!
//! It inherits nothing of the http block, so that no `return` or `error_page` there can stand before it. Nothing is
//! opened here. Before: `features/api`, which reads the directive; next: `configuration`, which calls this.

use std::path::Path;
use std::sync::Arc;

use crate::features::Level;
use crate::features::api::ApiLevel;
use crate::features::logs::LogsLevel;
use crate::features::right::RightLevel;
use crate::features::status_zone::StatusZoneLevel;
use crate::listeners::shown;
use crate::model::{
    ErrorLog, Http, ListenAddress, Listener, Location, LocationId, LocationMatch, LocationTree, Network,
    Server, ServerId, ServerName, StatusZone,
};
use crate::reading::Reading;
use crate::source::Span;

/// Puts the socket's listener, server and location behind all others; `span` is where it was written, or the default
/// span where it was not.
pub fn add(path: &Path, span: Span, error_logs: &[ErrorLog], http: &mut Http, reading: &mut Reading<'_>) {
    let address = ListenAddress::Unix(path.to_path_buf());
    if let Some(taken) = http.listeners.iter().find(|listener| listener.address == address) {
        let taken = taken.span;
        return reading.duplicate(taken, format!("{} is the control_socket", shown(&address)), span);
    }
    let server = server(span, error_logs, http, reading);
    http.servers.push(server);
    let server = ServerId(http.servers.len() as u32 - 1);
    http.listeners.push(Listener {
        address,
        span,
        ssl: false,
        proxy_protocol: false,
        backlog: 16,
        reuseport: false,
        deferred: false,
        sndbuf: None,
        rcvbuf: None,
        so_keepalive: None,
        ipv6only: true,
        owner_only: true,
        servers: vec![server],
        default_server: server,
    });
}

fn server(span: Span, error_logs: &[ErrorLog], http: &mut Http, reading: &mut Reading<'_>) -> Server {
    let right = RightLevel { allow: Some(vec![(Network::Unix, span)]), token: None };
    let mut level = Level {
        logs: LogsLevel { access: Some(None), error: Some(error_logs.to_vec()), ..LogsLevel::default() },
        api: ApiLevel { own: None, right },
        ..Level::default()
    };
    // Whoever looks at the figures is not in them.
    level.status_zone = StatusZoneLevel::off();
    let own = location(&level, LocationMatch::Server, span, http, reading);
    let settings = level.server_settings(reading);
    level.api.own = Some((true, span));
    let matches = LocationMatch::Prefix { path: "/".to_owned(), no_regex: false };
    let all = location(&level, matches, span, http, reading);
    Server {
        span,
        name: String::new(),
        names: vec![ServerName::Exact(String::new())],
        own,
        locations: LocationTree { prefixes: vec![("/".to_owned(), all)], ..LocationTree::default() },
        settings,
        status_zone: StatusZone::Off,
    }
}

fn location(
    level: &Level,
    matches: LocationMatch,
    span: Span,
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> LocationId {
    let settings = level.settings(&matches, reading);
    http.locations.push(Location {
        matches,
        span,
        nested: LocationTree::default(),
        settings,
        faces: Vec::new(),
        zones: Arc::from([]),
        except: None,
    });
    LocationId(http.locations.len() as u32 - 1)
}
