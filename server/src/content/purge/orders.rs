//! From what is asked to what the cache is told: zones, keys and prefixes of keys.
//!
//! A key is found as a request would find it: a request of each method that is stored, plain and encrypted, is imagined for the target and
//! the key of their location is evaluated. What a prefix of URLs means for keys is found the same way, from two URLs that differ right
//! behind it: up to where their keys part, the key is the prefix. A key that cannot be told this way is refused by name, and nothing is
//! purged. Nothing is done here.

use super::Refusal;
use super::asked::{Hosts, PurgeScope};
use super::spelled;
use crate::caching::keyed;
use crate::imagined::Entrance;
use crate::request::Request;
use crate::variables;
use millstream_cache::policy;
use millstream_conf::model::made::reads;
use millstream_conf::model::{
    CacheZoneId, Http, Location, LocationId, LocationMatch, LocationTree, Making, ManageRight, Part,
    PassTarget, ProxyCache, ServerId, Template, Variable,
};
use millstream_conf::variables::Builtin;
use millstream_wire::Method;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Fields not copied to the hypothetical request: they frame a body or request the purge.
const LEFT_OUT: [&[u8]; 22] = [
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"content-type",
    b"expect",
    b"connection",
    b"upgrade",
    b"authorization",
    b"surrogate-key",
    b"cache-tag",
    b"cache-tags",
    b"xkey",
    b"xkey-purge",
    b"xkey-softpurge",
    b"x-cache-tags",
    b"x-purge-method",
    b"x-url",
    b"x-host",
    b"x-ban-url",
    b"x-ban-host",
    b"if-none-match",
    b"if-modified-since",
];

/// A reserved host (RFC 2606 §2), which stands for all hosts that no server names.
const ANY_HOST: &[u8] = b"any.invalid";
const HOSTS_MATTER: Refusal = Refusal {
    status: 400,
    text: Cow::Borrowed("cache keys here depend on the host: list the hosts in X-Host, as ^(one|other)$"),
};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PurgeItem {
    Key(Vec<u8>),
    Text(Vec<u8>),
    Prefix(Vec<u8>),
    Tag(Vec<u8>),
    All,
}

#[derive(Debug, Default)]
pub struct Orders {
    pub items: BTreeSet<(u32, PurgeItem)>,
    /// Rights of every affected location, each with the first location that has it.
    pub rights: Vec<(Arc<ManageRight>, LocationId)>,
}

impl Orders {
    fn add(&mut self, location: LocationId, cache: &ProxyCache, item: PurgeItem) {
        self.items.insert((cache.zone.0, item));
        if !self.rights.iter().any(|(right, _)| *right == cache.purge_right) {
            self.rights.push((cache.purge_right.clone(), location));
        }
    }

    pub fn of_zone(zone: CacheZoneId, items: impl Iterator<Item = PurgeItem>) -> Orders {
        Orders { items: items.map(|item| (zone.0, item)).collect(), rights: Vec::new() }
    }
}

/// Fails if a key cannot be determined, or no cached location is affected.
pub fn of_request(request: &Request, wanted: &PurgeScope) -> Result<Orders, Refusal> {
    let any_host = matches!(wanted, PurgeScope::Target(_, Hosts::Any) | PurgeScope::Prefix(_, Hosts::Any));
    let mut search =
        KeySearch { place: Entrance::of(request), like: request, any_host, orders: Orders::default() };
    match wanted {
        PurgeScope::Target(target, hosts) => {
            for host in names(request, hosts) {
                for target in spelled::targets(target) {
                    search.target(&host, &target)?;
                }
            }
        }
        PurgeScope::Prefix(path, hosts) => {
            for host in names(request, hosts) {
                search.prefix(&host, path)?;
            }
        }
        PurgeScope::Tags(tags) => {
            for (id, cache) in caches(request.generation.http(), request.route.server) {
                tags.iter().for_each(|tag| search.orders.add(id, cache, PurgeItem::Tag(tag.clone())));
            }
        }
        PurgeScope::All => {
            caches(request.generation.http(), request.route.server)
                .for_each(|(id, cache)| search.orders.add(id, cache, PurgeItem::All));
        }
    }
    if search.orders.items.is_empty() {
        return Err(Refusal { status: 404, text: "no location with a cache matches the request".into() });
    }
    Ok(search.orders)
}

/// For any host the request's own stands for all, which is checked later.
fn names(request: &Request, hosts: &Hosts) -> Vec<Vec<u8>> {
    match hosts {
        Hosts::Own | Hosts::Any => vec![own_host(request)],
        Hosts::Named(names) => names.clone(),
    }
}

/// As received, with the port, which keys may contain.
fn own_host(request: &Request) -> Vec<u8> {
    match request.field(millstream_wire::FieldId::Host) {
        Some(host) if !host.is_empty() => host.to_vec(),
        _ if request.route.host.is_empty() => b"localhost".to_vec(),
        _ => request.route.host.clone(),
    }
}

/// The keys of what is asked for, as requests like `like` would have them.
struct KeySearch<'r> {
    place: Entrance,
    like: &'r Request,
    /// Keys must not depend on the host.
    any_host: bool,
    orders: Orders,
}

impl KeySearch<'_> {
    fn target(&mut self, host: &[u8], target: &[u8]) -> Result<(), Refusal> {
        for way in ways(self.like.generation.http()) {
            let mut imagined = self.imagine(way, host, target)?;
            let found = imagined.route.location;
            // Which `if` held for others is not known.
            let generation = imagined.generation.clone();
            for id in generation.http().location(found).faces.iter().copied().chain([found]) {
                imagined.route.location = id;
                self.location(&imagined, way, target)?;
            }
        }
        Ok(())
    }

    fn location(&mut self, imagined: &Request, way: (&str, bool), target: &[u8]) -> Result<(), Refusal> {
        let cache =
            imagined.location().settings.cache().filter(|cache| policy::looks_up(cache, imagined.method));
        let Some(cache) = cache else { return Ok(()) };
        // A key that is too long has nothing stored under it.
        let Some(key) = keyed::key(imagined, cache) else { return Ok(()) };
        if self.any_host {
            let mut elsewhere = self.imagine(way, ANY_HOST, target)?;
            let faces = &imagined.location().faces;
            if elsewhere.route.location != imagined.route.location
                && !faces.contains(&elsewhere.route.location)
            {
                return Err(HOSTS_MATTER);
            }
            elsewhere.route.location = imagined.route.location;
            if keyed::key(&elsewhere, cache).as_ref() != Some(&key) {
                return Err(HOSTS_MATTER);
            }
        }
        if let Some(before) = before_slices(cache) {
            // The whole is in pieces, one key each, with the range where the variable stands.
            let prefix = [&variables::value(&before, imagined)[..], b"bytes="].concat();
            self.orders.add(imagined.route.location, cache, PurgeItem::Prefix(prefix));
        }
        self.orders.add(imagined.route.location, cache, PurgeItem::Key(key));
        Ok(())
    }

    fn prefix(&mut self, host: &[u8], path: &[u8]) -> Result<(), Refusal> {
        let (like, http) = (self.like, self.like.generation.http());
        for way in ways(http) {
            let mut probes = Vec::with_capacity(4);
            for ending in [&b"a"[..], b"b", if path.contains(&b'?') { b"a&a=a" } else { b"a?a=a" }] {
                probes.push(self.imagine(way, host, &[path, ending].concat())?);
            }
            if self.any_host {
                probes.push(self.imagine(way, ANY_HOST, &[path, b"a"].concat())?);
                let (own, other) = (&probes[0], &probes[3]);
                let differs = own.location().settings.cache().is_some_and(|cache| {
                    variables::value(&cache.key, own) != variables::value(&cache.key, other)
                });
                if own.route.location != other.route.location || differs {
                    return Err(HOSTS_MATTER);
                }
            }
            let mut uri = probes[0].route.uri.clone();
            if !path.contains(&b'?') {
                uri.pop();
            }
            for id in cached_below(http, probes[0].route.server, &uri) {
                let location = http.location(id);
                let cache =
                    location.settings.cache().filter(|cache| policy::looks_up(cache, probes[0].method));
                let Some(cache) = cache else { continue };
                match key_prefix(&mut probes, id, cache) {
                    Some(prefix) => self.orders.add(id, cache, PurgeItem::Prefix(prefix)),
                    None => return Err(no_prefix(like, location, cache)),
                }
            }
        }
        Ok(())
    }

    fn imagine(
        &self,
        (method, encrypted): (&str, bool),
        host: &[u8],
        target: &[u8],
    ) -> Result<Request, Refusal> {
        let kept = self
            .like
            .fields()
            .iter()
            .filter(|(_, name, _)| !LEFT_OUT.iter().any(|left| name.eq_ignore_ascii_case(left)));
        let fields = kept.map(|(_, name, value)| (name, value));
        self.place
            .encrypted(encrypted)
            .imagine(method, target, host, fields)
            .map_err(|status| Refusal { status, text: "a request for this URL would be refused".into() })
    }
}

fn key_prefix(probes: &mut [Request], id: LocationId, cache: &ProxyCache) -> Option<Vec<u8>> {
    let keys: Vec<Vec<u8>> = probes
        .iter_mut()
        .map(|probe| {
            if probe.route.location != id {
                // It would have come here with other captures, which nobody knows.
                probe.route.captures = RefCell::default();
                probe.route.location = id;
                probe.route.made.clear();
            }
            variables::value(&cache.key, probe)
        })
        .collect();
    let [first, second, others @ ..] = keys.as_slice() else { return None };
    let common = first.iter().zip(second).take_while(|(one, other)| one == other).count();
    // The same key for two URLs: what stands behind the prefix is no part of it.
    let parts = common < first.len() && common < second.len();
    let covers = others.iter().all(|key| key.starts_with(&first[..common]));
    (parts && covers && is_foreseen(&probes[0], cache, common)).then(|| first[..common].to_vec())
}

/// Whether each variable in the first `length` bytes of the key is the same for all affected requests. A
/// cookie in front makes other keys unpredictable.
fn is_foreseen(probe: &Request, cache: &ProxyCache, length: usize) -> bool {
    let mut value = Vec::new();
    for part in &cache.key.parts {
        match part {
            Part::Literal(text) => value.extend_from_slice(text.as_bytes()),
            Part::Variable(variable) => {
                if !is_of_url(variable, probe.location(), probe.generation.http())
                    && !is_made_of_place(variable, probe)
                {
                    return false;
                }
                variables::append(variable, probe, &mut value);
            }
        }
        // Keys part within this one.
        if value.len() > length {
            return true;
        }
    }
    false
}

/// Whether the value depends only on URL, method and place.
fn is_of_url(variable: &Variable, location: &Location, http: &Http) -> bool {
    match variable {
        Variable::Builtin(Builtin::ProxyHost | Builtin::ProxyPort)
        | Variable::SentTarget
        | Variable::SentOrigin => {
            let target = location.settings.pass().map(|proxy| &proxy.target);
            match target {
                Some(PassTarget::Variables(url)) => {
                    url.variables().all(|part| is_of_url(part, location, http))
                }
                _ => true,
            }
        }
        Variable::Builtin(builtin) => matches!(
            builtin,
            Builtin::Host
                | Builtin::Scheme
                | Builtin::Https
                | Builtin::RequestMethod
                | Builtin::ServerName
                | Builtin::Hostname
                | Builtin::NginxVersion
                | Builtin::Uri
                | Builtin::DocumentUri
                | Builtin::RequestUri
                | Builtin::Request
                | Builtin::Args
                | Builtin::QueryString
                | Builtin::IsArgs
        ),
        Variable::RequestHeader(name) => &**name == "host",
        // Those of a server's name; what a location's expression finds may depend on the rest of the URL.
        Variable::Capture(_) => !matches!(location.matches, LocationMatch::Regex(_)),
        Variable::Slot(number) => {
            http.slots.get(usize::from(*number)).is_some_and(|slot| slot.is_routed)
                && !matches!(location.matches, LocationMatch::Regex(_))
        }
        _ => false,
    }
}

/// Whether a configured variable is the same for all URLs with a common prefix: a `map` of the path may not
/// be.
fn is_made_of_place(variable: &Variable, probe: &Request) -> bool {
    let Variable::Made(id) = variable else { return false };
    let made = &probe.generation.http().made;
    let making = made.get(usize::from(id.0)).and_then(|made| made.making.as_ref());
    let mut read = making.into_iter().flat_map(Making::templates).flat_map(|template| reads(made, template));
    read.all(|variable| match variable {
        Variable::Builtin(builtin) => matches!(
            builtin,
            Builtin::Host | Builtin::Scheme | Builtin::Https | Builtin::RequestMethod | Builtin::ServerName
        ),
        Variable::RequestHeader(name) => &**name == "host",
        // What that one is made of is among the others.
        Variable::Made(_) => true,
        _ => false,
    })
}

/// The key before `$slice_range`; `None` without that.
fn before_slices(cache: &ProxyCache) -> Option<Template> {
    let slices = |part: &Part| *part == Part::Variable(Variable::Builtin(Builtin::SliceRange));
    let end = cache.key.parts.iter().position(slices)?;
    Some(Template { parts: cache.key.parts[..end].into(), source: cache.key.source.clone() })
}

fn no_prefix(request: &Request, location: &Location, cache: &ProxyCache) -> Refusal {
    let at = request.generation.shared.configuration.sources.locate(location.span);
    Refusal::bad(format!(
        "with the proxy_cache_key \"{}\" of the location at {at}, URLs with a common prefix do not have keys with a \
         common prefix: purge single URLs, a tag or everything",
        cache.key.source
    ))
}

/// Methods and schemes that some cache stores; keys may contain them.
fn ways(http: &Http) -> Vec<(&'static str, bool)> {
    let is_stored = |method: Method| {
        let mut caches = http.locations.iter().filter_map(|location| location.settings.cache());
        caches.any(|cache| policy::looks_up(cache, method))
    };
    let methods =
        [(Method::Get, "GET"), (Method::Head, "HEAD"), (Method::Post, "POST"), (Method::Query, "QUERY")];
    let stored = methods.into_iter().filter(|(method, _)| is_stored(*method));
    stored.flat_map(|(_, name)| [(name, false), (name, true)]).collect()
}

fn caches(http: &Http, server: ServerId) -> impl Iterator<Item = (LocationId, &ProxyCache)> {
    let mut found = vec![http.server(server).own];
    collect(http, &http.server(server).locations, b"/", &mut found);
    found.into_iter().filter_map(|id| Some((id, http.location(id).settings.cache()?)))
}

fn cached_below(http: &Http, server: ServerId, path: &[u8]) -> Vec<LocationId> {
    let mut found = vec![http.server(server).own];
    collect(http, &http.server(server).locations, path, &mut found);
    found.retain(|id| http.location(*id).settings.cache().is_some());
    found
}

fn collect(http: &Http, tree: &LocationTree, path: &[u8], found: &mut Vec<LocationId>) {
    let exact = tree.exact.iter().chain(&tree.prefixes).chain(&tree.named).map(|(_, id)| *id);
    for id in exact.chain(tree.regexes.iter().copied()) {
        let location = http.location(id);
        let may_take = match &location.matches {
            LocationMatch::Exact(name) => name.as_bytes().starts_with(path),
            LocationMatch::Prefix { path: name, .. } => {
                name.as_bytes().starts_with(path) || path.starts_with(name.as_bytes())
            }
            LocationMatch::Regex(_) | LocationMatch::Named(_) | LocationMatch::Server => true,
        };
        if may_take {
            found.push(id);
            found.extend(&location.faces);
            collect(http, &location.nested, path, found);
        }
    }
}
