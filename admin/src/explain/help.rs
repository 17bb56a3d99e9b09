//! What helps against a miss, or so that a response is stored: one line for each cause.
//!
//! A line that says what to change must be safe to follow without knowing the API: it ends no session, gives no client the page of
//! another, and sends the API no more requests. Where no change is safe the line says what happened and nothing else. Each change is
//! followed by a test (`tests/tests/scenarios/advice.rs`). Next: `explain` and `misses`, which show the lines.

use millstream_cache::policy::Reason;
use millstream_conf::model::ProxyCache;

/// For the reasons that the API can remove by saying that a response is public.
const SAY_PUBLIC: &str =
    "have the API send Cache-Control: public, max-age=… with each response that is the same for every client";

/// How to have such a response stored.
pub(crate) fn help(reason: Reason) -> &'static str {
    match reason {
        Reason::Method => "responses to methods other than GET and HEAD are valid only for their own request",
        Reason::Status => {
            "responses to range requests are stored only with slice or proxy_cache_max_range_offset"
        }
        Reason::NoCacheDirective => {
            "proxy_no_cache prevents storing; explain shows which of its values applies"
        }
        Reason::XAccelExpires => "the API forbids storing with X-Accel-Expires",
        Reason::NoStore => "the API forbids storing with no-store",
        Reason::Private => "the API restricts the response to one client with private",
        Reason::NoCache => {
            "have the API send an ETag or Last-Modified; in an nginx.conf, write proxy_cache_revalidate on, with proxy_cache_credentials public \
             and proxy_cache_vary origin unlisted address, which keep clients apart: the API then sends 304 without a body"
        }
        Reason::Expired => {
            "the response is stale on arrival: max-age=0, an Expires that has passed (compare its clock), or an Age beyond its lifetime"
        }
        Reason::NoLifetime => {
            "write proxy_cache_valid 200 1s (serve: --microcache 1s), with proxy_cache_credentials public and proxy_cache_vary origin unlisted address, \
             which keep clients apart and which serve has; or have the API send Cache-Control: max-age=… with each response that is the same for every client"
        }
        Reason::ErrorStatus => "the API failed or refused the request; see its own log",
        Reason::SetCookie => "a response that sets a cookie belongs to one client",
        Reason::Vary => "have the API name at most 16 request fields in Vary, and no *",
        Reason::Authorization => {
            "write proxy_cache_credentials public and proxy_cache_vary origin unlisted address, which keep clients apart, and put \
             $http_authorization into proxy_cache_key, so that each credential has responses of its own; or have the API send \
             Cache-Control: public with each response that is the same for every client"
        }
        Reason::Credentials => SAY_PUBLIC,
        Reason::Unnamed => "have the API name the field in Vary, or put $http_rsc into proxy_cache_key",
        Reason::Streaming => "a stream is passed on as it arrives and never stored",
        Reason::MustUnderstand => {
            "the API forbids storing with must-understand, because the status is unknown"
        }
        Reason::KeyTooLong => "the cache key is longer than 8 KiB",
        Reason::RequestBody => {
            "responses to requests with a body are stored if the key contains it: QUERY, $request_body"
        }
        Reason::ClientNoStore => "the client forbids storing with no-store",
        Reason::TooLarge => "give the zone more room: max_size or memory of proxy_cache_path",
        Reason::StillArriving => "the response took longer than proxy_cache_fill_timeout",
        Reason::TooManyTags => "the response has more than 1,024 tags",
        Reason::DiskError => {
            "the error log shows what is wrong with the cache directory; if the directory is gone, millstream -s \
             reload creates it again"
        }
        Reason::NoValidator => "slices are stored only if the API sends an ETag or Last-Modified with them",
        Reason::Incomplete => {
            "the upstream closed the connection before the end of the response; see the error log"
        }
    }
}

/// How to have such a request served from the cache, by the name of its cause and the present settings.
pub(crate) fn help_against_miss(cause: &str, cache: Option<&ProxyCache>) -> &'static str {
    match cause {
        "absent" => {
            "the first request for a response is a miss; explain lists what is stored, and by which request fields it varies"
        }
        "expired" => expired(cache),
        "always_validate" => "the API requires validation at every use (no-cache)",
        "client" => "write proxy_cache_client_control off",
        "bypass" => "proxy_cache_bypass applies; explain shows which of its values",
        "credentials" => SAY_PUBLIC,
        "own_write" => {
            "a client that has just changed a resource reads its own change; write proxy_cache_invalidation on to apply each change at once"
        }
        "not_keyed" => {
            "the key does not contain all that determines the response (a body, another protocol, a URL made of a credential, a \
             field named by Connection), or it is longer than 8 KiB"
        }
        "leak" => {
            "proxy_cache_verify found a response that depends on something that the key lacks (see the error log); add that to the key, or \
             have the API send private, then reload"
        }
        "method" => "only methods of proxy_cache_methods are served from the cache",
        "scarce" => "write a smaller proxy_cache_min_uses, or give the zone more room",
        "lock_timeout" => "another request's response took longer than proxy_cache_lock_timeout",
        _ => "",
    }
}

fn expired(cache: Option<&ProxyCache>) -> &'static str {
    match cache.filter(|cache| cache.use_stale.updating && cache.background_update) {
        None => {
            "write proxy_cache_use_stale updating and proxy_cache_background_update on: clients get the stored response while a new \
             one is fetched"
        }
        Some(cache) if cache.stale_while_updating.is_some() => {
            "write a larger proxy_cache_stale_while_updating (serve: --stale) or a longer lifetime (the API's max-age, serve: --microcache): \
             the stored response was too old to be sent while a new one is fetched"
        }
        Some(_) => "the API forbids stale responses, with must-revalidate, proxy-revalidate or s-maxage",
    }
}
