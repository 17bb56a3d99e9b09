//! Reads the tree from the top: the main level, events, http and its upstreams.
//!
//! Every block is read to its end whatever is wrong in it, so that one run finds all errors. In the http block what
//! others name (upstreams, zones, formats) is declared in a pass of its own, so that order in the file does not matter
//! (but for formats, where it does in nginx).
//! Next: `locations`, which reads server and location blocks; `load`, which calls this.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::block::{blocks, checked, inside, set};
use crate::declared::Kind;
use crate::features::context::Context;
use crate::features::{Apply, Level, acme, api, cluster, dashboard, made, purge_at, upstream};
use crate::listeners;
use crate::model::{ErrorLog, Http, KeepaliveSize, Main, UNKNOWN_SERVICE};
use crate::reading::Reading;
use crate::tree::Directive;
use crate::{check, locations, own_server};

#[derive(Debug)]
pub struct Defaults {
    pub error_log: ErrorLog,
    /// Whether there is a `control_socket` beside the pid file.
    pub control_socket: bool,
}

pub fn read(tree: &[Directive], defaults: Defaults, reading: &mut Reading<'_>) -> (Main, Http) {
    let mut main = Main { pid: reading.path("logs/nginx.pid"), ..Main::default() };
    let rows = checked(tree, Context::Main, reading);
    for (row, directive) in &rows {
        match row.apply {
            Apply::Main(apply) => apply(&mut main, directive, reading),
            Apply::Block(Context::Events) => events(directive, &mut main, reading),
            _ => {}
        }
    }
    if main.error_logs.is_empty() {
        main.error_logs.push(defaults.error_log);
    }
    if blocks(&rows, Context::Events).next().is_none() {
        reading
            .diagnostics
            .error_nowhere("no \"events\" section in configuration")
            .help("write events { } outside the http block");
    }
    let socket =
        rows.iter().find(|(row, _)| row.name == "control_socket").map(|(_, directive)| directive.span);
    if socket.is_none() && defaults.control_socket {
        main.control_socket = default_socket(&main.pid, reading);
    }
    let mut whole = Http::default();
    for (_, directive) in blocks(&rows, Context::Http) {
        http(directive, &main, &mut whole, reading);
        if let Some(path) = &main.control_socket {
            own_server::control_socket(
                path,
                socket.unwrap_or_default(),
                &main.error_logs,
                &mut whole,
                reading,
            );
        }
    }
    let declared = std::mem::take(&mut reading.declared);
    whole.upstreams = declared.upstreams;
    whole.resolvers = declared.resolvers;
    whole.cache_zones = declared.cache_zones;
    whole.log_files = declared.log_files;
    whole.log_groups = declared.log_groups;
    whole.made = declared.made;
    whole.charsets = declared.charsets;
    whole.conversions = declared.conversions;
    whole.request_zones = declared.request_zones;
    whole.connection_zones = declared.connection_zones;
    whole.otel_exporter = declared.otel_exporter;
    whole.otel_resource = declared.otel_resource;
    whole.clusters = declared.clusters;
    whole.acme_issuers = declared.acme_issuers;
    whole.acme_certificates = declared.acme_certificates;
    match declared.otel_service_name {
        Some(name) => _ = whole.otel_resource.insert("service.name".into(), name),
        None => {
            _ = whole.otel_resource.entry("service.name".into()).or_insert_with(|| UNKNOWN_SERVICE.into())
        }
    }
    (main, whole)
}

/// A pid file with a long path is no mistake, so there is a warning and no socket.
fn default_socket(pid: &Path, reading: &mut Reading<'_>) -> Option<PathBuf> {
    let path = api::default_socket(pid)?;
    let Some(wrong) = api::wrong_socket_path(&path) else { return Some(path) };
    reading
        .diagnostics
        .warning_nowhere(format!("{wrong}, so there is no control socket"))
        .help("write control_socket /run/millstream.sock; or control_socket off; outside the http block");
    None
}

fn events(directive: &Directive, main: &mut Main, reading: &mut Reading<'_>) {
    for (row, directive) in checked(inside(directive), Context::Events, reading) {
        if let Apply::Main(apply) = row.apply {
            apply(main, directive, reading);
        }
    }
}

fn http(directive: &Directive, main: &Main, http: &mut Http, reading: &mut Reading<'_>) {
    let rows = checked(inside(directive), Context::Http, reading);
    for (_, directive) in rows.iter().filter(|(row, _)| matches!(row.apply, Apply::Make(_))) {
        made::name(directive, reading);
    }
    for (row, directive) in &rows {
        if let Apply::Make(make) = row.apply {
            made::read(make, directive, reading);
        }
    }
    made::refuse_cycles(reading);
    for (place, (row, directive)) in rows.iter().enumerate() {
        reading.place = place;
        match row.apply {
            Apply::Declare(declare) | Apply::DeclareLines(declare) => declare(directive, reading),
            Apply::Block(Context::Upstream) => upstream(directive, reading),
            Apply::Block(Context::AcmeIssuer) => issuer(directive, reading),
            _ => {}
        }
    }
    cluster::settle(reading);
    let mut level = Level::default();
    for (place, (row, directive)) in rows.iter().enumerate() {
        reading.place = place;
        set(&mut level, row, directive, reading);
    }
    upstream::settle(&level, reading);
    acme::settle(&level, reading);
    purge_at::refuse_outside(&level, reading);
    level.logs.default_logs(&main.error_logs, reading);
    let mut drafts = Vec::new();
    for (place, (row, directive)) in rows.iter().enumerate() {
        if matches!(row.apply, Apply::Block(Context::Server)) {
            reading.place = place;
            drafts.push(locations::server(directive, &level, http, reading));
        }
    }
    http.listeners = listeners::collect(&drafts, reading);
    dashboard::refuse_open(&level, reading);
    own_server::dashboard(&level, &main.error_logs, http, reading);
    check::whole(http, reading);
}

fn issuer(directive: &Directive, reading: &mut Reading<'_>) {
    let mut draft = acme::IssuerDraft::default();
    for (row, directive) in checked(inside(directive), Context::AcmeIssuer, reading) {
        if let Apply::Issuer(apply) = row.apply {
            apply(&mut draft, directive, reading);
        }
    }
    acme::declare(directive, draft, reading);
}

fn upstream(directive: &Directive, reading: &mut Reading<'_>) {
    let name = &directive.args[0];
    let mut group = upstream::empty(&name.text, directive.span, false);
    let mut any = false;
    for (row, directive) in checked(inside(directive), Context::Upstream, reading) {
        if let Apply::Upstream(apply) = row.apply {
            apply(&mut group, directive, reading);
        }
        any |= row.name == "server";
    }
    if !any && group.state.is_none() {
        reading
            .error(directive.span, "no servers are inside upstream")
            .help("write at least one, as in server 127.0.0.1:8000;");
    } else if !group.servers.is_empty() && group.servers.iter().all(|server| server.backup) {
        reading
            .error(directive.span, format!("upstream \"{}\" has only backup servers", name.text))
            .help("remove backup from at least one of them");
    }
    upstream::check(&group, reading);
    if group.keepalive.timeout == Duration::ZERO {
        // A connection that may not idle at all is one that is not kept.
        group.keepalive.size = KeepaliveSize::Fixed(0);
    }
    let message = format!("duplicate upstream \"{}\"", name.text);
    if reading.declare(Kind::Upstream, &name.text.to_ascii_lowercase(), directive.span, message) {
        reading.declared.upstreams.push(group);
    }
}
