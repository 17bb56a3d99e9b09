//! Requests as purging clients write them, and what they mean.

use super::*;
use crate::fixture;

fn ask(head: &str) -> Result<PurgeRequest, Refusal> {
    let worker = fixture::worker("server { listen 127.0.0.1:80; location / { return 200 x; } }");
    let request = fixture::admitted(&worker, &format!("{head}\r\n\r\n"));
    let method = PurgeMethod::of(&request).expect("a purging method");
    read(&request, method)
}

fn check(head: &str, wanted: PurgeScope, soft: Option<bool>) {
    assert_eq!(ask(head), Ok(PurgeRequest { wanted, soft }), "{head}");
}

fn tags(names: &[&str]) -> PurgeScope {
    PurgeScope::Tags(names.iter().map(|name| name.as_bytes().to_vec()).collect())
}

fn target(text: &str) -> PurgeScope {
    PurgeScope::Target(text.into(), Hosts::Own)
}

fn prefix(text: &str) -> PurgeScope {
    PurgeScope::Prefix(text.into(), Hosts::Own)
}

#[test]
fn purge_means_its_target_or_what_begins_so() {
    check("PURGE /a?b=c HTTP/1.1\r\nHost: a", target("/a?b=c"), None);
    check("PURGE http://a/x?y HTTP/1.1\r\nHost: b", target("/x?y"), None);
    check("PURGE /a/* HTTP/1.1\r\nHost: a", prefix("/a/"), None);
    check("PURGE /a HTTP/1.1\r\nHost: a\r\nFastly-Soft-Purge: 1", target("/a"), Some(true));
    check("BAN /a HTTP/1.1\r\nHost: a", target("/a"), None);
}

#[test]
fn the_expression_of_varnish_http_purge_is_a_prefix() {
    check("PURGE /.* HTTP/1.1\r\nhost: a\r\nX-Purge-Method: regex", prefix("/"), None);
    check("PURGE /blog/.* HTTP/1.1\r\nhost: a\r\nX-Purge-Method: regex", prefix("/blog/"), None);
    check("PURGE /blog/ HTTP/1.1\r\nhost: a\r\nX-Purge-Method: default", target("/blog/"), None);
    check("PURGE /blog/ HTTP/1.1\r\nhost: a\r\nX-Purge-Method: exact", target("/blog/"), None);
    assert!(ask("PURGE /(a|b)/.* HTTP/1.1\r\nhost: a\r\nX-Purge-Method: regex").is_err());
}

#[test]
fn tags_come_in_any_of_the_usual_fields() {
    check("PURGE / HTTP/1.1\r\nHost: a\r\nSurrogate-Key: one two", tags(&["one", "two"]), None);
    check("PURGE / HTTP/1.1\r\nHost: a\r\nCache-Tag: one,two , three", tags(&["one", "two", "three"]), None);
    check("PURGE / HTTP/1.1\r\nHost: a\r\nxkey: one\r\nxkey: two", tags(&["one", "two"]), None);
    check("PURGEKEYS / HTTP/1.1\r\nHost: a\r\nxkey-purge: post-1 post", tags(&["post-1", "post"]), None);
    check("PURGEKEYS / HTTP/1.1\r\nHost: a\r\nxkey-softpurge: post-1", tags(&["post-1"]), Some(true));
    check(
        "PURGE / HTTP/1.1\r\nHost: a\r\nX-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))|((^|,)cat_p_2(,|$))",
        tags(&["cat_p_1", "cat_p_2"]),
        None,
    );
    check("PURGE / HTTP/1.1\r\nHost: a\r\nX-Magento-Tags-Pattern: .*", PurgeScope::All, None);
    check("PURGE / HTTP/1.1\r\nHost: a\r\nX-Cache-Tags: (^|,)(one)(,|$)", tags(&["one"]), None);
    for bad in [
        "PURGEKEYS / HTTP/1.1\r\nHost: a",
        "PURGE / HTTP/1.1\r\nHost: a\r\nCache-Tag: ,",
        "PURGE / HTTP/1.1\r\nHost: a\r\nxkey: one\r\nxkey-softpurge: two",
        "PURGE / HTTP/1.1\r\nHost: a\r\nX-Magento-Tags-Pattern: cat_.*",
    ] {
        assert!(ask(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_ban_means_what_its_expressions_mean_or_nothing() {
    let ban =
        |fields: &str| format!("BAN / HTTP/1.1\r\nHost: a\r\nX-Host: .*\r\nX-Content-Type: .*\r\n{fields}");
    check(&ban("X-Url: .*"), PurgeScope::All, None);
    check(&ban("X-Url: .*\r\nX-Cache-Tags: (^|,)(mytag|othertag)(,|$)"), tags(&["mytag", "othertag"]), None);
    check(&ban("X-Url: ^/articles/.*"), PurgeScope::Prefix(b"/articles/".to_vec(), Hosts::Any), None);
    check(&ban("X-Url: ^/a$"), PurgeScope::Target(b"/a".to_vec(), Hosts::Any), None);
    let hosts = Hosts::Named(vec![b"fos.lo".to_vec(), b"fos2.lo".to_vec()]);
    check(
        "BAN / HTTP/1.1\r\nHost: a\r\nX-Host: ^(fos.lo|fos2.lo)$\r\nX-Url: ^/articles/.*\r\nX-Content-Type: .*",
        PurgeScope::Prefix(b"/articles/".to_vec(), hosts),
        None,
    );
    for bad in [
        ban("X-Url: /articles/.*"),
        ban("X-Url: ^/a\r\nX-Cache-Tags: (^|,)(one)(,|$)"),
        ban("X-Url: .*\r\nX-Url: ^/a"),
        ban("X-Url: .*\r\nX-Cache-Tags: one"),
        "BAN / HTTP/1.1\r\nHost: a\r\nX-Url: .*\r\nX-Content-Type: text/html".to_owned(),
    ] {
        assert!(ask(&bad).is_err(), "{bad}");
    }
}
