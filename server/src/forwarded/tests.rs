//! Whom to believe, as cases; the fixture's requests come from 192.0.2.1.

use crate::fixture::{admitted, variable, worker};
use crate::variables::value;

fn said(trusted: &str, fields: &str) -> [String; 4] {
    let worker = worker(&format!("server {{ listen 80; {trusted} }}"));
    let request = admitted(&worker, &format!("GET / HTTP/1.1\r\nHost: own:81\r\n{fields}\r\n"));
    ["forwarded_for", "forwarded_addr", "forwarded_proto", "forwarded_host"]
        .map(|name| String::from_utf8_lossy(&value(&variable(name), &request)).into_owned())
}

const ALL: &str =
    "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n";

#[test]
fn nobody_is_believed_who_is_not_trusted() {
    let own = ["192.0.2.1", "192.0.2.1", "http", "own:81"];
    for trusted in ["", "trusted_proxy 192.0.2.2;", "trusted_proxy 198.51.100.0/24 unix: ::1;"] {
        assert_eq!(said(trusted, ALL), own, "{trusted}");
    }
    assert_eq!(said("trusted_proxy 192.0.2.1;", ""), own, "and a trusted one that says nothing adds nothing");
}

#[test]
fn a_trusted_proxy_is_believed_whatever_word_of_its_list_it_is() {
    for trusted in ["192.0.2.1", "192.0.2.0/24", "all", "10.0.0.1 192.0.2.1", "::ffff:192.0.2.1"] {
        let expected = ["203.0.113.9, 192.0.2.1", "203.0.113.9", "https", "a.example"];
        assert_eq!(said(&format!("trusted_proxy {trusted};"), ALL), expected, "{trusted}");
    }
}

#[test]
fn the_client_is_the_last_address_that_is_no_proxy_of_ours() {
    for (chain, client) in [
        ("X-Forwarded-For: 198.51.100.7\r\n", "198.51.100.7"),
        ("X-Forwarded-For: 1.1.1.1, 198.51.100.7, 192.0.2.9\r\n", "198.51.100.7"),
        ("X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 198.51.100.7:4000 , 192.0.2.9\r\n", "198.51.100.7"),
        ("X-Forwarded-For: [2001:db8::1]:80\r\n", "2001:db8::1"),
        ("X-Forwarded-For: 192.0.2.8, 192.0.2.9\r\n", "192.0.2.8"),
        ("X-Forwarded-For: 1.1.1.1, nonsense, 192.0.2.9\r\n", "192.0.2.9"),
        ("X-Forwarded-For: nonsense\r\n", "192.0.2.1"),
        ("X-Forwarded-For: \r\n", "192.0.2.1"),
    ] {
        assert_eq!(said("trusted_proxy 192.0.2.0/24;", chain)[1], client, "{chain:?}");
    }
}

#[test]
fn of_scheme_and_host_the_last_word_counts_and_only_one_that_is_a_scheme_or_a_host() {
    for (fields, proto, host) in [
        ("X-Forwarded-Proto: HTTPS\r\nX-Forwarded-Host: A.example:8443\r\n", "https", "A.example:8443"),
        ("X-Forwarded-Proto: http, https\r\nX-Forwarded-Host: evil, a.example\r\n", "https", "a.example"),
        ("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n", "http", "own:81"),
        ("X-Forwarded-Proto: ht tp\r\nX-Forwarded-Host: a/b\r\n", "http", "own:81"),
        ("X-Forwarded-Proto: \r\nX-Forwarded-Host: \r\n", "http", "own:81"),
    ] {
        let said = said("trusted_proxy all;", fields);
        assert_eq!((said[2].as_str(), said[3].as_str()), (proto, host), "{fields:?}");
    }
}

#[test]
fn x_real_ip_says_who_asked_where_x_forwarded_for_says_nothing() {
    let own = "192.0.2.1";
    for (trusted, fields, chain, client) in [
        ("192.0.2.1", "X-Real-IP: 203.0.113.9\r\n", "203.0.113.9, 192.0.2.1", "203.0.113.9"),
        ("192.0.2.1", "x-real-ip: 2001:db8::1\r\n", "2001:db8::1, 192.0.2.1", "2001:db8::1"),
        ("192.0.2.1", "X-Real-IP: 203.0.113.9:4000\r\n", "203.0.113.9, 192.0.2.1", "203.0.113.9"),
        (
            "192.0.2.1",
            "X-Forwarded-For: \r\nX-Real-IP: 203.0.113.9\r\n",
            "203.0.113.9, 192.0.2.1",
            "203.0.113.9",
        ),
        // The client may have written the first.
        (
            "192.0.2.1",
            "X-Real-IP: 127.0.0.1\r\nX-Real-IP: 203.0.113.9\r\n",
            "203.0.113.9, 192.0.2.1",
            "203.0.113.9",
        ),
        ("192.0.2.1", "X-Real-IP: 127.0.0.1, 203.0.113.9\r\n", "203.0.113.9, 192.0.2.1", "203.0.113.9"),
        ("192.0.2.0/24", "X-Real-IP: 192.0.2.7\r\n", "192.0.2.7, 192.0.2.1", "192.0.2.7"),
        (
            "192.0.2.1",
            "X-Forwarded-For: 203.0.113.9\r\nX-Real-IP: 127.0.0.1\r\n",
            "203.0.113.9, 192.0.2.1",
            "203.0.113.9",
        ),
        ("192.0.2.1", "X-Forwarded-For: nonsense\r\nX-Real-IP: 127.0.0.1\r\n", "nonsense, 192.0.2.1", own),
        ("192.0.2.1", "X-Real-IP: nonsense\r\n", own, own),
        ("192.0.2.1", "X-Real-IP: \r\n", own, own),
        ("192.0.2.2", "X-Real-IP: 127.0.0.1\r\n", own, own),
        ("unix:", "X-Real-IP: 127.0.0.1\r\n", own, own),
    ] {
        let said = said(&format!("trusted_proxy {trusted};"), fields);
        assert_eq!((said[0].as_str(), said[1].as_str()), (chain, client), "{trusted} {fields:?}");
    }
}
