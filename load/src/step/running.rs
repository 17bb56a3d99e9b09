//! Which steps of the ladder a configuration has already.
//!
//! Reads the typed configuration and nothing else. Of several locations that pass requests on, the one counts that passes them to the
//! API, and of those the one with the longest path that the request's begins with. Next: `ladder::gain`, which recommends what is beyond.

use super::{Fact, Step, holds};
use crate::target::Url;
use millstream_conf::model::{
    Configuration, Handler, Http, HttpVersion, KeepaliveSize, Location, LocationMatch, LogPlace, Pass,
    PassTarget, PeerAddress, Server,
};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Running {
    pub file: String,
    pub has: Vec<Step>,
    /// The highest of them that is an attempt at speed.
    pub at: Step,
}

/// Where a directory is in memory on Linux.
const IN_MEMORY: &str = "/dev/shm";

/// What `file` has for the API at this URL. Errors: one sentence: it passes no request on.
pub fn running(file: &str, configuration: &Configuration, api: &Url) -> Result<Running, String> {
    let http = &configuration.http;
    let path = api.target.split('?').next().unwrap_or_default();
    let all = http
        .servers
        .iter()
        .flat_map(|server| http.locations_of(server).into_iter().map(move |id| (server, http.location(id))));
    let passing = all.filter_map(|(server, location)| Some((server, location, pass(location)?)));
    let suits = |(_, location, pass): &(&Server, &Location, &Pass)| {
        let length = match &location.matches {
            LocationMatch::Exact(own) if own == path => path.len() + 1,
            LocationMatch::Prefix { path: own, .. } if path.starts_with(own.as_str()) => own.len(),
            _ => 0,
        };
        (leads_to(http, pass, api), length)
    };
    let best = passing
        .max_by_key(suits)
        .ok_or_else(|| format!("{file} has no proxy_pass, so it passes no requests on"))?;
    let facts = facts(http, best);
    let has = Step::ALL.into_iter().skip(1).filter(|step| holds(step.entry().news, &facts));
    let has: Vec<Step> = has.collect();
    let at = has.iter().copied().filter(|step| !step.is_service()).max().unwrap_or(Step::Proxied);
    Ok(Running { file: file.to_owned(), has, at })
}

fn pass(location: &Location) -> Option<&Pass> {
    let Handler::Pass(pass) = &location.settings.content else { return None };
    pass.http().map(|_| &**pass)
}

fn leads_to(http: &Http, pass: &Pass, api: &Url) -> bool {
    let PassTarget::Upstream(id) = &pass.target else { return false };
    http.upstream(*id).servers.iter().any(|server| match &server.address {
        PeerAddress::Tcp(address) => address.port() == api.port && address.ip().to_string() == api.host,
        PeerAddress::Name(name) => name.port == api.port && name.host == api.host,
        PeerAddress::Unix(_) => false,
    })
}

fn facts(http: &Http, (server, location, pass): (&Server, &Location, &Pass)) -> Vec<Fact> {
    let keeps = match &pass.target {
        PassTarget::Upstream(id) => !matches!(http.upstream(*id).keepalive.size, KeepaliveSize::Fixed(0)),
        PassTarget::Variables(_) => true,
    };
    let closes = pass.http().is_some_and(|spoken| spoken.http_version == HttpVersion::Http10);
    let logs = &location.settings.logs.access;
    let is_buffered = logs.iter().all(|log| match &log.place {
        LogPlace::File(id) => http.log_files[id.0 as usize].buffer.is_some(),
        LogPlace::Named(_) => false,
    });
    let zone = pass.cache.as_ref().map(|cache| http.cache_zone(cache.zone));
    let is_in_memory = |path: &Path| path.starts_with(IN_MEMORY);
    let mut secure = http.listeners.iter().filter(|listener| {
        listener.ssl && listener.servers.iter().any(|id| std::ptr::eq(http.server(*id), server))
    });
    let all = [
        (Fact::KeepAlive, keeps && !closes),
        (Fact::Gzip, location.settings.gzip.enabled),
        (Fact::Logged, !logs.is_empty() && !is_buffered),
        (Fact::Buffered, !logs.is_empty() && is_buffered),
        (Fact::Cache, zone.is_some()),
        (Fact::Memory, zone.is_some_and(|zone| zone.path.as_deref().is_none_or(is_in_memory))),
        (Fact::Lock, pass.cache.as_ref().is_some_and(|cache| cache.lock && cache.use_stale.updating)),
        (Fact::Micro, pass.exchange.ignore_headers.cache_control),
        (Fact::Tls, secure.clone().next().is_some()),
        (Fact::Http2, secure.any(|listener| listener.http2)),
    ];
    all.into_iter().filter_map(|(fact, is_there)| is_there.then_some(fact)).collect()
}
