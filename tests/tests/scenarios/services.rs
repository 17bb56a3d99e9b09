//! `service=` of an upstream server: where name servers report it (SRV), followed as names are.

use millstream_tests::client;
use millstream_tests::name_server::{NameServer, encoded_name};
use millstream_tests::origin::Origin;
use millstream_tests::ports;
use millstream_tests::server::Server;
use millstream_tests::wait;
use serde_json::{Value, json};

const SERVICE: &str = "_http._tcp.api.test";

const FOLLOWED: &str = site! {
    log "info"
    http "dashboard 127.0.0.1:@DASHBOARD@;
        resolver @NAMES@ ipv6=off status_zone=names;
        resolver_timeout 1s;
        upstream api { zone api 64k; server api.test service=http resolve max_fails=0; }"
    server "location / { proxy_pass http://api; proxy_next_upstream off; }"
};

fn names() -> NameServer {
    let names = NameServer::start();
    for host in ["a.test", "b.test", "c.test"] {
        names.say(host, &["127.0.0.1"], 1);
    }
    names
}

fn start(names: &NameServer) -> (Server, u16) {
    let looked = ports::free();
    let values = [("NAMES", names.address()), ("DASHBOARD", looked.to_string())];
    (Server::start(FOLLOWED, &values.each_ref().map(|(name, value)| (*name, value.as_str()))), looked)
}

fn reload(server: &Server) {
    server.reload();
}

#[test]
fn records_are_servers_with_their_weights_and_later_priorities_are_backups() {
    skip_on_nginx!();
    let [one, two, three] = ["one", "two", "three"].map(|body| Origin::fixed(200, &[], body.as_bytes()));
    let (p1, p2, p3) = (one.port(), two.port(), three.port());
    let names = names();
    names.say_service(SERVICE, &[(7, 9, p3, "c.test"), (2, 1, p2, "b.test"), (2, 3, p1, "a.test")], 1);
    let (server, looked) = start(&names);
    let count = |body: &str| (0..8).filter(|_| server.get("/").text() == body).count();
    let bodies: Vec<String> = (0..8).map(|_| server.get("/").text()).collect();
    let of = |body: &str| bodies.iter().filter(|got| *got == body).count();
    assert_eq!([of("one"), of("two"), of("three")], [6, 2, 0], "known before the first request");
    let status = |path: &str| -> Value { client::get(looked, &format!("/api/9/{path}")).json() };
    let api = status("http/upstreams/api");
    let peers = api["peers"].as_array().expect("peers").iter();
    let peers: Vec<Value> =
        peers.map(|peer| json!([peer["server"], peer["name"], peer["weight"], peer["backup"]])).collect();
    let address = |port: u16| format!("127.0.0.1:{port}");
    assert_eq!(
        peers,
        [
            json!([address(p1), "a.test", 3, false]),
            json!([address(p2), "b.test", 1, false]),
            json!([address(p3), "c.test", 9, true])
        ]
    );
    assert!(status("resolvers/names")["requests"]["srv"].as_u64() >= Some(1));
    names.say_service(SERVICE, &[(2, 1, p3, "c.test")], 1);
    wait::until("the new record is followed", || count("three") == 8);
    names.say_service(SERVICE, &[], 1);
    wait::until("the service is offered nowhere", || server.get("/").status == 502);
    names.say_service(SERVICE, &[(0, 0, p1, "a.test")], 1);
    wait::until("the service is back", || count("one") == 8);
}

#[test]
fn what_cannot_be_resolved_stays_where_it_was_even_over_a_reload() {
    skip_on_nginx!();
    let [one, two, three] = ["one", "two", "three"].map(|body| Origin::fixed(200, &[], body.as_bytes()));
    let names = names();
    names.say_service(SERVICE, &[(1, 1, one.port(), "a.test"), (1, 1, two.port(), "b.test")], 1);
    let (server, _) = start(&names);
    let bodies = || {
        let mut bodies: Vec<String> = (0..6).map(|_| server.get("/").text()).collect();
        bodies.sort();
        bodies.dedup();
        bodies
    };
    assert_eq!(bodies(), ["one", "two"]);
    names.fail("a.test");
    server.says("a.test could not be resolved (2: Server failure) while resolving service http of api.test");
    assert_eq!(bodies(), ["one", "two"]);
    // The others are followed meanwhile.
    names.say_service(SERVICE, &[(1, 1, one.port(), "a.test"), (1, 1, three.port(), "c.test")], 1);
    wait::until("the new target is followed", || bodies() == ["one", "three"]);
    names.say("a.test", &["127.0.0.1"], 1);
    names.say_service(SERVICE, &[(1, 1, one.port(), "a.test")], 1);
    wait::until("the old target is gone", || bodies() == ["one"]);
    names.fail(SERVICE);
    server.says("service http of api.test could not be resolved (2: Server failure)");
    assert_eq!(bodies(), ["one"]);
    reload(&server);
    assert_eq!(bodies(), ["one"]);
    names.say_service(SERVICE, &[(1, 1, two.port(), "b.test")], 1);
    wait::until("the service is followed after the reload", || bodies() == ["two"]);
}

/// One record after the name of the question: type, class, 60 seconds, and data.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let head = [&[0xc0, 12][..], &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 60]].concat();
    [&head[..], &(data.len() as u16).to_be_bytes(), data].concat()
}

#[test]
fn a_service_is_found_under_its_names_behind_aliases_and_in_long_answers() {
    let origin = Origin::fixed(200, &[], b"here");
    let port = origin.port();
    let names = names();
    let place = (1, 1, port, "a.test");
    for service in
        ["_http._tcp.short.test", "_web._udp.full.test", "one.two.dotted.test", "_http._tcp.other.test"]
    {
        names.say_service(service, &[place], 60);
    }
    names.say_alias("_http._tcp.alias.test", "_http._tcp.other.test");
    // An alias with what is known of the other name, as caches answer it.
    let data = [&[0, 1, 0, 1][..], &port.to_be_bytes(), &encoded_name("a.test")].concat();
    let (alias, other) = (record(5, &encoded_name("_http._tcp.elsewhere.test")), record(33, &data));
    let other = [&encoded_name("_http._tcp.elsewhere.test")[..], &other[2..]].concat();
    names.say_bytes("_http._tcp.chain.test", 2, &[alias, other].concat());
    // Targets are not compressed (RFC 2782), but some servers do it: `a` and then the end of the question's name.
    let at = 12 + encoded_name("_http._tcp.tight.test").len() - encoded_name("test").len();
    let target = [&[1, b'a', 0xc0][..], &[at as u8]].concat();
    let data = [&[0, 1, 0, 1][..], &port.to_be_bytes(), &target].concat();
    names.say_bytes("_http._tcp.tight.test", 1, &record(33, &data));
    let many: Vec<_> = (0..60).map(|weight| (1, weight, port, "a.test")).collect();
    names.say_service("_http._tcp.long.test", &many, 60);
    let cases = [
        ("short", "http"),
        ("full", "_web._udp"),
        ("dotted", "one.two"),
        ("alias", "http"),
        ("chain", "http"),
        ("tight", "http"),
        ("long", "http"),
    ];
    let server = serve(&names, &cases);
    for (name, service) in cases {
        assert_eq!(server.get(&format!("/{name}")).text(), "here", "{name} {service}");
    }
}

fn serve(names: &NameServer, cases: &[(&str, &str)]) -> Server {
    let upstream = |(name, service): &(&str, &str)| {
        format!("upstream {name} {{ zone {name} 64k; server {name}.test service={service} resolve; }}\n")
    };
    let location = |(name, _): &(&str, &str)| format!("location /{name} {{ proxy_pass http://{name}; }}\n");
    let text = format!(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {{}}
        http {{
            access_log off;
            resolver @NAMES@ ipv6=off;
            resolver_timeout 1s;
            {}
            server {{ listen 127.0.0.1:@PORT@; {} }}
        }}",
        cases.iter().map(upstream).collect::<String>(),
        cases.iter().map(location).collect::<String>(),
    );
    Server::start(&text, &[("NAMES", &names.address())])
}

#[test]
fn a_malformed_answer_changes_nothing_and_the_next_good_one_counts() {
    let [one, two] = ["one", "two"].map(|body| Origin::fixed(200, &[], body.as_bytes()));
    let names = names();
    let srv = |rest: &[u8]| record(33, &[&[0, 1, 0, 1, 0, 80][..], rest].concat());
    // A target at the end of a record: where it begins in the message, after the question and what comes before it.
    let at = |name: &str| (12 + encoded_name(&format!("_http._tcp.{name}.test")).len() + 4 + 12 + 6) as u8;
    let good = srv(&encoded_name("a.test"));
    let malformed: [(&str, u16, Vec<u8>); 8] = [
        ("loop", 1, srv(&[0xc0, at("loop")])),
        ("ring", 1, srv(&[1, b'a', 0xc0, at("ring")])),
        ("ahead", 1, srv(&[0xc0, 0xff])),
        ("numberless", 1, record(33, &[0, 1, 0, 1])),
        ("endless", 1, srv(&[63, b'a'])),
        ("reserved", 1, srv(&[0x80, b'a', 0])),
        ("cut", 1, good[..good.len() - 3].to_vec()),
        ("fewer", 2, good.clone()),
    ];
    let cases: Vec<(&str, &str)> = malformed.iter().map(|(name, ..)| (*name, "http")).collect();
    let service = |name: &str| format!("_http._tcp.{name}.test");
    for (name, _) in &cases {
        names.say_service(&service(name), &[(1, 1, one.port(), "a.test")], 1);
    }
    let server = serve(&names, &cases);
    for (name, count, bytes) in &malformed {
        assert_eq!(server.get(&format!("/{name}")).text(), "one", "{name}");
        names.say_bytes(&service(name), *count, bytes);
    }
    for (name, _) in &cases {
        server.says(&format!("service http of {name}.test could not be resolved"));
        assert_eq!(server.get(&format!("/{name}")).text(), "one", "{name}");
        names.say_service(&service(name), &[(1, 1, two.port(), "b.test")], 1);
    }
    for (name, _) in &cases {
        wait::until("the good answer is followed", || server.get(&format!("/{name}")).text() == "two");
    }
}
