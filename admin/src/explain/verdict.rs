//! What a request would get now, in `$upstream_cache_status`'s words, and why.
//!
//! It follows the diagram of `millstream-server`'s `cached/course`, on what was seen instead of on rights to fill.

use super::origin::{Origins, on_node};
use super::{at, stored, text};
use millstream_cache::policy::{self, Asker, Needs, Usable, Why};
use millstream_cache::{Entry, How, Now, Scope, Sight, StaleCause};
use millstream_conf::model::ProxyCache;
use millstream_server::caching::keyed::{self, Use};
use millstream_server::location_text::readable;
use millstream_server::representation::chosen;
use millstream_server::request::Request;
use millstream_server::shown;
use millstream_server::variables::holds;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::h1::encode;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// `HIT`, `MISS` …; `-` if the cache is not involved. Absent only while unknown.
    pub status: Option<String>,
    pub why: String,
}

impl Verdict {
    pub(super) fn past(why: &str) -> Verdict {
        Verdict { status: Some("-".to_owned()), why: why.to_owned() }
    }

    pub(super) fn unknown() -> Verdict {
        Verdict { status: None, why: String::new() }
    }

    fn of(status: CacheStatus, why: impl Into<String>) -> Verdict {
        Verdict { status: Some(status.name().to_owned()), why: why.into() }
    }
}

pub(super) fn of(
    request: &Request,
    cache: &ProxyCache,
    usage: &Use,
    (sight, origins): (&Sight, Origins<'_>),
    chosen: Option<&std::sync::Arc<Entry>>,
    now: Now,
) -> Verdict {
    match usage {
        Use::None => Verdict::past("responses to this method are not cached here"),
        Use::Past => Verdict::past(
            "one of these applies: the request has a body or an upgrade to another protocol; its Connection names a field; its key is too long; \
                 a credential of the client determines the URL sent to the upstream and the key does not contain that URL",
        ),
        Use::Off => Verdict::of(CacheStatus::Bypass, turned_off(request, cache, now)),
        Use::Bypass(_) => {
            let mut scratch = Vec::new();
            let condition = cache.bypass.iter().find(|one| holds(one, request, &mut scratch));
            let source = condition.map_or("", |one| &one.source);
            let written = cache.written.iter().rev().find(|(name, _)| *name == "proxy_cache_bypass");
            let place = written.map(|(_, span)| format!(" ({})", at(request, *span))).unwrap_or_default();
            let value = condition.map(|one| shown::value(one, request, readable)).unwrap_or_default();
            let why = format!("proxy_cache_bypass {source}{place} applies: its value is {value}");
            Verdict::of(CacheStatus::Bypass, why)
        }
        Use::Lookup(_) if is_apart(request, cache, chosen) => {
            let written = cache.written.iter().rev().find(|(name, _)| *name == "proxy_cache_credentials");
            let place = written.map(|(_, span)| format!(" ({})", at(request, *span))).unwrap_or_default();
            let names: Vec<_> = keyed::credentials(request, cache).map(String::from_utf8_lossy).collect();
            let credential = match names.as_slice() {
                [] => "a certificate, or a value made of a credential".to_owned(),
                names => names.join(", "),
            };
            let why = format!(
                "the request carries a credential ({credential}), and no stored response is marked as public: proxy_cache_credentials public{place}"
            );
            Verdict::of(CacheStatus::Bypass, why)
        }
        Use::Lookup(_) => match chosen {
            Some(entry) => with_entry(request, cache, sight, entry, now),
            None => without_entry(cache, (sight, origins), now),
        },
    }
}

fn turned_off(request: &Request, cache: &ProxyCache, now: Now) -> String {
    let written = cache.written.iter().rev().find(|(name, _)| name.ends_with("_cache_verify"));
    let (name, place) = written.map_or(("proxy_cache_verify", String::new()), |(name, span)| {
        (*name, format!(" ({})", at(request, *span)))
    });
    let known = request.generation.shared.zones.verified.of_location(request.route.location);
    let found = known.and_then(|location| location.leak()).map(|leak| {
        let ago = text::ago(now.unix_milliseconds.saturating_sub(leak.at));
        format!(", {ago} ago, for {}: its {} differs", leak.url, leak.differs_by)
    });
    format!(
        "{name}{place} found a leak{}; the cache of this location is off until the configuration is reloaded or the process is restarted",
        found.unwrap_or_default()
    )
}

/// Whether its credential excludes it from shared responses.
fn is_apart(request: &Request, cache: &ProxyCache, chosen: Option<&std::sync::Arc<Entry>>) -> bool {
    request.cache.asker == Asker::Known
        && chosen.is_none_or(|entry| !entry.meets(Needs::of(cache, request.cache.asker)))
}

fn with_entry(request: &Request, cache: &ProxyCache, sight: &Sight, entry: &Entry, now: Now) -> Verdict {
    let head = entry.head();
    let lifetime = &head.lifetime;
    if let Some(part) = head.part.as_ref().filter(|_| request.cache.slice.is_none()) {
        let stale = !entry.is_fresh(now);
        if stale || chosen::choose_within(request, entry.head()).is_none() {
            let why =
                if stale { "that part is stale" } else { "the request asks for bytes outside that part" };
            let why = format!("only a part of the response is stored ({}), and {why}", stored::part(part));
            return Verdict::of(CacheStatus::Miss, why);
        }
    }
    let is_cut_off = request.is_cut_off(cache, now);
    let why = match policy::may_use(lifetime, entry.age(now), request.fields(), cache, now) {
        Usable::Yes if is_cut_off => None,
        Usable::Yes if entry.is_fresh(now) => {
            return Verdict::of(CacheStatus::Hit, "the stored response is fresh");
        }
        Usable::Yes => {
            return Verdict::of(CacheStatus::Stale, "the request accepts a stale response (max-stale)");
        }
        Usable::Refuse => {
            let why = "504: the request accepts only a stored response (only-if-cached), and this one is not usable";
            return Verdict::of(CacheStatus::Miss, why);
        }
        Usable::Validate(why) => Some(why),
    };
    let why = match why {
        None => "this node is cut off from its cluster, so it revalidates stored responses",
        Some(Why::Stale) => "the stored response is stale",
        Some(Why::AlwaysValidate) => "the stored response requires validation at every use (no-cache)",
        Some(Why::NoCache) => "the request has no-cache, and proxy_cache_client_control is on",
        Some(Why::MaxAge) => {
            "the stored response is older than the request's max-age, and proxy_cache_client_control is on"
        }
        Some(Why::MinFresh) => {
            "the stored response expires before the request's min-fresh, and proxy_cache_client_control is on"
        }
    };
    let allowed = !is_cut_off && entry.may_serve_stale(StaleCause::Updating, cache, now);
    if allowed && sight.line.is_some() {
        return Verdict::of(
            CacheStatus::Updating,
            format!("{why}, but is used while another request refreshes it"),
        );
    }
    if allowed && entry.is_updated_behind(cache, now) {
        return Verdict::of(
            CacheStatus::Stale,
            format!("{why}, but is used while it is refreshed in the background"),
        );
    }
    let validator = head.etag().is_some() || head.last_modified.is_some();
    let how = match validator && cache.revalidate {
        true => "it is revalidated with the upstream (REVALIDATED if unchanged)",
        false => "it is fetched from the upstream again",
    };
    Verdict::of(CacheStatus::Expired, format!("{why}; {how}"))
}

fn without_entry(cache: &ProxyCache, (sight, origins): (&Sight, Origins<'_>), now: Now) -> Verdict {
    if let Some(line) = sight.line {
        let why = match (line.is_reading, line.is_streaming) {
            (true, _) => "the request waits until the cache file has been read",
            (_, true) => {
                "the response is arriving from the upstream for another request, and this request receives it as it arrives"
            }
            _ if cache.lock => {
                "another request is in progress at the upstream, and this request waits for its response"
            }
            _ => {
                "another request is in progress at the upstream, and this request is sent as well, because \
                 proxy_cache_lock is off"
            }
        };
        return Verdict::of(CacheStatus::Miss, why);
    }
    if sight.is_scarce {
        let why = format!(
            "nothing is stored, and the response will not be stored: {} of {} requests (proxy_cache_min_uses)",
            sight.uses, cache.min_uses
        );
        return Verdict::of(CacheStatus::Miss, why);
    }
    let why = match latest(sight, origins) {
        Some((at, what)) => {
            let ago = text::ago(now.unix_milliseconds.saturating_sub(at));
            format!("nothing is stored under this key; {}", what.replace("@", &format!("{ago} ago")))
        }
        None if sight.entries.is_empty() => "nothing is stored under this key".to_owned(),
        None => "no stored response matches the request fields (Vary)".to_owned(),
    };
    Verdict::of(CacheStatus::Miss, why)
}

/// The latest event that prevented storing or removed an entry, and when; `@` in the text stands for the
/// time.
fn latest(sight: &Sight, origins: Origins<'_>) -> Option<(i64, String)> {
    // Of another request, perhaps: this one's answer may well be stored.
    let refused = sight.refused.map(|refused| {
        (refused.at, format!("@, the last response was not stored because {}", refused.reason.text()))
    });
    let failed = sight
        .failed
        .map(|(at, status)| (at, format!("@, the upstream failed: {status} ({})", encode::reason(status))));
    if !sight.entries.is_empty() {
        // Something is stored for others, so these alone can be about this one.
        return [refused, failed].into_iter().flatten().max_by_key(|(at, _)| *at);
    }
    let removed = sight.purge.as_ref().filter(|ruling| ruling.how == How::Hard);
    let removed = removed.map(|ruling| {
        let node = on_node(origins.of_purge(ruling));
        let why = match &ruling.scope {
            Scope::Key(_) => format!("@, a purge{node} removed it"),
            // Such a purge knows no keys, so perhaps nothing was stored.
            Scope::All | Scope::AllPieces => format!("@, a purge{node} removed everything"),
            Scope::Prefix(_) => format!("@, a purge by prefix{node} removed what was stored"),
            Scope::Tag(_) => format!("@, a purge by tag{node} removed what was stored"),
            Scope::Pieces(_) => format!("@, a change{node} removed the stored slices"),
        };
        (ruling.at, why)
    });
    let invalidated = sight.invalidated_at.map(|at| {
        let node = on_node(origins.of_change(at));
        let why = format!(
            "@, a request with an unsafe method (POST, PUT, DELETE …){node} invalidated it (RFC 9111 §4.4)"
        );
        (at, why)
    });
    [refused, failed, removed, invalidated].into_iter().flatten().max_by_key(|(at, _)| *at)
}
