//! Which group of servers a request goes to, over which pool, and what the choice among them goes by.
//!
//! A fixed `proxy_pass` names its group at load. One with variables is evaluated here: its host is the name of an upstream
//! block, an address, or a name that is resolved; the latter two get a group for this one request.

use super::report;
use super::sticky::{Session, session};
use crate::generation::Generation;
use crate::request::Request;
use crate::sent_target::{Parts, parts};
use crate::variables::value;
use millstream_conf::address;
use millstream_conf::model::{
    HostPort, KeepaliveSize, Level, Pass, PassTarget, PassTls, PemSource, Template, UpstreamKeepalive,
};
use millstream_net::address::Address;
use millstream_net::connect::Local;
use millstream_net::{proxy_protocol, resolve};
use millstream_upstream::{Dial, Group, Pool, Secured, Version};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

pub(super) struct Destination {
    /// Their state when proxying started.
    pub(super) peers: Version,
    pub(super) pool: Rc<Pool>,
    pub(super) dial: Dial,
    pub(super) key: Vec<u8>,
    pub(super) session: Session,
    /// Of a `proxy_pass` with variables, evaluated; `None` if it has no URI.
    pub(super) uri: Option<Vec<u8>>,
}

/// For connections that serve one request.
const NOT_KEPT: UpstreamKeepalive = UpstreamKeepalive {
    size: KeepaliveSize::Fixed(0),
    requests: 1,
    time: Duration::from_secs(60),
    timeout: Duration::from_secs(60),
};

pub(super) fn known(request: &Request, generation: &Generation, proxy: &Pass) -> Option<Destination> {
    match &proxy.target {
        PassTarget::Upstream(id) => {
            let secured = match proxy.tls() {
                Some(tls) => Some(secured(request, tls, &tls.host)?),
                None => None,
            };
            Some(of_group(request, generation, id.0 as usize, dial(request, proxy, secured), None))
        }
        PassTarget::Variables(_) => None,
    }
}

/// For a `proxy_pass` with variables. The error is a status.
pub(super) async fn find(
    request: &Request,
    generation: &Generation,
    proxy: &Pass,
) -> Result<Destination, u16> {
    let PassTarget::Variables(template) = &proxy.target else {
        return known(request, generation, proxy).ok_or(500);
    };
    let url = value(template, request);
    let parts = parts(&url, proxy);
    let Some(parts) = parts else {
        let text = String::from_utf8_lossy(&url);
        report::write(
            request,
            Level::Error,
            format_args!("invalid address or URL prefix in \"{text}\""),
            None,
        );
        return Err(500);
    };
    let uri = (!parts.uri.is_empty()).then(|| parts.uri.to_vec());
    let tls = proxy.tls().filter(|_| parts.encrypted);
    let encrypted = tls.and_then(|tls| secured(request, tls, &String::from_utf8_lossy(parts.authority)));
    if parts.encrypted && encrypted.is_none() {
        return Err(500);
    }
    let upstreams = &generation.http().upstreams;
    if let Some(index) = upstreams.iter().position(|upstream| upstream.name.as_bytes() == parts.authority) {
        return Ok(of_group(request, generation, index, dial(request, proxy, encrypted), uri));
    }
    let addresses = addresses(request, &parts).await?;
    let group = Group::single(&String::from_utf8_lossy(parts.authority), NOT_KEPT, addresses);
    let peers = Version::of(group.in_force());
    Ok(Destination {
        peers,
        pool: Rc::new(Pool::new(&NOT_KEPT)),
        dial: dial(request, proxy, encrypted),
        key: Vec::new(),
        session: Session::default(),
        uri,
    })
}

fn secured(request: &Request, tls: &PassTls, host: &str) -> Option<Secured> {
    let connector =
        request.generation.shared.handshakes.connectors.get(request.route.location.0 as usize)?.clone()?;
    let name = match &tls.name {
        Some(name) => Rc::from(String::from_utf8_lossy(&value(name, request))),
        None => Rc::from(host),
    };
    // As in nginx one whose name comes to nothing is none.
    let certificate =
        tls.settings.certificate.as_ref().filter(|(one, key)| one.is_variable() || key.is_variable());
    let certificate = certificate.and_then(|(one, key)| {
        let say = |text: &Template| value(text, request);
        let is_empty = matches!(one, PemSource::Variable(text, _) if say(text).is_empty());
        (!is_empty).then(|| Rc::new((one.evaluated(say), key.evaluated(say))))
    });
    Some(Secured { connector, name, certificate })
}

fn dial(request: &Request, proxy: &Pass, secured: Option<Secured>) -> Dial {
    let (exchange, http2) = (&proxy.exchange, proxy.is_http2());
    let header = proxy.http().and_then(|http| http.announces);
    let announced = header.map(|version| {
        Rc::from(proxy_protocol::header(version, request.client(), &request.connection.local))
    });
    if exchange.bind.is_none() && !exchange.socket_keepalive {
        return Dial { secured, local: None, announced, http2 };
    }
    let mut local = Local { keepalive: exchange.socket_keepalive, ..Local::default() };
    if let Some(bind) = &exchange.bind {
        let text = String::from_utf8_lossy(&value(&bind.address, request)).into_owned();
        local.address = address::local_address(&text);
        local.transparent = bind.transparent;
        if local.address.is_none() && !text.is_empty() {
            report::write(request, Level::Error, format_args!("invalid local address \"{text}\""), None);
        }
    }
    Dial { secured, local: Some(Rc::new(local)), announced, http2 }
}

fn of_group(
    request: &Request,
    generation: &Generation,
    index: usize,
    dial: Dial,
    uri: Option<Vec<u8>>,
) -> Destination {
    let upstream = &generation.upstreams[index];
    let key = generation.http().upstreams[index].balance.key.as_ref();
    let key = key.map_or_else(Vec::new, |key| value(key, request));
    let session = session(request, generation, index);
    // A kept connection would outlive a change of its certificate's files; as in nginx only an upstream block asks for that.
    let has_certificate = dial.secured.as_ref().is_some_and(|secured| secured.certificate.is_some());
    let pool = match has_certificate && generation.http().upstreams[index].implicit {
        true => Rc::new(Pool::new(&NOT_KEPT)),
        false => upstream.pool().clone(),
    };
    Destination { peers: upstream.version(), pool, dial, key, session, uri }
}

/// A name is looked up with the `resolver`, or with the system if there is none.
async fn addresses(request: &Request, parts: &Parts<'_>) -> Result<Vec<Address>, u16> {
    let text = std::str::from_utf8(parts.authority).map_err(|_| 500u16)?;
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(vec![Address::Unix(Some(path.into()))]);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![Address::Tcp(address)]);
    }
    let default_port = if parts.encrypted { 443 } else { 80 };
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(vec![Address::Tcp(SocketAddr::new(ip, default_port))]);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| 500u16)?),
        None => (text, default_port),
    };
    let resolving = &request.location().settings.resolver;
    let found = match resolving.servers {
        Some(id) => {
            let resolver = &request.generation.shared.resolvers[id.0 as usize];
            let found = resolver.resolve_in_turn(host, resolving.timeout).await;
            let with_port = |ip| SocketAddr::new(ip, port);
            found.map(|found| found.into_iter().map(with_port).collect()).map_err(|error| error.to_string())
        }
        None => {
            let name = HostPort { host: host.to_owned(), port };
            resolve::resolve(&name).await.map_err(|error| error.to_string())
        }
    };
    let found: Vec<SocketAddr> = found.map_err(|why| {
        report::write(request, Level::Error, format_args!("{host} could not be resolved ({why})"), None);
        502u16
    })?;
    Ok(found.into_iter().map(Address::Tcp).collect())
}
