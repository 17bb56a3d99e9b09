//! Which requests the cache has a part in, and that one key is one request.

use super::{Use, key, usage};
use crate::admission;
use crate::fixture::{admitted, worker};
use crate::request::{Arguments, Request};
use millstream_cache::key::{LONGEST_TEXT, text};

fn request(words: &str, head: &str) -> Request {
    let http = format!(
        "proxy_cache_path /nowhere keys_zone=zone:1m; server {{ listen 80; location / {{ \
         proxy_pass http://127.0.0.1:1; proxy_cache zone; {words} }} }}"
    );
    let mut request = admitted(&worker(&http), head);
    admission::route(&mut request).expect("it is decided");
    request
}

fn used(words: &str, head: &str) -> Use {
    let request = request(words, head);
    let proxy = request.location().settings.pass().expect("it is proxied");
    usage(&request, proxy.cache.as_ref().expect("it is cached"))
}

fn looked_up(words: &str, head: &str) -> Vec<u8> {
    match used(words, head) {
        Use::Lookup(key) => key,
        other => panic!("{other:?}: {head}"),
    }
}

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: api.example\r\n{fields}\r\n")
}

#[test]
fn the_text_of_a_key_is_nginx_s() {
    let key = looked_up("", &get("/a%20b?x=1", ""));
    assert_eq!(text(&key).escape_ascii().to_string(), "http127.0.0.1:1/a%20b?x=1");
}

#[test]
fn an_internal_redirect_has_the_key_of_where_it_goes() {
    let key_of = |uri: &str| {
        let mut request = request("", &get("/xb?c=1", ""));
        request.route.uri = uri.as_bytes().to_vec();
        request.route.arguments = Arguments::Replaced(b"d=2".to_vec());
        request.route.is_rewritten = true;
        let proxy = request.location().settings.pass().expect("it is proxied");
        key(&request, proxy.cache.as_ref().expect("it is cached")).expect("it is short")
    };
    assert_eq!(text(&key_of("/int/a b")).escape_ascii().to_string(), "http127.0.0.1:1/int/a%20b?d=2");
    assert_ne!(key_of("/int/a"), key_of("/int/b"));
    // Whoever asks for it, purges it, or outdates it by its own URL means the same.
    assert_eq!(key_of("/int/a b"), looked_up("", &get("/int/a%20b?d=2", "")));
}

#[test]
fn a_separator_in_a_value_makes_no_other_request_s_key() {
    let words = "proxy_cache_key $arg_a|$arg_b;";
    let one = looked_up(words, &get("/?a=x|y&b=z", ""));
    let other = looked_up(words, &get("/?a=x&b=y|z", ""));
    assert_eq!(text(&one), text(&other));
    assert_ne!(one, other);
    assert_eq!(one, looked_up(words, &get("/?b=z&a=x|y", "")));
}

#[test]
fn semicolons_and_repetitions_in_a_query_are_part_of_the_key() {
    let keys = ["/?a=1", "/?a=1;b=2", "/?a=1&b=2", "/?a=1&a=2", "/?a=1;a=2", "/;a=1", "/?", "/"]
        .map(|target| looked_up("", &get(target, "")));
    for (at, key) in keys.iter().enumerate() {
        assert!(!keys[..at].contains(key), "{}", text(key).escape_ascii());
    }
    // Only `&` separates arguments, so nothing behind a semicolon hides from a key that names one.
    let key = looked_up("proxy_cache_key $arg_a;", &get("/?a=1;a=2", ""));
    assert_eq!(text(&key), b"1;a=2");
}

#[test]
fn a_get_with_a_body_goes_past_the_cache_also_where_post_is_cached() {
    for words in ["", "proxy_cache_methods POST;"] {
        assert_eq!(used(words, &get("/", "Content-Length: 3\r\n")), Use::Past);
        assert_eq!(used(words, &get("/", "Transfer-Encoding: chunked\r\n")), Use::Past);
        let head = get("/", "Content-Length: 3\r\n").replace("GET", "HEAD");
        assert_eq!(used(words, &head), Use::Past);
    }
    let post = get("/", "Content-Length: 3\r\n").replace("GET", "POST");
    assert!(matches!(used("proxy_cache_methods POST;", &post), Use::Lookup(_)));
    assert_eq!(used("", &post), Use::None);
}

#[test]
fn a_request_whose_connection_takes_a_field_away_goes_past_the_cache() {
    for fields in [
        "Accept-Language: de\r\nConnection: keep-alive, Accept-Language\r\n",
        "X-Foo: 1\r\nConnection: close\r\nConnection: x-foo\r\n",
        "Connection: x-absent\r\n",
    ] {
        assert_eq!(used("", &get("/", fields)), Use::Past, "{fields}");
    }
    for fields in ["Connection: keep-alive, TE\r\nTE: trailers\r\n", "Connection: close\r\n"] {
        looked_up("", &get("/", fields));
    }
}

#[test]
fn a_key_of_more_than_8_kib_goes_past_the_cache() {
    let words = "proxy_cache_key $uri$uri$uri;";
    let long = format!("/{}", "x".repeat(LONGEST_TEXT / 3));
    assert_eq!(used(words, &get(&long, "")), Use::Past);
    looked_up(words, &get(&long[..long.len() - 2], ""));
    let request = request(words, &get(&long, ""));
    let proxy = request.location().settings.pass().expect("it is proxied");
    assert_eq!(key(&request, proxy.cache.as_ref().expect("it is cached")), None);
}

#[test]
fn a_bypass_has_the_key_of_a_look_up() {
    let words = "proxy_cache_bypass $http_x_fresh;";
    let Use::Bypass(key) = used(words, &get("/", "X-Fresh: 1\r\n")) else { panic!("it is a bypass") };
    assert_eq!(key, looked_up(words, &get("/", "")));
}
