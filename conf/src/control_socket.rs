//! The `control_socket`: a server of its own on a Unix socket, with the API in its only location.
//!
//! It inherits nothing of the http block, so that no `return` or `error_page` there can stand before it. Nothing is
//! opened here. Before: `directives/api`, which reads the directive; next: `configuration`, which calls this.

use std::path::Path;
use std::time::Duration;

use crate::inherit::Level;
use crate::listeners::shown;
use crate::model::{
    ErrorLog, ListenAddress, Listener, Location, LocationId, LocationMatch, LocationTree, Network, Server,
    ServerId, ServerName,
};
use crate::reading::Reading;
use crate::resolve;
use crate::source::Span;

/// Puts the socket's listener, server and location behind all others; `span` is where it was written, or the default
/// span where it was not.
pub fn add(path: &Path, span: Span, error_logs: &[ErrorLog], reading: &mut Reading<'_>) {
    let address = ListenAddress::Unix(path.to_path_buf());
    if let Some(taken) = reading.http.listeners.iter().find(|listener| listener.address == address) {
        let taken = taken.span;
        return reading.duplicate(taken, format!("{} is the control_socket", shown(&address)), span);
    }
    let server = server(span, error_logs, reading);
    reading.http.servers.push(server);
    let server = ServerId(reading.http.servers.len() as u32 - 1);
    reading.http.listeners.push(Listener {
        address,
        span,
        ssl: false,
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

fn server(span: Span, error_logs: &[ErrorLog], reading: &mut Reading<'_>) -> Server {
    let level = Level {
        access_logs: Some(None),
        error_logs: Some(error_logs.to_vec()),
        api_allow: Some(vec![(Network::Unix, span)]),
        ..Level::default()
    };
    let own = location(&level, LocationMatch::Server, span, reading);
    let level = Level { api: Some((true, span)), ..level };
    let matches = LocationMatch::Prefix { path: "/".to_owned(), no_regex: false };
    let all = location(&level, matches, span, reading);
    Server {
        span,
        name: String::new(),
        names: vec![ServerName::Exact(String::new())],
        own,
        locations: LocationTree { prefixes: vec![("/".to_owned(), all)], ..LocationTree::default() },
        tls: None,
        status_zone: None,
        client_header_timeout: Duration::from_secs(60),
        client_header_buffer_size: 1024,
        large_client_header_buffers: (4, 8192),
        merge_slashes: true,
    }
}

fn location(level: &Level, matches: LocationMatch, span: Span, reading: &mut Reading<'_>) -> LocationId {
    let settings = resolve::settings(level, &matches, reading);
    reading.http.locations.push(Location { matches, span, nested: LocationTree::default(), settings });
    LocationId(reading.http.locations.len() as u32 - 1)
}
