//! The certificates, keys and authorities of a configuration become what handshakes go by, on both sides.
//!
//! It reads files, at start and at a reload, and tells all that is wrong with them. Next: `assemble`, which puts it in force.

use millstream_acme::Acme;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::model::{Http, Listener, Location, Server, ServerId, UpstreamTls};
use millstream_net::tls::{self, Clients, ServerTls, TlsAcceptor, TlsConnector};
use millstream_server::generation::ChooseCertificate;
use millstream_server::route::server_name::HostTable;
use std::collections::HashMap;
use std::sync::Arc;

/// What handshakes go by.
pub struct Handshakes {
    /// One per server: what it knows of its clients' authorities.
    pub clients: Vec<Option<Arc<Clients>>>,
    /// One per listener; nothing of a plain one.
    pub tls: Vec<Option<TlsAcceptor<ChooseCertificate>>>,
    /// One per location: how TLS is spoken to its upstream.
    pub connectors: Vec<Option<Arc<TlsConnector>>>,
}

impl Handshakes {
    /// Reads the files. `keeps_offers`: somebody wants to know what clients offer.
    pub fn read(http: &Http, acme: &Acme, keeps_offers: bool, findings: &mut Diagnostics) -> Handshakes {
        let clients = clients(http, findings);
        let tls = certificates(http, acme, &clients, keeps_offers, findings);
        Handshakes { clients, tls, connectors: connectors(http, findings) }
    }
}

/// What each server knows of its clients' authorities, where it asks for certificates.
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

/// One acceptor per listener; certificates of a server are read once.
fn certificates(
    http: &Http,
    acme: &Acme,
    clients: &[Option<Arc<Clients>>],
    keeps_offers: bool,
    findings: &mut Diagnostics,
) -> Vec<Option<TlsAcceptor<ChooseCertificate>>> {
    let mut configs: HashMap<u32, Arc<ServerTls>> = HashMap::new();
    for (index, (server, clients)) in http.servers.iter().zip(clients).enumerate() {
        let Some(conf) = server.settings.tls.as_ref().filter(|tls| !tls.certificates.is_empty()) else {
            continue;
        };
        let issued = server.acme.map(|id| acme.issued[id.0 as usize].clone());
        match ServerTls::read_with(conf, clients.clone(), issued, server.settings.http2.enabled) {
            Ok(config) => _ = configs.insert(index as u32, config),
            Err(error) => _ = findings.error(conf.span, error.to_string()),
        }
    }
    http.listeners
        .iter()
        .map(|listener| {
            let acceptor = listener.ssl.then(|| acceptor(http, listener, &configs, keeps_offers)).flatten();
            acceptor.map(|acceptor| acceptor.answering(acme.challenges.clone()))
        })
        .collect()
}

/// One per location. Locations with the same settings share theirs, and with it the sessions.
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
    configs: &HashMap<u32, Arc<ServerTls>>,
    keeps_offers: bool,
) -> Option<TlsAcceptor<ChooseCertificate>> {
    let rejects = |id: &ServerId| http.server(*id).settings.tls.as_ref().is_some_and(|tls| tls.rejects);
    let rejecting: Vec<ServerId> = listener.servers.iter().copied().filter(rejects).collect();
    let mut candidates = std::iter::once(&listener.default_server).chain(&listener.servers);
    let default = candidates.find_map(|id| configs.get(&id.0)).cloned();
    if default.is_none() && rejecting.is_empty() {
        return None;
    }
    let names = HostTable::new(http, listener);
    let configs = configs.clone();
    let choose: ChooseCertificate = Box::new(move |name: Option<&str>| {
        let host = name.unwrap_or_default().to_ascii_lowercase();
        // A name that an expression cannot decide about has no certificate.
        let (server, _) = names.find(host.as_bytes()).ok()?;
        if rejecting.contains(&server) {
            return None;
        }
        configs.get(&server.0).or(default.as_ref()).cloned()
    });
    Some(TlsAcceptor::new(choose, keeps_offers).offering_http2(listener.http2))
}
