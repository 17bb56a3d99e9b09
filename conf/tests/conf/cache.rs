//! The cache, purging, the API, ranges and stored files: what their directives mean, and what is said where they are wrong.

use std::fs;
use std::time::Duration;

use millstream_conf::diagnostics::Severity;
use millstream_conf::model::{
    Allowed, CacheVerify, Configuration, Expires, Handler, Heuristic, IfModifiedSince, ListenAddress,
    ManageRight, Network, OnLeak, Pace, ProxyCache, Store, Write,
};
use millstream_conf::{Loaded, Options, load};

use crate::fixture::{self, in_http, in_location, messages, one_error, one_warning, settings, text};

fn in_cached(directives: &str) -> String {
    in_http(&format!(
        "proxy_cache_path /c keys_zone=z:1m; server {{ listen 8080; location / {{ proxy_cache z; \
         proxy_pass http://127.0.0.1:8000; {directives} }} }}"
    ))
}

/// Without a warning, but those of [`crate::sharing`].
fn model(configuration: &str) -> Configuration {
    let mut warnings = messages(&text(configuration), Severity::Warning);
    warnings.retain(|text| !text.contains("sent to "));
    assert!(warnings.is_empty(), "{configuration}\n{warnings:#?}");
    fixture::model(configuration)
}

fn cache_of(configuration: &Configuration, path: &str) -> ProxyCache {
    let proxy = settings(configuration, path).pass().expect("the location proxies");
    proxy.cache.clone().expect("the location caches")
}

fn cache(directives: &str) -> ProxyCache {
    cache_of(&model(&in_cached(directives)), "/")
}

fn ip(text: &str, bits: u8) -> Network {
    Network::Ip(text.parse().expect("an address"), bits)
}

#[test]
fn the_defaults_of_a_cache_are_nginxs_and_its_own_directives_are_off() {
    let cache = cache("");
    assert!(!cache.cache_post && !cache.cache_query && cache.convert_head && !cache.revalidate);
    assert!(!cache.client_control && cache.heuristic.is_none() && cache.refresh_ahead.is_zero());
    assert!(!cache.explain && cache.purge_methods && !cache.purge_soft && cache.purge.is_empty());
    assert_eq!((cache.max_range_offset, cache.min_uses), (None, 1));
    assert_eq!(*cache.purge_right, ManageRight { allow: None, token: None });
}

#[test]
fn fields_made_of_what_the_key_does_not_tell_are_known() {
    let check = |directives: &str, expected: &[&str]| {
        let made = cache(directives).made_fields;
        assert_eq!(made.iter().map(|name| &**name).collect::<Vec<_>>(), expected, "{directives}");
    };
    check("", &[]);
    check("proxy_set_header X-User $cookie_user;", &["x-user"]);
    check("proxy_set_header X-User $cookie_user; proxy_cache_key $uri$cookie_user;", &[]);
    check("proxy_set_header X-User fixed; proxy_set_header Accept-Encoding '';", &[]);
    check("proxy_set_header X-Forwarded-Proto $scheme;", &[]);
    check("proxy_set_header X-Forwarded-Proto $scheme; proxy_cache_key $uri;", &["x-forwarded-proto"]);
    check("proxy_set_header Host $host; proxy_set_header Accept-Language $http_accept_language;", &[]);
    check("proxy_set_header X-Original-URI $request_uri;", &["x-original-uri"]);
}

#[test]
fn a_credential_that_is_made_counts_unless_the_key_names_all_of_it() {
    let check = |directives: &str, expected: bool| {
        assert_eq!(cache(directives).key_names_credential, expected, "{directives}");
    };
    check("", false);
    check("proxy_cache_key $uri$http_authorization;", true);
    check("proxy_set_header Authorization 'Bearer $cookie_tok';", false);
    check(
        "proxy_set_header authorization 'Bearer $cookie_tok'; proxy_cache_key $uri$http_authorization;",
        false,
    );
    check("proxy_set_header Authorization 'Bearer $cookie_tok'; proxy_cache_key $uri$cookie_tok;", true);
    check("proxy_set_header Authorization '';", true);
}

#[test]
fn every_directive_of_the_cache_reaches_the_model() {
    let cache = cache(
        "proxy_cache_methods post QUERY; proxy_cache_convert_head off; proxy_cache_max_range_offset 2m; \
         proxy_cache_client_control on; proxy_cache_heuristic 10% max=1h; proxy_cache_refresh_ahead 500ms; \
         proxy_cache_tag $arg_tag product; proxy_cache_tag all; proxy_cache_explain on; proxy_cache_purge $http_x_purge; \
         proxy_cache_purge_methods off; proxy_cache_purge_soft on; proxy_cache_purge_allow 10.0.0.0/8 unix:; \
         proxy_cache_purge_allow ::1; proxy_cache_purge_token 0123456789abcdef;",
    );
    assert!(cache.cache_post && cache.cache_query && !cache.convert_head);
    assert_eq!(cache.max_range_offset, Some(2 << 20));
    assert!(cache.client_control && cache.explain && cache.purge_soft && !cache.purge_methods);
    assert_eq!(cache.heuristic, Some(Heuristic { percent: 10, longest: Duration::from_secs(3600) }));
    assert_eq!(cache.refresh_ahead, Duration::from_millis(500));
    assert_eq!(cache.tags.iter().map(|tag| &*tag.source).collect::<Vec<_>>(), ["$arg_tag", "product", "all"]);
    assert_eq!(&*cache.purge[0].source, "$http_x_purge");
    assert_eq!(
        cache.purge_right.allow.as_deref(),
        Some(&[ip("10.0.0.0", 8), Network::Unix, ip("::1", 128)].map(Allowed::Of)[..])
    );
    assert_eq!(cache.purge_right.token.as_deref(), Some("0123456789abcdef"));
    let verify = self::cache("proxy_cache_verify 50% sample=30r/m on_leak=warn;").verify;
    let expected = CacheVerify { share: 1 << 31, interval: Duration::from_secs(2), on_leak: OnLeak::Warn };
    assert_eq!(verify, Some(expected));
    let verify = self::cache("proxy_cache_verify 0.5;").verify.expect("on");
    assert_eq!(
        (verify.share, verify.interval, verify.on_leak),
        (1 << 31, Duration::from_millis(100), OnLeak::Off)
    );
    assert!(self::cache("proxy_cache_verify off;").verify.is_none() && cache.verify.is_none());
    let a_day = Duration::from_secs(86_400);
    let heuristic = self::cache("proxy_cache_heuristic 100%;").heuristic;
    assert_eq!(heuristic, Some(Heuristic { percent: 100, longest: a_day }));
}

#[test]
fn a_level_replaces_what_the_level_above_says() {
    let configuration = model(
        "events { } http { access_log off; proxy_cache_path /c keys_zone=z:1m; proxy_cache z; proxy_cache_heuristic 10%;
         proxy_cache_purge_allow 10.0.0.1; proxy_cache_refresh_ahead 1s; proxy_cache_methods QUERY;
         server {
             location /kept { proxy_pass http://127.0.0.1:1; }
             location /own { proxy_pass http://127.0.0.1:1; proxy_cache_heuristic off; proxy_cache_purge_allow unix:;
                 proxy_cache_refresh_ahead off; proxy_cache_methods POST; } } }",
    );
    let kept = cache_of(&configuration, "/kept");
    assert!(kept.heuristic.is_some() && kept.cache_query && !kept.refresh_ahead.is_zero());
    assert_eq!(kept.purge_right.allow.as_deref(), Some(&[ip("10.0.0.1", 32)].map(Allowed::Of)[..]));
    let own = cache_of(&configuration, "/own");
    assert!(own.heuristic.is_none() && own.cache_post && !own.cache_query && own.refresh_ahead.is_zero());
    assert_eq!(own.purge_right.allow.as_deref(), Some(&[Network::Unix].map(Allowed::Of)[..]));
}

#[test]
fn the_places_of_the_directives_in_force_are_kept() {
    let configuration = model(
        "events { }\nhttp { access_log off;\nproxy_cache_path /c keys_zone=z:1m;\nproxy_cache z;\nproxy_cache_valid 1m;\n\
         proxy_no_cache $arg_a;\nexpires 1h;\nserver {\nproxy_ignore_headers Vary;\nlocation / {\n\
         proxy_pass http://127.0.0.1:1;\nproxy_cache_valid 404 1s;\nproxy_cache_valid any 2s;\n} } }",
    );
    let cache = cache_of(&configuration, "/");
    let places: Vec<_> = (cache.written.iter())
        .map(|(name, span)| (*name, configuration.sources.position(*span).line))
        .collect();
    assert_eq!(
        places,
        [
            ("proxy_cache", 4),
            ("proxy_no_cache", 6),
            ("expires", 7),
            ("proxy_ignore_headers", 9),
            ("proxy_cache_valid", 12),
            ("proxy_cache_valid", 13),
        ]
    );
    let lines: Vec<_> =
        cache.valid_spans.iter().map(|span| configuration.sources.position(*span).line).collect();
    assert_eq!((lines, cache.valid.len()), (vec![12, 13], 2));
}

#[test]
fn a_zone_has_a_purger_and_a_pace_for_each_kind_of_background_work() {
    let zone = |parameters: &str| {
        let configuration =
            model(&in_cached("").replace("keys_zone=z:1m", &format!("keys_zone=z:1m {parameters}")));
        configuration.http.cache_zones[0].clone()
    };
    let plain = zone("");
    assert!(!plain.purger);
    assert_eq!(
        (plain.purger_pace, plain.manager_pace, plain.loader_pace),
        (Pace::of(10), Pace::of(100), Pace::of(100))
    );
    let set = zone(
        "purger=on purger_files=5 purger_threshold=20ms purger_sleep=1s manager_files=0 manager_sleep=300ms loader_files=7 \
         loader_threshold=1s",
    );
    assert!(set.purger);
    let second = Duration::from_secs(1);
    assert_eq!(set.purger_pace, Pace { files: 5, threshold: Duration::from_millis(20), sleep: second });
    assert_eq!(set.manager_pace, Pace { files: 1, sleep: Duration::from_millis(300), ..Pace::of(1) });
    assert_eq!(set.loader_pace, Pace { files: 7, threshold: second, ..Pace::of(7) });
    let wrong =
        |parameter: &str| in_cached("").replace("keys_zone=z:1m", &format!("keys_zone=z:1m {parameter}"));
    one_error(&wrong("purger=yes"), "write \"on\"");
    one_error(&wrong("purger_file=5"), "did you mean \"purger_files\"?");
    one_error(&wrong("loader_sleeps=5"), "did you mean \"loader_sleep\"?");
    one_error(&wrong("walker_files=5"), "invalid parameter");
}

#[test]
fn values_of_the_cache_are_checked_where_they_stand() {
    one_error(&in_cached("proxy_cache_methods PUT;"), "write one of: GET, HEAD, POST, QUERY");
    one_error(&in_cached("proxy_cache_methods QUERRY;"), "did you mean \"QUERY\"?");
    one_error(&in_cached("proxy_cache_heuristic 0%;"), "must be between 1 and 100");
    one_error(&in_cached("proxy_cache_heuristic 101%;"), "must be between 1 and 100");
    one_error(&in_cached("proxy_cache_heuristic 10;"), "write a percentage such as 10%");
    one_error(&in_cached("proxy_cache_heuristic 10% min=1d;"), "max=1d");
    one_error(&in_cached("proxy_cache_heuristic off max=1d;"), "invalid parameter \"max=1d\"");
    one_error(&in_cached("proxy_cache_refresh_ahead soon;"), "soon");
    one_error(
        &in_cached("proxy_cache_verify 1;"),
        "write off, a percentage such as 1%, or a fraction such as 0.01",
    );
    one_error(&in_cached("proxy_cache_verify off on_leak=warn;"), "invalid share \"off\"");
    one_error(&in_cached("proxy_cache_verify 1% sample=10;"), "write a rate such as sample=10r/s");
    one_error(&in_cached("proxy_cache_verify 1% on_leak=on;"), "write on_leak=off or on_leak=warn");
    one_error(&in_cached("proxy_cache_verify 1% rate=1r/s;"), "the parameters are sample=rate and on_leak");
    one_error(
        &in_cached("proxy_cache_key $uri$upstream_cache_key;"),
        "cannot be part of \"proxy_cache_key\"",
    );
    one_error(&in_cached("proxy_cache_tags a;"), "did you mean \"proxy_cache_tag\"?");
    one_error(&in_cached("proxy_cache_refreshahead 1s;"), "did you mean \"proxy_cache_refresh_ahead\"?");
    one_error(&in_cached("proxy_cache_explian on;"), "did you mean \"proxy_cache_explain\"?");
    one_error(&in_cached("proxy_cache_heuristics 10%;"), "did you mean \"proxy_cache_heuristic\"?");
    one_error(&in_cached("add_header A $upstream_cache_keys;"), "did you mean \"$upstream_cache_key\"?");
}

#[test]
fn rights_are_addresses_or_a_token_and_nothing_else() {
    one_error(&in_cached("proxy_cache_purge_allow localhost;"), "write 127.0.0.1 and ::1");
    one_error(&in_cached("proxy_cache_purge_allow 10.0.0.0/33;"), "is not an address or a network");
    one_error(&in_cached("proxy_cache_purge_allow 127.0.0.1:80;"), "write 127.0.0.1");
    one_error(&in_cached("proxy_cache_purge_allow $remote_addr;"), "variables in a list of addresses");
    one_error(&in_cached("proxy_cache_purge_token \"\";"), "openssl rand");
    one_error(&in_cached("proxy_cache_purge_token \"a b\";"), "a token consists of letters");
    one_error(&in_cached("proxy_cache_purge_token $arg_a;"), "variables in a token");
    one_warning(&in_cached("proxy_cache_purge_token secret;"), "a token of 6 characters is easy to guess");
    one_warning(&in_cached("proxy_cache_purge_allow 10.1.2.3/8;"), "low address bits of \"10.1.2.3/8\"");
    one_warning(&in_cached("proxy_cache_purge_allow all;"), "every client may purge");
    one_warning(&in_cached("proxy_cache_purge_allow 127.0.0.1 ::/0;"), "every client may purge");
    one_warning(
        &in_cached("proxy_cache_purge_allow all; proxy_cache_purge_token 0123456789abcdef;"),
        "without a token",
    );
    one_warning(&in_location("api write=on; api_allow all;"), "every client may change");
    model(&in_location("api; api_allow all;"));
}

#[test]
fn purging_that_cannot_be_meant_is_told() {
    one_warning(&in_location("proxy_pass http://127.0.0.1:1; proxy_cache_purge $arg_p;"), "\"proxy_cache\"");
    one_warning(
        &in_location("proxy_pass http://127.0.0.1:1; proxy_cache_tag a;"),
        "\"proxy_cache_tag\" has no effect",
    );
    one_warning(&in_location("return 200; api_allow unix:;"), "no location with \"api\"");
    one_error(&in_cached("proxy_cache_purge 1;"), "every request here would purge");
    model(&in_cached("proxy_cache_purge 0 $arg_p;"));
}

#[test]
fn the_free_modules_forms_of_purging_are_understood() {
    let from = cache("proxy_cache_purge PURGE from 127.0.0.1 10.0.0.0/8;");
    assert!(from.purge_methods && from.purge.is_empty());
    let allowed = [ip("127.0.0.1", 32), ip("10.0.0.0", 8)];
    assert_eq!(from.purge_right.allow.as_deref(), Some(&allowed.map(Allowed::Of)[..]));
    assert!(!cache("proxy_cache_purge off;").purge_methods);
    one_warning(&in_cached("proxy_cache_purge on;"), "Millstream none");
    one_warning(&in_cached("proxy_cache_purge on from all;"), "every client may purge");
    one_error(&in_cached("proxy_cache_purge DELETE from 127.0.0.1;"), "the purge method is PURGE");
    one_error(
        &in_cached("proxy_cache_purge PURGE purge_all from 127.0.0.1;"),
        "invalid parameter \"purge_all\"",
    );
    one_error(&in_cached("proxy_cache_purge PURGE from;"), "invalid parameter \"from\"");
}

#[test]
fn a_zone_and_a_key_purge_in_a_location_of_their_own() {
    let purging = "location ~ ^/purge(/.*) { proxy_cache_purge z $scheme$1*; proxy_cache_purge_soft on; \
                   proxy_cache_purge_allow unix:; } location /";
    let configuration = model(&in_cached("").replace("location /", purging));
    let id = configuration.http.servers[0].locations.regexes[0];
    let Handler::Purge(place) = &configuration.http.location(id).settings.content else {
        panic!("it purges")
    };
    assert_eq!((place.zone.0, &*place.key.source, place.soft), (0, "$scheme$1*", true));
    assert_eq!(place.right.allow.as_deref(), Some(&[Network::Unix].map(Allowed::Of)[..]));
    let own = "needs a separate location";
    one_error(&in_cached("proxy_cache_purge z $uri;"), own);
    one_error(&in_cached("").replace("location /", "proxy_cache_purge z $uri; location /"), own);
    one_error(&in_cached("").replace("server {", "proxy_cache_purge z $uri; server {"), own);
    let pages = in_cached("")
        .replace("keys_zone=z:", "keys_zone=pages:")
        .replace("proxy_cache z", "proxy_cache pages");
    one_error(
        &pages.replace("location /", "location /purge { proxy_cache_purge page $uri; } location /"),
        "did you mean \"pages\"?",
    );
}

#[test]
fn a_slice_must_be_in_the_key_and_in_the_request() {
    let whole = "slice 1m; proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range;";
    let configuration = model(&in_cached(whole));
    assert_eq!(settings(&configuration, "/").slice, 1 << 20);
    for (directives, at, help) in [
        (
            "slice 1m; proxy_set_header range $slice_range;",
            "slice",
            "write proxy_cache_key $scheme$proxy_host$request_uri$slice_range;",
        ),
        (
            "slice 1m; proxy_set_header Range $slice_range; proxy_cache_key $uri;",
            "proxy_cache_key",
            "write proxy_cache_key $uri$slice_range;",
        ),
        (
            "slice 1m; proxy_cache_key $uri$slice_range;",
            "slice",
            "write proxy_set_header Range $slice_range;",
        ),
        (
            "slice 1m; proxy_cache_key $uri$slice_range; proxy_set_header Range bytes=0-9;",
            "slice",
            "write proxy_set_header Range $slice_range;",
        ),
        (
            "slice 1m; proxy_cache_key $uri$slice_range; proxy_set_header Host $http_host; proxy_set_header X-A \"a b\";",
            "slice",
            "the location needs all of proxy_set_header Host $http_host; proxy_set_header X-A \"a b\"; \
             proxy_set_header Range $slice_range;",
        ),
    ] {
        let configuration = in_cached(directives);
        one_error(&configuration, help);
        let loaded = text(&configuration);
        let found = loaded.diagnostics.sorted();
        let error = found.into_iter().find(|finding| finding.severity == Severity::Error);
        let span = error.and_then(|error| error.span);
        let start = configuration.find(at).expect("it is written");
        assert_eq!(span.map(|span| span.start as usize), Some(start), "{directives}");
    }
    one_warning(
        &in_cached("slice 1m;"),
        "write proxy_set_header Range $slice_range; and proxy_cache_key $scheme",
    );
    model(&in_cached("slice 0;"));
}

#[test]
fn a_location_stores_or_caches() {
    let configuration = model(
        "events { } http { access_log off; proxy_cache_path /c keys_zone=z:1m; proxy_cache z;
         server {
             location / { proxy_pass http://127.0.0.1:1; }
             location /on { proxy_pass http://127.0.0.1:1; proxy_store on; proxy_store_access group:rw all:r; }
             location /off { proxy_pass http://127.0.0.1:1; proxy_store off; proxy_store_access user:r; }
             location /path { proxy_pass http://127.0.0.1:1; proxy_store data$uri; proxy_store_access user:rw group:r; } } }",
    );
    let proxy = |path| settings(&configuration, path).pass().cloned().expect("the location proxies");
    assert!(
        proxy("/").cache.is_some() && proxy("/").store.place == Store::Off && proxy("/").store.mode == 0o600
    );
    assert!(
        proxy("/on").cache.is_none()
            && proxy("/on").store.place == Store::Root
            && proxy("/on").store.mode == 0o664
    );
    assert!(proxy("/off").cache.is_some() && proxy("/off").store.mode == 0o400);
    let Store::Path(path) = &proxy("/path").store.place else { panic!("a path") };
    assert_eq!((&*path.source, proxy("/path").store.mode), ("/prefix/data$uri", 0o640));
    one_error(&in_cached("proxy_store on;"), "incompatible with \"proxy_cache\"");
    one_error(&in_cached("").replace("proxy_cache z;", "proxy_store /x; proxy_cache z;"), "incompatible");
    one_error(&in_location("proxy_pass http://127.0.0.1:1; proxy_store \"\";"), "empty path");
    one_error(
        &in_location("proxy_pass http://127.0.0.1:1; proxy_store_access user:w;"),
        "write user:, group: or all:",
    );
}

#[test]
fn ranges_conditions_and_expires_have_nginxs_forms() {
    let of = |directives: &str| settings(&model(&in_location(directives)), "/").clone();
    let plain = of("");
    assert!(plain.ranges.etag && plain.ranges.max.is_none() && plain.headers.expires == Expires::Off);
    assert_eq!(plain.ranges.if_modified_since, IfModifiedSince::Exact);
    let set = of("etag off; max_ranges 0; if_modified_since before; expires modified -1d;");
    assert_eq!(
        (set.ranges.etag, set.ranges.max, set.ranges.if_modified_since),
        (false, Some(0), IfModifiedSince::Before)
    );
    assert_eq!(set.headers.expires, Expires::Modified(-86_400));
    assert_eq!(of("expires epoch;").headers.expires, Expires::Epoch);
    assert_eq!(of("expires @15h30m;").headers.expires, Expires::Daily(55_800));
    assert!(
        matches!(of("expires $arg_e;").headers.expires, Expires::Variable(value, false) if &*value.source == "$arg_e")
    );
    assert!(matches!(of("expires modified $arg_e;").headers.expires, Expires::Variable(_, true)));
    let ranges =
        settings(&model(&in_location("proxy_pass http://127.0.0.1:1; proxy_force_ranges on;")), "/").clone();
    assert!(ranges.pass().expect("it proxies").exchange.force_ranges);
    one_error(&in_location("expires never;"), "epoch, max or off");
    one_error(&in_location("expires modified max;"), "cannot be used with \"modified\"");
    one_error(&in_location("expires modifed 1d;"), "did you mean \"modified\"?");
    one_error(&in_location("expires @25h;"), "less than 24 hours");
    one_error(&in_location("if_modified_since after;"), "write one of: off, exact, before");
}

#[test]
fn words_are_taken_as_nginx_takes_them() {
    let cache =
        cache("proxy_cache_use_stale ERROR Updating non_idempotent; proxy_next_upstream updating http_502;");
    assert!(cache.use_stale.error && cache.use_stale.updating && !cache.use_stale.timeout);
    let loaded = text(&in_cached("proxy_next_upstream updating;"));
    let idle = messages(&loaded, Severity::Idle);
    assert!(idle.iter().any(|said| said.starts_with("\"updating\" has no effect")), "{idle:#?}");
    let before = settings(&model(&in_location("if_modified_since Before;")), "/").ranges.if_modified_since;
    assert_eq!(before, IfModifiedSince::Before);
    one_error(&in_cached("proxy_cache_use_stale errors;"), "did you mean \"error\"?");
}

#[test]
fn a_location_knows_every_template_it_evaluates() {
    let configuration = model(
        &in_cached(
            "root /$arg_root; index $arg_index; error_page 500 /$arg_page; add_header A $arg_add; expires $arg_expires; \
             access_log a.log f if=$arg_if; return 200 $arg_return; proxy_set_header X $arg_set; proxy_redirect $arg_from $arg_to; \
             proxy_redirect ~x $arg_new; proxy_method $arg_method; proxy_cache_key $arg_key; proxy_cache_bypass $arg_bypass; \
             proxy_no_cache $arg_no; proxy_cache_tag $arg_tag; proxy_cache_purge $arg_purge;",
        )
        .replace("http {", "http { log_format f $arg_log;")
        .replace("proxy_pass http://127.0.0.1:8000", "proxy_pass http://$arg_pass"),
    );
    let sources: Vec<&str> =
        settings(&configuration, "/").templates().iter().map(|template| &*template.source).collect();
    for name in [
        "root", "index", "page", "add", "expires", "if", "return", "set", "from", "to", "new", "method",
        "key", "bypass", "no", "tag", "purge", "log", "pass",
    ] {
        let named = format!("$arg_{name}");
        assert!(sources.iter().any(|source| source.ends_with(&named)), "{named}: {sources:?}");
    }
}

#[test]
fn the_api_is_a_location_of_its_own() {
    let configuration = model(
        "events { } http { access_log off; api_token 0123456789abcdef; server {
         location /api { api write=on; api_allow 10.0.0.0/8; location /api/x { } } location /see { api; } location / { } } }",
    );
    let content = |path| settings(&configuration, path).content.clone();
    let Handler::Api(api) = content("/api") else { panic!("the API") };
    assert!(api.write == Write::On && api.right.token.is_some());
    assert_eq!(api.right.allow.as_deref(), Some(&[ip("10.0.0.0", 8)].map(Allowed::Of)[..]));
    let Handler::Api(see) = content("/see") else { panic!("the API") };
    assert!(see.write == Write::Off && see.right.allow.is_none());
    assert!(matches!(content("/"), Handler::Files));
    one_error(&in_location("api writes=on;"), "did you mean \"write\"?");
    one_error(&in_location("api on;"), "write api; or api write=on;");
    one_warning(&in_location("api; proxy_pass http://127.0.0.1:1;"), "the API responds");
}

fn from_file(directives: &str) -> Loaded {
    let directory = tempfile::tempdir().expect("a directory");
    let text = format!("{directives} events {{ }} http {{ access_log off; server {{ listen 8080; }} }}");
    fs::write(directory.path().join("nginx.conf"), text).expect("written");
    load(&Options { main_file: "nginx.conf".into(), prefix: directory.path().into(), ..Options::default() })
}

#[test]
fn the_control_socket_is_a_server_of_its_own_that_nobody_else_may_open() {
    let configuration = from_file("pid /run/m.pid;").configuration.expect("no errors");
    assert_eq!(configuration.main.control_socket.as_deref(), Some("/run/m.sock".as_ref()));
    let [public, control] = &configuration.http.listeners[..] else { panic!("two addresses") };
    assert!(!public.owner_only && control.owner_only);
    assert_eq!(control.address, ListenAddress::Unix("/run/m.sock".into()));
    let server = configuration.http.server(control.default_server);
    let [(path, id)] = &server.locations.prefixes[..] else { panic!("one location") };
    let settings = &configuration.http.location(*id).settings;
    let Handler::Api(api) = &settings.content else { panic!("the API") };
    assert!(path == "/" && api.write == Write::On && api.right.token.is_none());
    assert_eq!(api.right.allow.as_deref(), Some(&[Network::Unix].map(Allowed::Of)[..]));
    assert!(settings.logs.access.is_empty() && !settings.logs.error.is_empty());
}

#[test]
fn the_control_socket_can_be_elsewhere_or_off_and_must_fit_an_address() {
    let of = |directives: &str| from_file(directives).configuration.expect("no errors").main.control_socket;
    assert_eq!(of("pid /run/m;").as_deref(), Some("/run/m.sock".as_ref()));
    assert_eq!(of("control_socket unix:/run/c;").as_deref(), Some("/run/c".as_ref()));
    assert_eq!(of("control_socket off;"), None);
    assert_eq!(of("pid /dev/null;"), None);
    assert_eq!(text("events { } http { }").configuration.expect("no errors").main.control_socket, None);
    let long = "x".repeat(100);
    let loaded = from_file(&format!("control_socket /{long};"));
    let errors = messages(&loaded, Severity::Error);
    assert!(
        errors.len() == 1 && errors[0].contains("101 bytes") && errors[0].contains("/run/"),
        "{errors:#?}"
    );
    let loaded = from_file(&format!("pid /{long}.pid;"));
    assert_eq!(messages(&loaded, Severity::Warning).len(), 1);
    let configuration = loaded.configuration.expect("a long pid path is no mistake");
    assert_eq!((configuration.main.control_socket, configuration.http.listeners.len()), (None, 1));
    one_error(
        "control_socket /run/c; events { } http { access_log off; server { listen unix:/run/c; } }",
        "is the control_socket",
    );
}

#[test]
fn a_check_says_which_fields_and_credentials_the_cache_sees_to() {
    let idle = |directives: &str| messages(&text(&in_cached(directives)), Severity::Idle);
    let has = |directives: &str, part: &str| idle(directives).iter().any(|message| message.contains(part));
    assert!(has("", "X-Forwarded-Host"));
    let credential = "add $http_authorization to proxy_cache_key";
    assert!(has("", credential));
    assert!(has("proxy_cache_key $uri$remote_user;", credential), "a claimed name is no credential");
    assert!(!has("proxy_cache_key $uri$http_authorization;", credential));
}

#[test]
fn what_is_often_written_wrongly_is_told_as_it_has_to_be_written() {
    for (directive, help) in [
        ("proxy_cache_valid 2xx 5m;", "write each status, as in proxy_cache_valid 200 204 5m; or any"),
        ("proxy_cache_valid 5m 200;", "write the time last: proxy_cache_valid 200 5m;"),
        ("proxy_cache_valid 1h any;", "time"),
        ("proxy_cache_use_stale error http_501;", "write one of: off, error, timeout"),
        ("expires 1 hour;", "expires 1h;"),
        ("expires 3 Minutes;", "expires 3m;"),
        ("expires 2 months;", "expires 2M;"),
        ("expires soon 1h;", "write one of: modified"),
    ] {
        one_error(&in_cached(directive), help);
    }
    let whole = in_cached("");
    one_error(&format!("control_socket on; {whole}"), "write a path such as /run/millstream.sock, or off");
    for bound in ["max_size=1g", "min_free=1g"] {
        let memory = whole.replace("/c keys_zone=z:1m", &format!("memory keys_zone=z:1m {bound}"));
        one_warning(&memory, "this limits files, but the zone has none");
    }
}

#[test]
fn a_zone_that_requests_choose_is_fixed_in_a_face_of_the_location_for_each() {
    let http = model(
        "events { } http { access_log off; proxy_cache_path /a keys_zone=a:1m; proxy_cache_path /b keys_zone=b:1m; \
         proxy_cache_key $uri$http_authorization; proxy_no_cache $http_cookie; \
         server { listen 8080; location / { proxy_cache $arg_zone; proxy_pass http://127.0.0.1:8000; \
         if ($arg_if) { add_header X-If yes; } } } }",
    )
    .http;
    let (_, id) = &http.servers[0].locations.prefixes[0];
    let location = http.location(*id);
    assert!(location.settings.cache().is_none(), "a request that chooses none has none");
    // The block of the `if`, and for both of them a face in each zone.
    assert_eq!(location.faces.len(), 5);
    for face in location.faces.iter().chain([id]) {
        let face = http.location(*face);
        let named: Vec<&str> = face.zones.iter().map(|(name, _)| &**name).collect();
        assert_eq!(named, ["a", "b"]);
        assert_eq!(face.faces.len(), 5);
        let pass = face.settings.pass().expect("it passes on");
        assert_ne!(pass.cache.is_some(), pass.chosen_zone.is_some());
        for (name, fixed) in face.zones.iter() {
            let fixed = http.location(*fixed).settings.cache().expect("a zone");
            assert_eq!(http.cache_zone(fixed.zone).name, **name);
            assert_eq!((&*fixed.key.source, fixed.no_cache.len()), ("$uri$http_authorization", 1));
        }
    }
}
