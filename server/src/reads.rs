//! What a configuration reads of a request, where keeping it for that costs something: heads for the log, bodies in files, offers of clients.
//!
//! Before: `left_out`, for what a cache compares; next: `generation`, which has it.

use crate::left_out::LeftOut;
use millstream_conf::model::{Http, Making, Upstream, Variable};
use millstream_conf::variables::Builtin;

pub struct Reads {
    /// `$sent_http_`: heads are kept for the log.
    pub sent_heads: bool,
    /// `$upstream_http_`, `$upstream_cookie_`, and what the cache knows of an entry.
    pub upstream_heads: bool,
    /// `$request_body` in a cache key.
    pub keyed_bodies: bool,
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
            keyed_bodies: keys_name_bodies(http),
            body_files: reads(http, |variable| is_builtin(variable, Builtin::RequestBodyFile)),
            offers: reads(http, is_of_offer),
            left_out: LeftOut::read_by(http),
        }
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

/// Whether a cache key contains `$request_body`, directly or through other variables.
fn keys_name_bodies(http: &Http) -> bool {
    let caches = http.locations.iter().filter_map(|location| location.settings.cache());
    let asking =
        caches.flat_map(|cache| std::iter::once(&cache.key).chain(&cache.bypass).chain(&cache.no_cache));
    let of_made = http.made.iter().filter_map(|made| made.making.as_ref()).flat_map(Making::templates);
    let is_body = |variable: &Variable| is_builtin(variable, Builtin::RequestBody);
    asking.chain(of_made).any(|template| template.variables().any(is_body))
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
