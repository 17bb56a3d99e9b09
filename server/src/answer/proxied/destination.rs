//! Which group of servers a request goes to, and over which pool.
//!
//! A fixed `proxy_pass` names its group at load. One with variables is evaluated here: its host is the name of an upstream
//! block, an address, or a name that the system resolves; the latter two get a group for this one request.

use super::report;
use crate::generation::Generation;
use crate::request::Request;
use crate::sent_target::{Parts, split};
use crate::variables::value;
use millstream_conf::model::{
    HostPort, KeepaliveSize, Level, PeerAddress, Proxy, ProxyTarget, Upstream, UpstreamKeepalive,
    UpstreamServer,
};
use millstream_net::address::Address;
use millstream_net::resolve;
use millstream_upstream::{Group, Pool};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Where a request goes.
pub(super) struct Destination<'g> {
    route: Route<'g>,
    /// The URI of a `proxy_pass` with variables, as evaluated; `None` where there is none.
    pub(super) uri: Option<Vec<u8>>,
}

enum Route<'g> {
    /// A group of the configuration with the worker's connections to it.
    Known(&'g Arc<Group>, &'g Pool),
    /// Made for this request.
    Made(Arc<Group>, Box<Pool>),
}

impl Destination<'_> {
    /// The servers.
    pub(super) fn group(&self) -> &Group {
        match &self.route {
            Route::Known(group, _) => group,
            Route::Made(group, _) => group,
        }
    }

    /// The servers, for what may outlive the request.
    pub(super) fn shared_group(&self) -> Arc<Group> {
        match &self.route {
            Route::Known(group, _) => Arc::clone(group),
            Route::Made(group, _) => group.clone(),
        }
    }

    /// The worker's idle connections to them.
    pub(super) fn pool(&self) -> &Pool {
        match &self.route {
            Route::Known(_, pool) => pool,
            Route::Made(_, pool) => pool,
        }
    }
}

/// The destination of a `proxy_pass` without variables.
pub(super) fn known<'g>(generation: &'g Generation, proxy: &Proxy) -> Option<Destination<'g>> {
    match &proxy.pass.target {
        ProxyTarget::Upstream(id) => {
            Some(Destination { route: of_group(generation, id.0 as usize), uri: None })
        }
        ProxyTarget::Variables(_) => None,
    }
}

/// Finds the destination of a `proxy_pass` with variables; else the status to answer with.
pub(super) async fn find<'g>(
    request: &Request,
    generation: &'g Generation,
    proxy: &Proxy,
) -> Result<Destination<'g>, u16> {
    let ProxyTarget::Variables(template) = &proxy.pass.target else {
        return known(generation, proxy).ok_or(500);
    };
    let url = value(template, request);
    let Some(parts) = split(&url) else {
        let text = String::from_utf8_lossy(&url);
        report::write(request, Level::Error, format_args!("invalid URL prefix in \"{text}\""), None);
        return Err(500);
    };
    let uri = (!parts.uri.is_empty()).then(|| parts.uri.to_vec());
    let upstreams = &generation.http().upstreams;
    if let Some(index) = upstreams.iter().position(|upstream| upstream.name.as_bytes() == parts.authority) {
        return Ok(Destination { route: of_group(generation, index), uri });
    }
    let addresses = addresses(request, &parts).await?;
    let keepalive = UpstreamKeepalive {
        size: KeepaliveSize::Fixed(0),
        requests: 1,
        time: Duration::from_secs(60),
        timeout: Duration::from_secs(60),
    };
    let conf = single(&String::from_utf8_lossy(parts.authority), proxy, keepalive);
    let group = Group::open(&conf, &[addresses]);
    Ok(Destination { route: Route::Made(group, Box::new(Pool::new(&keepalive))), uri })
}

fn of_group(generation: &Generation, index: usize) -> Route<'_> {
    Route::Known(&generation.shared.groups[index], &generation.pools[index])
}

/// The addresses of an authority; resolved by the system where it is a name.
async fn addresses(request: &Request, parts: &Parts<'_>) -> Result<Vec<Address>, u16> {
    let text = std::str::from_utf8(parts.authority).map_err(|_| 500u16)?;
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(vec![Address::Unix(Some(path.into()))]);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![Address::Tcp(address)]);
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(vec![Address::Tcp(SocketAddr::new(ip, 80))]);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| 500u16)?),
        None => (text, 80),
    };
    match resolve::resolve(&HostPort { host: host.to_owned(), port }).await {
        Ok(found) if !found.is_empty() => Ok(found.into_iter().map(Address::Tcp).collect()),
        Ok(_) | Err(_) => {
            report::write(request, Level::Error, format_args!("{host} could not be resolved"), None);
            Err(502)
        }
    }
}

/// A group of one server.
fn single(name: &str, proxy: &Proxy, keepalive: UpstreamKeepalive) -> Upstream {
    let server = UpstreamServer {
        name: name.to_owned(),
        span: Default::default(),
        address: PeerAddress::Name(HostPort { host: name.to_owned(), port: proxy.pass.port }),
        weight: 1,
        max_fails: 1,
        fail_timeout: Duration::from_secs(10),
        backup: false,
        down: false,
        max_conns: 0,
    };
    Upstream {
        name: name.to_owned(),
        span: Default::default(),
        implicit: true,
        servers: vec![server],
        keepalive,
        zone: None,
    }
}
