//! What a configuration reads of a request, where keeping it for that costs something: heads for the log, bodies in files, offers of clients.
//!
//! Before: `left_out`, for what a cache compares; next: `generation`, which has it.

use crate::left_out::LeftOut;
use millstream_conf::model::{Http, LocationId, Making, Settings, Template, Upstream, Variable, made};
use millstream_conf::variables::Builtin;

pub struct Reads {
    /// `$sent_http_`: heads are kept for the log.
    pub sent_heads: bool,
    /// `$upstream_http_`, `$upstream_cookie_`, and what the cache knows of an entry.
    pub upstream_heads: bool,
    /// One per `Http::locations`: whether its cache reads `$request_body`.
    pub keyed_bodies: Box<[bool]>,
    /// `$request_body_file`.
    pub body_files: bool,
    /// What clients offer in a handshake.
    pub offers: bool,
    pub left_out: LeftOut,
}

impl Reads {
    pub fn of(http: &Http) -> Reads {
        Reads {
            sent_heads: reads(http, |variable| matches!(variable, Variable::SentHeader(_))),
            upstream_heads: reads(http, is_of_upstream_head),
            keyed_bodies: http
                .locations
                .iter()
                .map(|location| keys_name_bodies(http, &location.settings))
                .collect(),
            body_files: reads(http, |variable| is_builtin(variable, Builtin::RequestBodyFile)),
            offers: reads(http, is_of_offer),
            left_out: LeftOut::read_by(http),
        }
    }

    /// Whether the cache of a location reads `$request_body`: in its key, or in a condition.
    pub fn keys_bodies(&self, location: LocationId) -> bool {
        self.keyed_bodies.get(location.0 as usize).is_some_and(|names| *names)
    }
}

/// Whether any template reads such a variable. With `ssi` a response may name any.
fn reads(http: &Http, wanted: impl Fn(&Variable) -> bool) -> bool {
    if http.locations.iter().any(|location| location.settings.ssi.enabled) {
        return true;
    }
    let of_locations = http.locations.iter().flat_map(|location| location.settings.templates());
    let of_upstreams = http.upstreams.iter().flat_map(Upstream::templates);
    let of_made = http.made.iter().filter_map(|made| made.making.as_ref()).flat_map(Making::templates);
    of_locations.chain(of_upstreams).chain(of_made).any(|template| template.variables().any(&wanted))
}

fn is_of_offer(variable: &Variable) -> bool {
    use Builtin as B;
    let Variable::Builtin(variable) = variable else { return false };
    matches!(
        variable,
        B::SslCiphers | B::SslCurves | B::SslSessionId | B::SslSigalg | B::SslSigalgs | B::SslClientSigalg
    )
}

/// Directly or through other variables.
fn keys_name_bodies(http: &Http, settings: &Settings) -> bool {
    let Some(cache) = settings.cache() else { return false };
    let asking = std::iter::once(&cache.key).chain(&cache.bypass).chain(&cache.no_cache);
    let mut all =
        asking.flat_map(Template::variables).flat_map(|variable| made::made_of(&http.made, variable));
    all.any(|variable| is_builtin(variable, Builtin::RequestBody))
}

fn is_builtin(variable: &Variable, wanted: Builtin) -> bool {
    matches!(variable, Variable::Builtin(builtin) if *builtin == wanted)
}

fn is_of_upstream_head(variable: &Variable) -> bool {
    match variable {
        Variable::UpstreamHeader(_) | Variable::UpstreamCookie(_) => true,
        Variable::Builtin(builtin) => matches!(
            builtin,
            Builtin::UpstreamCacheAge | Builtin::UpstreamCacheLastModified | Builtin::UpstreamCacheEtag
        ),
        _ => false,
    }
}
