//! Servers of our own: that of the `control_socket` and that of the `dashboard`, each with the API in its only location.
//!
//! They inherit nothing of the http block but who may, so that no `return` or `error_page` there can stand before them. Nothing is
//! opened here. Before: `features/api` and `features/dashboard`, which read the directives; next: `configuration`, which calls this.

use std::path::Path;
use std::sync::Arc;

use crate::advise;
use crate::features::Level;
use crate::features::api::{ApiLevel, OwnApi};
use crate::features::gzip::{GzipLevel, GzipProxied};
use crate::features::listen::ListenDraft;
use crate::features::logs::LogsLevel;
use crate::features::right::{Allowed, RightLevel, Write};
use crate::features::status_zone::StatusZoneLevel;
use crate::listeners::{self, shown};
use crate::model::{
    ErrorLog, Http, ListenAddress, Listener, Location, LocationId, LocationMatch, LocationTree, Network,
    Server, ServerId, ServerName, StatusZone,
};
use crate::reading::Reading;
use crate::source::Span;

/// Types of the dashboard's responses that are compressed.
const TEXTS: [&str; 4] = ["text/css", "text/javascript", "application/json", "text/plain"];

/// Puts the listener, server and location of the `control_socket` after all others; `span` is where it was
/// written, or the default.
pub fn control_socket(
    path: &Path,
    span: Span,
    error_logs: &[ErrorLog],
    http: &mut Http,
    reading: &mut Reading<'_>,
) {
    let address = ListenAddress::Unix(path.to_path_buf());
    let right = RightLevel { allow: Some(vec![(Allowed::Of(Network::Unix), span)]), token: None };
    let own = OwnApi { write: Write::On, is_dashboard: false, span };
    let level = level(error_logs, ApiLevel { own: Some(own), right, ..ApiLevel::default() });
    let listener = Listener { backlog: 16, owner_only: true, ..listener(address, span) };
    add("control_socket", level, listener, http, reading);
}

/// The same for the `dashboard` of the http level, if any. Rights come from that level.
pub fn dashboard(above: &Level, error_logs: &[ErrorLog], http: &mut Http, reading: &mut Reading<'_>) {
    let Some(dashboard) = &above.api.dashboard else { return };
    let (address, span) = (ListenAddress::Tcp(dashboard.address), dashboard.span);
    let own = OwnApi { write: dashboard.write, is_dashboard: true, span };
    let right = above.api.right.clone();
    let mut level = level(error_logs, ApiLevel { own: Some(own), right, ..ApiLevel::default() });
    level.gzip = GzipLevel {
        enabled: Some(true),
        types: Some(TEXTS.map(str::to_owned).to_vec()),
        vary: Some(true),
        proxied: Some(GzipProxied { any: true, ..GzipProxied::default() }),
        ..GzipLevel::default()
    };
    let listener = Listener { optional: dashboard.optional, ..listener(address.clone(), span) };
    if add("dashboard", level, listener, http, reading) {
        http.dashboard = Some(address);
    }
}

fn listener(address: ListenAddress, span: Span) -> Listener {
    listeners::listener(&ListenDraft::new(address, span), ServerId(0))
}

/// The directives of the only location, as if they were written.
fn level(error_logs: &[ErrorLog], api: ApiLevel) -> Level {
    Level {
        logs: LogsLevel { access: Some(None), error: Some(error_logs.to_vec()), ..LogsLevel::default() },
        api,
        // Whoever looks at the figures is not in them.
        status_zone: StatusZoneLevel::off(),
        ..Level::default()
    }
}

/// False if the address is in use already.
fn add(name: &str, mut level: Level, listener: Listener, http: &mut Http, reading: &mut Reading<'_>) -> bool {
    let span = listener.span;
    if let Some(taken) = http.listeners.iter().find(|other| other.address == listener.address) {
        let taken = taken.span;
        reading.duplicate(taken, format!("{} is the {name}", shown(&listener.address)), span);
        return false;
    }
    let api = level.api.own.take();
    let own = location(&level, LocationMatch::Server, span, http, reading);
    let settings = level.server_settings(reading);
    level.api.own = api;
    let matches = LocationMatch::Prefix { path: "/".to_owned(), no_regex: false };
    let all = location(&level, matches, span, http, reading);
    http.servers.push(Server {
        span,
        name: String::new(),
        names: vec![ServerName::Exact(String::new())],
        own,
        locations: LocationTree { prefixes: vec![("/".to_owned(), all)], ..LocationTree::default() },
        settings,
        status_zone: StatusZone::Off,
        acme: None,
    });
    let server = ServerId(http.servers.len() as u32 - 1);
    http.listeners.push(Listener { servers: vec![server], default_server: server, ..listener });
    true
}

fn location(
    level: &Level,
    matches: LocationMatch,
    span: Span,
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> LocationId {
    let settings = level.settings(&matches, reading);
    advise::location(level, &settings, reading);
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
