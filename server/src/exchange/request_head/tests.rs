//! What of a client's fields an upstream gets to see.

use super::{RequestFraming, RequestPlan, unkeyed, write, write_block};
use crate::admission;
use crate::fixture::{admitted, worker};
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::Method;
use millstream_wire::h2::hpack::decoder::HpackDecoder;

fn sent(words: &str, fields: &str, cached: bool) -> String {
    let http = format!(
        "proxy_cache_path /nowhere keys_zone=zone:1m; server {{ listen 80; location / {{ \
         proxy_pass http://127.0.0.1:1; {words} }} }}"
    );
    let head = format!("GET / HTTP/1.1\r\nHost: api.example\r\n{fields}\r\n");
    let mut request = admitted(&worker(&http), &head);
    admission::route(&mut request).expect("it is decided");
    request.cache.status = cached.then_some(CacheStatus::Miss);
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings;
    let proxy = settings.pass().expect("it is proxied");
    let plan = RequestPlan {
        request: &request,
        proxy,
        method: Method::Get,
        uri: None,
        caching: cached,
        confirm: None,
        rest: None,
        framed: RequestFraming::None,
        codings: None,
    };
    let mut out = Vec::new();
    write(&mut out, &plan, proxy.http().expect("in HTTP"));
    String::from_utf8(out).expect("all of it is text")
}

fn all() -> String {
    unkeyed::names().map(|name| format!("{}: evil\r\n", name.to_lowercase())).collect()
}

#[test]
fn fields_that_make_up_another_request_do_not_reach_the_upstream_of_a_cached_location() {
    let head = sent("proxy_cache zone;", &all(), true);
    assert!(!head.contains("evil"), "{head}");
}

/// Fields that an application may take for another host, scheme, file or form.
#[test]
fn fields_that_applications_believe_do_not_reach_the_upstream_of_a_cached_location() {
    for name in [
        "CF-Visitor",
        "X-Sendfile-Type",
        "X-Accel-Mapping",
        "Ssl-Offloaded",
        "X-AppEngine-Https",
        "X-Forwarded-Https",
    ] {
        let field = format!("{name}: evil\r\n");
        assert!(!sent("proxy_cache zone;", &field, true).contains("evil"), "{name}");
        assert!(sent("", &field, false).contains("evil"), "{name}");
    }
}

#[test]
fn they_pass_where_the_cache_has_no_part_in_the_request() {
    for words in ["", "proxy_cache zone;"] {
        let head = sent(words, &all(), false);
        assert_eq!(head.matches("evil").count(), unkeyed::names().count(), "{head}");
    }
}

#[test]
fn one_that_the_key_names_passes_and_the_others_do_not() {
    let words = "proxy_cache zone; proxy_cache_key $uri$http_x_forwarded_host;";
    let head = sent(words, "X-Forwarded-Host: a.example\r\nX-Forwarded-Proto: https\r\n", true);
    assert!(head.contains("X-Forwarded-Host: a.example\r\n"), "{head}");
    assert!(!head.contains("https"), "{head}");
}

#[test]
fn one_that_a_proxy_set_header_sets_is_what_that_says() {
    let words = "proxy_cache zone; proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto; \
                 proxy_set_header X-Forwarded-Host $host;";
    let head = sent(words, "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n", true);
    assert!(head.contains("X-Forwarded-Proto: https\r\n"), "{head}");
    assert!(head.contains("X-Forwarded-Host: api.example\r\n"), "{head}");
}

#[test]
fn who_asks_still_passes_and_conditions_and_ranges_of_the_client_do_not() {
    let fields = "X-Forwarded-For: 192.0.2.7\r\nX-Real-IP: 192.0.2.7\r\nCookie: a=1\r\nRange: bytes=0-1\r\n\
                  If-None-Match: \"e\"\r\nIf-Modified-Since: Sat, 21 Nov 2026 10:26:00 GMT\r\nIf-Range: \"e\"\r\n\
                  If-Match: \"e\"\r\nIf-Unmodified-Since: Sat, 21 Nov 2026 10:26:00 GMT\r\n";
    let head = sent("proxy_cache zone;", fields, true);
    for kept in ["X-Forwarded-For: 192.0.2.7\r\n", "X-Real-IP: 192.0.2.7\r\n", "Cookie: a=1\r\n"] {
        assert!(head.contains(kept), "{head}");
    }
    assert!(!head.contains("If-") && !head.contains("Range"), "{head}");
}

#[test]
fn a_credential_made_of_the_request_counts_and_one_of_the_configuration_does_not() {
    let check = |words: &str, fields: &str, expected: bool| {
        let worker = crate::fixture::worker(&format!(
            "server {{ listen 80; location / {{ proxy_pass http://127.0.0.1:1; {words} }} }}"
        ));
        let request =
            crate::fixture::admitted(&worker, &format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        let proxy = request.location().settings.pass().expect("it is proxied");
        assert_eq!(super::has_credential(&request, proxy), expected, "{words} {fields}");
    };
    check("", "", false);
    check("", "Authorization: Basic eDp5\r\n", true);
    check("proxy_set_header Authorization '';", "Authorization: Basic eDp5\r\n", false);
    check("proxy_set_header Authorization 'Basic eDp5';", "", false);
    check("proxy_set_header Authorization 'Bearer $cookie_tok';", "Cookie: tok=alice\r\n", true);
    check("proxy_set_header authorization $cookie_tok;", "", false);
}

fn hosts_in_block(location: &str, fields: &str) -> Vec<(String, String)> {
    let http = format!("server {{ listen 80; location / {{ {location} }} }}");
    let worker = worker(&http);
    let mut request = admitted(&worker, &format!("GET / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"));
    admission::route(&mut request).expect("it is decided");
    let proxy = request.location().settings.pass().expect("it is passed on");
    let plan = RequestPlan {
        request: &request,
        proxy,
        method: Method::Get,
        uri: None,
        caching: false,
        confirm: None,
        rest: None,
        framed: RequestFraming::None,
        codings: None,
    };
    let (mut block, mut hosts) = (Vec::new(), Vec::new());
    write_block(&mut block, &plan, None, false);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut decoder = HpackDecoder::default();
    let whole = decoder.decode(&block, usize::MAX, |line| {
        if matches!(line.name(), b":authority" | b"host") {
            hosts.push((text(line.name()), text(line.value())));
        }
    });
    assert!(whole.is_ok(), "{whole:?}");
    hosts
}

#[test]
fn over_http2_there_is_one_authority_whatever_host_is_set_to() {
    let http = "proxy_pass http://127.0.0.1:8080; proxy_http_version 2;";
    let grpc = "grpc_pass grpc://127.0.0.1:8080;";
    for (location, fields, expected) in [
        (http.to_owned(), "", "127.0.0.1:8080"),
        (format!("{http} proxy_set_header Host $http_x_tenant;"), "", "127.0.0.1:8080"),
        (format!("{http} proxy_set_header Host $http_x_tenant;"), "X-Tenant: t.example\r\n", "t.example"),
        (format!("{http} proxy_set_header Host '';"), "", "127.0.0.1:8080"),
        (grpc.to_owned(), "", "127.0.0.1:8080"),
        (format!("{grpc} grpc_set_header Host $http_x_tenant;"), "", "127.0.0.1:8080"),
        (format!("{grpc} grpc_set_header Host $host;"), "", "a.example"),
    ] {
        let hosts = hosts_in_block(&location, fields);
        assert_eq!(hosts, [(":authority".to_owned(), expected.to_owned())], "{location} {fields}");
    }
}
