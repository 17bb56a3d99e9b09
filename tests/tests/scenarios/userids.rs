//! `userid`: who gets a cookie, what stands in it, and that nobody gets another client's.

use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use std::collections::HashSet;

const SITE: &str = site! {
    main "worker_processes 2;" log "notice"
    http "proxy_cache_path @DIR@/cache keys_zone=pages:1m;
        map $arg_reset $uid_reset { default $arg_reset; }
        userid on; userid_service 4711;
        add_header X-Got $uid_got; add_header X-Set $uid_set always;"
    server "server_name localhost;
        location / { return 200 page; }
        location /gone { return 404; }
        location /moved { return 301 /; }
        location /log { userid log; return 200 page; }
        location /off { userid off; return 200 page; }
        location /v1 { userid v1; return 200 page; }
        location /own { userid v1; userid_service 1; userid_name visitor; userid_domain a.example; userid_path /own;
            userid_expires max; userid_flags samesite=lax secure; userid_flags httponly; userid_p3p 'CP=\"NOI\"'; return 200 page;
            location /own/none { userid_domain none; userid_p3p none; userid_flags off; userid_expires off; return 200 page; } }
        location /marked { userid_mark t; userid_expires 1d; return 200 page; }
        location /cached { proxy_pass http://@ORIGIN@; proxy_cache pages; proxy_cache_valid 200 1h; }
        location /told { proxy_pass http://@ORIGIN@; proxy_set_header X-Visitor $uid_got|$uid_set; }
        location /page { ssi on; ssi_types *; return 200 '<!--#include virtual=\"/part\"-->|$uid_set'; }
        location /part { return 200 '$uid_set'; }
        location /early { set $early $uid_set; return 200 $early; }
        location /missing { root @DIR@; error_page 404 /found; }
        location /found { return 200 page; }
        location /asked { auth_request /part; return 200 page; }"
};

fn start() -> (Server, Origin) {
    let origin = Origin::start(|request| {
        let told = request.field("X-Visitor").unwrap_or_default().to_owned();
        answer(200, &[("Cache-Control", "max-age=60")], told.as_bytes())
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    (server, origin)
}

fn cookie(answer: &Answer) -> Option<(String, String, String)> {
    let text = answer.field("Set-Cookie")?;
    let (pair, attributes) = text.split_once("; ").unwrap_or((text, ""));
    let (name, value) = pair.split_once('=').expect("a cookie has a name and a value");
    Some((name.into(), value.into(), attributes.into()))
}

fn with(server: &Server, path: &str, value: &str) -> Answer {
    server.get_with(path, &[("Cookie", &format!("a=b; uid={value}; c=d"))])
}

#[test]
fn a_client_without_the_cookie_gets_one_and_is_known_by_it_afterwards() {
    let (server, _origin) = start();
    for path in ["/", "/gone", "/moved", "/v1", "/missing/x", "/asked", "/early"] {
        let first = server.get(path);
        let (name, value, attributes) = cookie(&first).unwrap_or_else(|| panic!("{path} sets one"));
        assert_eq!((&*name, value.len(), &value[22..], &*attributes), ("uid", 24, "==", "path=/"), "{path}");
        let set = first.field("X-Set").expect("it is known").to_owned();
        assert!(set.starts_with("uid=") && set.len() == 4 + 32, "{path}: {set}");
        let second = with(&server, path, &value);
        assert_eq!((cookie(&second), second.field("X-Set")), (None, None), "{path}");
        let got = server.get_with("/", &[("Cookie", &format!("UID={value}"))]);
        assert_eq!(got.field("X-Got"), Some(&*set), "{path}");
    }
    let v2 = server.get("/").field("X-Set").expect("set").to_owned();
    let v1 = server.get("/own").field("X-Set").expect("set").to_owned();
    // The numbers of version 2 are in network order, those of version 1 in the machine's.
    let service = |text: &str| {
        u32::from_str_radix(&text[text.find('=').expect("named") + 1..][..8], 16).expect("digits")
    };
    assert_eq!((u32::from_be(service(&v2)), service(&v1)), (4711, 1));
}

#[test]
fn the_attributes_of_the_cookie_are_the_levels() {
    let (server, _origin) = start();
    let own = server.get("/own");
    let (name, _, attributes) = cookie(&own).expect("it is set");
    let expected =
        "expires=Thu, 31-Dec-37 23:55:55 GMT; domain=a.example; path=/own; secure; httponly; samesite=lax";
    assert_eq!((&*name, &*attributes, own.field("P3P")), ("visitor", expected, Some("CP=\"NOI\"")));
    let none = server.get("/own/none");
    let (name, _, attributes) = cookie(&none).expect("it is set");
    assert_eq!((&*name, &*attributes, none.field("P3P")), ("visitor", "path=/own", None));
    for path in ["/off", "/log"] {
        assert!(server.get(path).field("Set-Cookie").is_none(), "{path}");
    }
}

#[test]
fn what_is_no_id_is_replaced_and_what_has_another_mark_is_sent_again() {
    let (server, _origin) = start();
    let (_, value, _) = cookie(&server.get("/")).expect("it is set");
    for (path, sent, is_new) in [
        ("/", "short", true),
        ("/", "!!!!!!!!!!!!!!!!!!!!!!!!", true),
        ("/", "AAAAAAAAAAAAAAAAAAAAAA==", true),
        ("/?reset=1", &*value, true),
        ("/?reset=log", &*value, true),
        ("/?reset=0", &*value, false),
        ("/log", &*value, false),
        ("/off", &*value, false),
    ] {
        let set = cookie(&with(&server, path, sent));
        assert_eq!(set.is_some(), is_new, "{path} {sent}");
        assert!(set.is_none_or(|(_, set, _)| set[..22] != sent[..22.min(sent.len())]), "{path} {sent}");
    }
    let (_, marked, attributes) = cookie(&with(&server, "/marked", &value)).expect("it is marked");
    assert_eq!((&marked[..22], &marked[22..]), (&value[..22], "t="));
    assert!(attributes.starts_with("expires=") && attributes.ends_with(" GMT; path=/"), "{attributes}");
    assert_eq!(cookie(&with(&server, "/marked", &marked)), None);
    let (_, fresh, _) = cookie(&server.get("/marked")).expect("it is set");
    assert_eq!(&fresh[22..], "t=");
    assert_eq!(cookie(&with(&server, "/", &marked)), None, "without a mark any will do");
    server.says("client sent too short userid cookie \"");
    server.says("client sent invalid userid cookie \"");
    server.says("\" was reset");
}

#[test]
fn a_stored_response_has_no_cookie_of_a_visitor_and_every_visitor_gets_an_own_one() {
    let (server, origin) = start();
    let ids: Vec<_> = (0..4).map(|_| cookie(&server.get("/cached")).expect("each gets one").1).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4, "{ids:?}");
    assert_eq!(origin.count(), 1);
    let known = with(&server, "/cached", &ids[0]);
    assert_eq!((cookie(&known), origin.count()), (None, 1));
}

#[test]
fn one_visitor_has_one_id_whoever_asks_for_it() {
    let (server, _origin) = start();
    let first = server.get("/told");
    let set = first.field("X-Set").expect("it is set").to_owned();
    assert_eq!(first.text(), format!("|{set}"), "the upstream is told the id that the client gets");
    let (_, value, _) = cookie(&first).expect("it is set");
    assert_eq!(with(&server, "/told", &value).text(), format!("{set}|"));
    let page = server.get("/page");
    let set = page.field("X-Set").expect("it is set").to_owned();
    assert_eq!(page.text(), format!("{set}|{set}"), "a part of a page has the page's visitor");
    let early = server.get("/early");
    assert_eq!(Some(&*early.text()), early.field("X-Set"));
}
