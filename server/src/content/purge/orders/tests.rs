//! Which keys a purge means, for keys as people make them.

use super::*;
use crate::content::purge::asked::{self, PurgeMethod};
use crate::fixture;

fn ask(locations: &str, head: &str) -> Result<Vec<String>, Refusal> {
    let worker = fixture::worker(&format!(
        "proxy_cache_path memory keys_zone=one:1m; proxy_cache_path memory keys_zone=two:1m;
         server {{ listen 127.0.0.1:80; server_name a b; {locations} }}
         server {{ listen 127.0.0.1:80; server_name c; location / {{ return 200 x; }} }}"
    ));
    let request = fixture::admitted(&worker, &format!("{head}\r\n\r\n"));
    let method = PurgeMethod::of(&request).expect("a purging method");
    let orders = of_request(&request, &asked::read(&request, method)?.wanted)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(orders
        .items
        .iter()
        .map(|(zone, item)| match item {
            PurgeItem::Key(key) => format!("{zone} key {}", text(millstream_cache::key::text(key))),
            PurgeItem::Text(key) => format!("{zone} text {}", text(key)),
            PurgeItem::Prefix(prefix) => format!("{zone} prefix {}", text(prefix)),
            PurgeItem::Tag(tag) => format!("{zone} tag {}", text(tag)),
            PurgeItem::All => format!("{zone} all"),
        })
        .collect())
}

#[track_caller]
fn check(locations: &str, head: &str, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|&text| text.to_owned()).collect();
    assert_eq!(ask(locations, head), Ok(expected), "{locations} {head}");
}

fn cached(key: &str) -> String {
    format!("location / {{ proxy_pass http://127.0.0.1:1; proxy_cache one; proxy_cache_key {key}; }}")
}

#[test]
fn the_key_is_that_of_a_get_plain_or_encrypted_and_of_a_head() {
    let head = "PURGE /x?y=1 HTTP/1.1\r\nHost: a:8080";
    check(&cached("$uri$is_args$args"), head, &["0 key /x?y=1"]);
    check(&cached("$scheme://$host$request_uri"), head, &["0 key http://a/x?y=1", "0 key https://a/x?y=1"]);
    check(&cached("$http_host$request_uri"), head, &["0 key a:8080/x?y=1"]);
    check(
        &cached("$scheme$request_method$host$request_uri"),
        head,
        &["0 key httpGETa/x?y=1", "0 key httpHEADa/x?y=1", "0 key httpsGETa/x?y=1", "0 key httpsHEADa/x?y=1"],
    );
}

#[test]
fn a_url_that_is_stored_in_slices_goes_with_all_of_them_and_no_other() {
    let key = cached("$host$uri$is_args$args$slice_range");
    check(&key, "PURGE /film.mp4 HTTP/1.1\r\nHost: a", &["0 key a/film.mp4", "0 prefix a/film.mp4bytes="]);
}

#[test]
fn a_prefix_of_urls_is_what_keys_have_in_common() {
    let head = "PURGE /x/* HTTP/1.1\r\nHost: a\r\nAccept: */*";
    check(&cached("$host$request_uri"), head, &["0 prefix a/x/"]);
    check(&cached("$host$request_uri$http_accept"), head, &["0 prefix a/x/"]);
    check(&cached("$host$uri|$cookie_lang|$args"), head, &["0 prefix a/x/"]);
    check(&cached("v1:$uri"), "PURGE /x* HTTP/1.1\r\nHost: a", &["0 prefix v1:/x"]);
    check(&cached("$uri$is_args$args"), "PURGE /x?page=* HTTP/1.1\r\nHost: a", &["0 prefix /x?page="]);
}

#[test]
fn a_key_that_does_not_begin_alike_is_refused_by_name() {
    for key in [
        "$args$uri",
        "$cookie_lang$request_uri",
        "v1$arg_id$uri",
        "$http_accept|$uri",
        "$host",
        "$arg_id",
        "$uri$host$uri$arg_a/$args",
    ] {
        let outcome = ask(&cached(key), "PURGE /x/* HTTP/1.1\r\nHost: a");
        if key.starts_with("$uri") {
            assert_eq!(outcome, Ok(vec!["0 prefix /x/".to_owned()]));
            continue;
        }
        let refusal = outcome.expect_err(key);
        assert_eq!(refusal.status, 400);
        assert!(refusal.text.contains(key) && refusal.text.contains("test.conf:2:"), "{}", refusal.text);
    }
}

#[test]
fn the_default_key_has_the_target_as_it_came() {
    let whole = "location / { proxy_pass http://127.0.0.1:1; proxy_cache one; }";
    check(
        whole,
        "PURGE /x/* HTTP/1.1\r\nHost: a",
        &["0 prefix http127.0.0.1:1/x/", "0 prefix https127.0.0.1:1/x/"],
    );
    let below = "location /x/ { proxy_pass http://127.0.0.1:1/app/; proxy_cache one; }";
    let head = "PURGE /x/y%20z?q HTTP/1.1\r\nHost: a";
    check(below, head, &["0 key http127.0.0.1:1/x/y%20z?q", "0 key https127.0.0.1:1/x/y%20z?q"]);
    let named = "location / { proxy_pass http://$cookie_backend; proxy_cache one; }";
    assert!(ask(named, "PURGE /x/* HTTP/1.1\r\nHost: a\r\nCookie: backend=b").is_err());
}

#[test]
fn a_prefix_goes_for_every_location_below_it_and_no_other() {
    let locations = "location / { proxy_pass http://127.0.0.1:1; proxy_cache one; proxy_cache_key 1$uri; }
         location /x/deep/ { proxy_pass http://127.0.0.1:1; proxy_cache two; proxy_cache_key 2$uri; }
         location /other/ { proxy_pass http://127.0.0.1:1; proxy_cache two; proxy_cache_key 3$uri; }
         location = /x/exact { proxy_pass http://127.0.0.1:1; proxy_cache two; proxy_cache_key 4$uri; }
         location ~ \\.php$ { proxy_pass http://127.0.0.1:1; proxy_cache two; proxy_cache_key 5$uri; }
         location /x/plain/ { proxy_pass http://127.0.0.1:1; }";
    check(
        locations,
        "PURGE /x/* HTTP/1.1\r\nHost: a",
        &["0 prefix 1/x/", "1 prefix 2/x/", "1 prefix 4/x/", "1 prefix 5/x/"],
    );
}

#[test]
fn tags_and_everything_go_for_the_zones_of_the_server() {
    let both = "location / { proxy_pass http://127.0.0.1:1; proxy_cache one; }
         location /b { proxy_pass http://127.0.0.1:1; proxy_cache two; }";
    check(both, "PURGE / HTTP/1.1\r\nHost: a\r\nxkey: t u", &["0 tag t", "0 tag u", "1 tag t", "1 tag u"]);
    check(both, "BAN / HTTP/1.1\r\nHost: a\r\nX-Url: .*\r\nX-Host: .*", &["0 all", "1 all"]);
}

#[test]
fn a_ban_for_any_host_is_refused_where_keys_tell_hosts_apart() {
    let head = "BAN / HTTP/1.1\r\nHost: a\r\nX-Url: ^/x/.*\r\nX-Host: .*";
    check(&cached("$uri"), head, &["0 prefix /x/"]);
    assert_eq!(ask(&cached("$host$uri"), head), Err(HOSTS_MATTER));
    let exact = "BAN / HTTP/1.1\r\nHost: a\r\nX-Url: ^/x$\r\nX-Host: .*";
    check(&cached("$uri"), exact, &["0 key /x"]);
    assert_eq!(ask(&cached("$host$uri"), exact), Err(HOSTS_MATTER));
    let named = "BAN / HTTP/1.1\r\nHost: x\r\nX-Url: ^/x/.*\r\nX-Host: ^(a|b)$";
    check(&cached("$host$uri"), named, &["0 prefix a/x/", "0 prefix b/x/"]);
    let elsewhere = "BAN / HTTP/1.1\r\nHost: a\r\nX-Url: ^/x/.*\r\nX-Host: ^c$";
    assert_eq!(ask(&cached("$host$uri"), elsewhere).map_err(|refusal| refusal.status), Err(404));
}
