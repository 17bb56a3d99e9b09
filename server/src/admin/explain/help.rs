//! What to change so that an answer is stored: one line for each reason why it was not.
//!
//! Each names the directive or the field of the API, and what it costs where it is dangerous. Next: `explain`.

use millstream_cache::policy::Reason;

/// What to write, and where.
pub(in crate::admin) fn help(reason: Reason) -> &'static str {
    match reason {
        Reason::Method => {
            "proxy_cache_methods names the methods whose answers are stored: GET, HEAD, POST, QUERY"
        }
        Reason::Status => "answers to ranges are stored with slice, or with proxy_cache_max_range_offset",
        Reason::NoCacheDirective => {
            "take out proxy_no_cache, or the variable of it that is neither empty nor 0"
        }
        Reason::XAccelExpires => {
            "have the API send X-Accel-Expires with seconds, or write proxy_ignore_headers X-Accel-Expires"
        }
        Reason::NoStore => {
            "have the API send Cache-Control: max-age=…; or, where the answer is the same for everybody, write \
             proxy_ignore_headers Cache-Control and proxy_cache_valid 200 1m"
        }
        Reason::Private => {
            "have the API send Cache-Control: public, max-age=…; proxy_ignore_headers Cache-Control with \
             proxy_cache_valid 200 1m stores it too, and gives one client's answer to all, so only where it is the same"
        }
        Reason::NoCache => {
            "have the API send an ETag or Last-Modified, and write proxy_cache_revalidate on; or have it send max-age"
        }
        Reason::Expired => {
            "have the API send a longer max-age or a later Expires, or compare its clock and the Age of caches before it"
        }
        Reason::NoLifetime => {
            "write proxy_cache_valid with this status and a time (proxy_cache_valid 200 404 1m), or have the API send \
             Cache-Control: max-age=…"
        }
        Reason::SetCookie => {
            "have the API set no cookie here; proxy_ignore_headers Set-Cookie stores it and gives one client's cookie to \
             all, so write proxy_hide_header Set-Cookie beside it"
        }
        Reason::Vary => {
            "have the API name at most 16 request fields in Vary and no *; proxy_ignore_headers Vary gives one answer to \
             all, so put what it depends on into proxy_cache_key"
        }
        Reason::Authorization => {
            "put $http_authorization into proxy_cache_key, one answer for each; or, where all may have it, have the API \
             send Cache-Control: public or s-maxage=…"
        }
        Reason::Credentials => {
            "where the answer is the same for everybody, have the API send Cache-Control: public or s-maxage=…; where each has one of \
             its own, put the field into proxy_cache_key ($http_x_api_key)"
        }
        Reason::Unnamed => "have the API name the field in Vary, or put $http_rsc into proxy_cache_key",
        Reason::Streaming => {
            "a stream is passed on as it comes; where the answer is none, have the API send Content-Length, or Cache-Control: max-age=…, \
             and no X-Accel-Buffering: no"
        }
        Reason::MustUnderstand => "have the API leave must-understand out for this status",
        Reason::KeyTooLong => "shorten proxy_cache_key, for example by $uri with the arguments that matter",
        Reason::RequestBody => {
            "answers to a request with a body are stored where the key names it: QUERY, $request_body"
        }
        Reason::ClientNoStore => "leave no-store out of the request, or write proxy_cache_client_control off",
        Reason::TooLarge => "give the zone more room: max_size or memory of proxy_cache_path",
        Reason::StillArriving => "write a longer proxy_cache_fill_timeout where the API is only slow",
        Reason::TooManyTags => "have the API send at most 1,024 tags, or name fewer by proxy_cache_tag",
        Reason::DiskError => {
            "the error log says what is wrong with the directory; where it is gone, millstream -s reload makes it again"
        }
        Reason::NoValidator => {
            "have the API send an ETag or Last-Modified with answers to ranges, or take out slice"
        }
        Reason::Incomplete => "look at the error log: the upstream closed the connection before the end",
    }
}
