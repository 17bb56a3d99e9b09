//! Who is a stranger, case by case.

use super::*;
use crate::fixture;
use crate::request::ConnectionFacts;
use millstream_conf::model::Network;
use std::net::SocketAddr;
use std::rc::Rc;

fn check(right: &ManageRight, from: &str, fields: &str, expected: bool) {
    let request = sent(from, fields);
    assert_eq!(judge(right, &request, API.pages).is_ok(), expected, "{from} {fields:?} {right:?}");
}

fn sent(from: &str, fields: &str) -> Request {
    let head = format!("PURGE /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    from_address("server { listen 127.0.0.1:80; location / { return 200 x; } }", &head, from)
}

fn from_address(configuration: &str, head: &str, from: &str) -> Request {
    let worker = fixture::worker(configuration);
    let mut request = fixture::admitted(&worker, head);
    let remote = match from {
        "unix:" => Address::Unix(None),
        text => Address::Tcp(SocketAddr::new(text.parse().expect("an address"), 4000)),
    };
    let known = &request.connection;
    let facts = ConnectionFacts::plain(remote, known.local.clone(), known.listener.get());
    request.connection = Rc::new(facts);
    request
}

const SITE: &str = "server { listen 127.0.0.1:80; server_name own.example; location / { return 200 x; } }";

fn allow(networks: &[Network]) -> ManageRight {
    ManageRight { allow: Some(networks.iter().copied().map(Allowed::Of).collect()), token: None }
}

fn this_machine() -> ManageRight {
    ManageRight { allow: Some(vec![Allowed::Local]), token: None }
}

fn network(address: &str, bits: u8) -> Network {
    Network::Ip(address.parse().expect("an address"), bits)
}

#[test]
fn where_nothing_is_written_this_machine_may_read_and_nobody_may_change_anything() {
    let right = ManageRight::default();
    for from in ["127.0.0.1", "::1", "unix:", "192.0.2.1"] {
        check(&right, from, "", false);
        let head = "GET /a HTTP/1.1\r\nHost: localhost\r\n";
        let may = |fields: &str, privilege: Privilege| {
            let request = from_address(SITE, &format!("{head}{fields}\r\n"), from);
            judge(&right, &request, privilege.pages).is_ok()
        };
        assert_eq!(may("", API), from != "192.0.2.1", "{from}");
        assert_eq!(may("", DASHBOARD), from != "192.0.2.1", "{from}");
        assert!(!may("X-Forwarded-For: 127.0.0.1\r\n", API), "{from}");
        // A location of the free module purges by GET.
        assert!(!may("", PURGE), "{from}");
    }
}

#[test]
fn local_is_this_machine_and_only_for_itself() {
    let right = this_machine();
    for from in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "unix:"] {
        check(&right, from, "", true);
    }
    for from in ["192.0.2.1", "10.0.0.1", "::2", "::ffff:10.0.0.1"] {
        check(&right, from, "", false);
    }
    for name in [
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "Via: 1.1 proxy",
        "x-real-ip: 127.0.0.1",
        "CF-Connecting-IPv6: ::1",
    ] {
        check(&right, "127.0.0.1", &format!("{name}\r\n"), false);
        check(&right, "unix:", &format!("{name}\r\n"), false);
    }
}

#[test]
fn a_web_page_that_drives_a_browser_on_this_machine_is_a_stranger() {
    let right = this_machine();
    check(&right, "127.0.0.1", "Origin: http://evil.example\r\n", false);
    check(&right, "127.0.0.1", "Sec-Fetch-Site: cross-site\r\n", false);
    check(&right, "127.0.0.1", "Sec-Fetch-Site: none\r\n", true);
    check(&right, "127.0.0.1", "Sec-Fetch-Site: same-origin\r\n", true);
}

#[test]
fn a_list_of_addresses_that_has_this_machine_lets_no_web_page_in() {
    let right = allow(&[network("127.0.0.0", 8), network("10.0.0.0", 8)]);
    let may = |head: &str, from| admits(&right, &from_address(SITE, head, from), API, LocationId(0));
    for (from, head, expected) in [
        ("127.0.0.1", "GET / HTTP/1.1\r\nHost: own.example\r\n\r\n", true),
        ("127.0.0.1", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", true),
        // A name that was resolved to this machine once its page was loaded.
        ("127.0.0.1", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", false),
        ("10.0.0.1", "GET / HTTP/1.1\r\nHost: proxy.internal\r\n\r\n", true),
        ("10.0.0.1", "POST / HTTP/1.1\r\nHost: own.example\r\n\r\n", true),
        ("10.0.0.1", "POST / HTTP/1.1\r\nHost: own.example\r\nOrigin: http://evil.example\r\n\r\n", false),
        ("127.0.0.1", "DELETE / HTTP/1.1\r\nHost: own.example\r\nSec-Fetch-Site: cross-site\r\n\r\n", false),
    ] {
        assert_eq!(may(head, from), expected, "{from} {head}");
    }
}

#[test]
fn a_get_is_answered_under_names_that_are_written_and_addresses_alone() {
    let configuration = "server { listen 127.0.0.1:80; server_name example.com *.example.net _; location / { return 200 x; } }";
    let check = |method: &str, host: &str, from: &str, expected: bool| {
        let head = format!("{method} /a HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let request = from_address(configuration, &head, from);
        assert_eq!(judge(&this_machine(), &request, API.pages).is_ok(), expected, "{method} {host} {from}");
    };
    for host in [
        "localhost",
        "LOCALHOST:8080",
        "a.localhost",
        "127.0.0.1",
        "127.0.0.1:80",
        "[::1]",
        "[::1]:8081",
        "192.0.2.7",
        "example.com",
        "Example.com.",
        "a.example.net",
    ] {
        check("GET", host, "127.0.0.1", true);
    }
    for host in
        ["evil.example", "example.com.evil.example", "localhost.evil.example", "127.0.0.1.evil.example"]
    {
        check("GET", host, "127.0.0.1", false);
        check("HEAD", host, "::1", false);
        // A browser sends Origin with these.
        check("PURGE", host, "127.0.0.1", true);
        check("POST", host, "127.0.0.1", true);
        check("GET", host, "unix:", true);
    }
}

#[test]
fn a_web_page_purges_nothing_from_an_address_that_may() {
    let check = |right: &ManageRight, fields: &str, expected: bool| {
        let request = sent("10.0.0.1", fields);
        assert_eq!(admits(right, &request, PURGE, request.route.location), expected, "{fields:?} {right:?}");
    };
    let listed = ManageRight { token: Some("s3cret".into()), ..allow(&[network("10.0.0.0", 8)]) };
    check(&listed, "", true);
    check(&listed, "Sec-Fetch-Site: none\r\n", true);
    check(&listed, "X-Forwarded-For: 1.2.3.4\r\n", false);
    check(&listed, "X-Forwarded-For: 1.2.3.4\r\nAuthorization: Bearer s3cret\r\n", true);
    for page in ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: http://evil.example"] {
        check(&listed, &format!("{page}\r\n"), false);
        check(&listed, &format!("{page}\r\nAuthorization: Bearer wrong\r\n"), false);
        check(&listed, &format!("{page}\r\nAuthorization: Bearer s3cret\r\n"), true);
    }
}

#[test]
fn what_a_proxy_on_this_machine_passes_on_is_not_its_own() {
    for name in
        ["X-Forwarded-For", "Forwarded", "Client-IP", "Fly-Client-IP", "X-Azure-ClientIP", "X-Forwarded"]
    {
        check(&this_machine(), "127.0.0.1", &format!("{name}: 1.2.3.4\r\n"), false);
    }
    check(&this_machine(), "127.0.0.1", "", true);
}

#[test]
fn a_list_of_addresses_admits_whom_it_has_and_nobody_whom_these_pass_on() {
    let right = allow(&[network("10.1.0.0", 16), network("2001:db8::", 32)]);
    for (fields, expected) in [
        ("X-Forwarded-For: 10.1.0.1\r\n", true),
        ("X-Forwarded-For: 10.1.0.1:4711, 10.1.0.2\r\nX-Real-IP: 10.1.0.1\r\n", true),
        ("Forwarded: for=\"[2001:db8::1]:80\";proto=https, for=10.1.0.1\r\n", true),
        ("Via: 1.1 proxy\r\n", true),
        ("X-Forwarded-For: 1.2.3.4\r\n", false),
        ("X-Forwarded-For: 10.1.0.1, 1.2.3.4\r\n", false),
        ("X-Forwarded-For: 1.2.3.4, 10.1.0.1\r\n", false),
        ("X-Forwarded-For: 10.1.0.1\r\nCF-Connecting-IP: 1.2.3.4\r\n", false),
        ("Forwarded: for=unknown\r\n", false),
        ("Forwarded: for=10.1.0.1, for=_hidden\r\n", false),
        ("X-Forwarded-For: nobody\r\n", false),
    ] {
        check(&right, "10.1.255.9", fields, expected);
    }
    check(&right, "::ffff:10.1.2.3", "", true);
    check(&right, "10.2.0.1", "", false);
    check(&right, "2001:db8:1::1", "", true);
    check(&right, "2001:db9::1", "", false);
    check(&right, "127.0.0.1", "", false);
    check(&right, "unix:", "", false);
    check(&allow(&[Network::Unix]), "unix:", "", true);
    check(&allow(&[Network::Unix]), "127.0.0.1", "", false);
    check(&allow(&[Network::All]), "192.0.2.1", "", true);
    check(&allow(&[]), "127.0.0.1", "", false);
    check(&allow(&[network("::ffff:10.0.0.0", 104)]), "10.9.9.9", "", true);
    check(&allow(&[network("0.0.0.0", 0)]), "192.0.2.1", "", true);
}

#[test]
fn a_token_admits_whoever_shows_it_and_is_asked_for_where_it_stands_alone() {
    let alone = ManageRight { allow: None, token: Some("s3cret".into()) };
    check(&alone, "192.0.2.1", "Authorization: Bearer s3cret\r\n", true);
    check(&alone, "192.0.2.1", "authorization: bearer s3cret\r\n", true);
    for wrong in
        ["Bearer s3cre", "Bearer s3crets", "Bearer s3creT", "Bearer ", "Basic s3cret", "Bearers3cret"]
    {
        check(&alone, "127.0.0.1", &format!("Authorization: {wrong}\r\n"), false);
    }
    check(&alone, "127.0.0.1", "", false);
    let both = ManageRight { token: Some("s3cret".into()), ..allow(&[network("10.0.0.0", 8)]) };
    check(&both, "10.0.0.1", "", true);
    check(&both, "10.0.0.1", "Authorization: Bearer wrong\r\n", true);
    check(&both, "192.0.2.1", "Authorization: Bearer s3cret\r\n", true);
    check(&both, "192.0.2.1", "Authorization: Bearer wrong\r\n", false);
}

#[test]
fn an_empty_token_admits_nobody() {
    let right = ManageRight { allow: None, token: Some(String::new()) };
    check(&right, "127.0.0.1", "Authorization: Bearer \r\n", false);
    check(&right, "127.0.0.1", "Authorization: Bearer x\r\n", false);
}

#[test]
fn the_dashboard_is_for_its_own_page_under_a_name_of_this_machine() {
    let configuration = "server { listen 127.0.0.1:80; server_name example.com *.example.net ~.; location / { return 200 x; } }";
    let check = |right: &ManageRight, request: &str, from: &str, expected: bool| {
        let request = from_address(configuration, &format!("{request}\r\n\r\n"), from);
        assert_eq!(judge(right, &request, DASHBOARD.pages).is_ok(), expected, "{from} {right:?}");
    };
    let listed = allow(&[network("10.0.0.0", 8)]);
    let guarded = ManageRight { allow: None, token: Some("s3cret".into()) };
    for (right, from) in [(&this_machine(), "127.0.0.1"), (&listed, "10.0.0.1")] {
        for method in ["GET", "POST"] {
            for host in
                ["localhost:8081", "a.localhost", "127.0.0.1:8081", "[::1]:8081", "10.0.0.7", "example.com"]
            {
                let request = format!("{method} / HTTP/1.1\r\nHost: {host}");
                check(right, &request, from, true);
                check(
                    right,
                    &format!("{request}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin"),
                    from,
                    true,
                );
                check(right, &format!("{request}\r\nOrigin: http://evil.example"), from, false);
                check(right, &format!("{request}\r\nOrigin: null"), from, false);
                check(right, &format!("{request}\r\nSec-Fetch-Site: cross-site"), from, false);
                check(right, &format!("{request}\r\nSec-Fetch-Site: same-site"), from, false);
                check(right, &request, "192.0.2.1", false);
            }
            for host in ["evil.example", "a.example.net", "127.0.0.1.evil.example"] {
                let request = format!("{method} / HTTP/1.1\r\nHost: {host}");
                check(right, &request, from, false);
                check(
                    right,
                    &format!("{request}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin"),
                    from,
                    false,
                );
            }
        }
    }
    check(
        &this_machine(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 1.2.3.4",
        "127.0.0.1",
        false,
    );
    check(&guarded, "GET / HTTP/1.1\r\nHost: localhost", "127.0.0.1", false);
    check(
        &guarded,
        "GET / HTTP/1.1\r\nHost: dash.example\r\nAuthorization: Bearer s3cret",
        "192.0.2.1",
        true,
    );
}
