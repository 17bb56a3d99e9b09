//! The certificates, keys and authorities of a configuration become what handshakes go by, on both sides.
//!
//! It reads files, at start and at a reload, and tells all that is wrong with them. Next: `assemble`, which puts it in force.

use millstream_acme::Acme;
use millstream_acme::stapling::Asked;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::model::{Http, Listener, Location, Server, ServerId, Stapling, Tls, UpstreamTls};
use millstream_conf::source::Span;
use millstream_net::certificate::Certificate;
use millstream_net::clock;
use millstream_net::tls::{self, Clients, ServerTls, TlsAcceptor, TlsConnector};
use millstream_server::generation::{ChooseCertificate, Handshakes, Shared};
use millstream_server::route::server_name::HostTable;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Reads the files. `keeps_offers`: a variable needs what clients offer. Staples of the `previous`
/// configuration are kept.
pub fn read(
    http: &Http,
    acme: &Acme,
    previous: Option<&Shared>,
    keeps_offers: bool,
    findings: &mut Diagnostics,
) -> Handshakes {
    let clients = clients(http, findings);
    let certificates = certificates(http, acme, &clients, findings);
    let before = previous.map(|shared| &shared.handshakes.certificates[..]).unwrap_or_default();
    keep_staples(http, before, &certificates);
    let of_listener = |listener: &Listener| {
        let acceptor = listener.ssl.then(|| acceptor(http, listener, &certificates, keeps_offers)).flatten();
        acceptor.map(|acceptor| acceptor.answering(acme.challenges.clone()))
    };
    let acceptors = http.listeners.iter().map(of_listener).collect();
    Handshakes { acceptors, certificates, clients, connectors: connectors(http, findings) }
}

pub fn key_logs(http: &Http) -> impl Iterator<Item = &Path> {
    let of_servers =
        http.servers.iter().filter_map(|server| server.settings.tls.as_ref()?.key_log.as_deref());
    let of_passes = http.locations.iter().filter_map(|location| {
        let pass = location.settings.pass()?;
        pass.tls()?.settings.key_log.as_deref()
    });
    of_servers.chain(of_passes)
}

/// One per server; `None` if it requests no client certificates.
fn clients(http: &Http, findings: &mut Diagnostics) -> Vec<Option<Arc<Clients>>> {
    let known = |server: &Server| {
        let settings = &server.settings.client_certificate;
        tls::clients(settings).unwrap_or_else(|error| {
            findings.error(settings.span, error.to_string());
            None
        })
    };
    http.servers.iter().map(known).collect()
}

fn certificates(
    http: &Http,
    acme: &Acme,
    clients: &[Option<Arc<Clients>>],
    findings: &mut Diagnostics,
) -> Vec<Option<Arc<ServerTls>>> {
    let mut read = |(server, clients): (&Server, &Option<Arc<Clients>>)| {
        let conf = server.settings.tls.as_ref().filter(|tls| !tls.certificates.is_empty())?;
        let issued = server.acme.map(|id| acme.issued[id.0 as usize].clone());
        ServerTls::read_with(conf, clients.clone(), issued, server.settings.http2.enabled)
            .map_err(|error| _ = findings.error(conf.span, error.to_string()))
            .inspect(|read| {
                tell_out_of_time(read, conf.span, findings);
                tell_unstapled(read, conf, findings);
            })
            .ok()
    };
    http.servers.iter().zip(clients).map(&mut read).collect()
}

/// Warns of certificates that every client refuses today (RFC 5280 §4.1.2.5). nginx serves them silently.
fn tell_out_of_time(read: &ServerTls, span: Span, findings: &mut Diagnostics) {
    let now = clock::wall().seconds;
    for leaf in read.leaves() {
        let Some(certificate) = Certificate::read(&leaf.certificate) else { continue };
        let (from, until) = certificate.validity();
        let mut moment = Vec::new();
        let what = if now > until {
            certificate.write_end(&mut moment);
            "expired on"
        } else if now < from {
            certificate.write_start(&mut moment);
            "is not valid before"
        } else {
            continue;
        };
        let (name, moment) = (leaf.name.display(), String::from_utf8_lossy(&moment));
        findings
            .warning(span, format!("the certificate in \"{name}\" {what} {moment}: clients will reject it"));
    }
}

fn tell_unstapled(read: &ServerTls, conf: &Tls, findings: &mut Diagnostics) {
    let Some(stapling) = conf.stapling.as_ref().filter(|stapling| stapling.file.is_none()) else { return };
    for leaf in read.leaves() {
        if let Err(why) = Asked::about(&leaf, stapling) {
            findings.warning(conf.span, why.about(&leaf.name.display().to_string()));
        }
    }
}

/// Keeps staples over a reload; the thread that fetches them hears of it a moment later.
fn keep_staples(http: &Http, before: &[Option<Arc<ServerTls>>], certificates: &[Option<Arc<ServerTls>>]) {
    let known: HashMap<_, _> = before
        .iter()
        .flatten()
        .flat_map(|server| server.leaves())
        .filter_map(|leaf| Some((leaf.certificate, leaf.stapled?)))
        .collect();
    if known.is_empty() {
        return;
    }
    for (server, certificates) in http.servers.iter().zip(certificates) {
        let asks = |stapling: &Stapling| stapling.file.is_none();
        let Some(certificates) = certificates else { continue };
        if !server.settings.tls.as_ref().is_some_and(|tls| tls.stapling.as_ref().is_some_and(asks)) {
            continue;
        }
        for leaf in certificates.leaves() {
            certificates.staple(&leaf.certificate, known.get(&leaf.certificate).map(|said| &said[..]));
        }
    }
}

/// One per location. Locations with the same settings share one, and its sessions.
fn connectors(http: &Http, findings: &mut Diagnostics) -> Vec<Option<Arc<TlsConnector>>> {
    let mut known: Vec<(Arc<UpstreamTls>, bool, Arc<TlsConnector>)> = Vec::new();
    let mut connector = |location: &Location| -> Option<Arc<TlsConnector>> {
        let pass = location.settings.pass()?;
        let tls = pass.tls()?;
        let (settings, is_http2) = (&tls.settings, pass.is_http2());
        let fits = |(known, http2, _): &&(_, _, _)| *known == *settings && *http2 == is_http2;
        if let Some((_, _, connector)) = known.iter().find(fits) {
            return Some(connector.clone());
        }
        match TlsConnector::new(&tls.settings) {
            Ok(connector) => {
                let connector = if is_http2 { connector.offering(&[b"h2"]) } else { connector };
                let connector = Arc::new(connector);
                known.push((settings.clone(), is_http2, connector.clone()));
                Some(connector)
            }
            Err(error) => {
                findings.error(tls.span, error.to_string());
                None
            }
        }
    };
    http.locations.iter().map(&mut connector).collect()
}

fn acceptor(
    http: &Http,
    listener: &Listener,
    certificates: &[Option<Arc<ServerTls>>],
    keeps_offers: bool,
) -> Option<TlsAcceptor<ChooseCertificate>> {
    let rejects = |id: &ServerId| http.server(*id).settings.tls.as_ref().is_some_and(|tls| tls.rejects);
    let rejecting: Vec<ServerId> = listener.servers.iter().copied().filter(rejects).collect();
    let mut candidates = std::iter::once(&listener.default_server).chain(&listener.servers);
    let default = candidates.find_map(|id| certificates[id.0 as usize].clone());
    if default.is_none() && rejecting.is_empty() {
        return None;
    }
    let names = HostTable::new(http, listener);
    let certificates = certificates.to_vec();
    let choose: ChooseCertificate = Box::new(move |name: Option<&str>| {
        let host = name.unwrap_or_default().to_ascii_lowercase();
        // A name that an expression cannot decide about has no certificate.
        let (server, _) = names.find(host.as_bytes()).ok()?;
        if rejecting.contains(&server) {
            return None;
        }
        certificates[server.0 as usize].as_ref().or(default.as_ref()).cloned()
    });
    Some(TlsAcceptor::new(choose, keeps_offers).offering_http2(listener.http2))
}
