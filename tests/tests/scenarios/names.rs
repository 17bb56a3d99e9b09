//! Names of upstream servers: found by the system or by name servers, followed while running, and no trouble where they are dead.

use millstream_tests::client;
use millstream_tests::name_server::NameServer;
use millstream_tests::origin::Origin;
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use serde_json::Value;

const FOLLOWED: &str = site! {
    log "info"
    http "resolver @NAMES@;
        resolver_timeout 1s;
        upstream api { zone api 64k; server api.test:@PORT1@ resolve max_fails=0; }"
    server "add_header X-Addr $upstream_addr always;
        location / { proxy_pass http://api; proxy_connect_timeout 5s; }
        location /by/ { proxy_pass http://$arg_host:@PORT1@/; }
        location /patient/ { resolver_timeout 25s; proxy_pass http://$arg_host:@PORT1@/; }"
};

fn start(names: &NameServer, origin: &Origin) -> Server {
    let port = origin.port().to_string();
    Server::start(FOLLOWED, &[("NAMES", &names.address()), ("PORT1", &port)])
}

fn asked(server: &Server, path: &str) -> String {
    server.get(path).field("x-addr").unwrap_or_default().to_owned()
}

#[test]
fn a_server_that_resolves_follows_its_name_and_keeps_the_connections_that_stay() {
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    names.say("api.test", &["127.0.0.1"], 1);
    let server = start(&names, &origin);
    assert_eq!(server.get("/").text(), "here", "known before the first request");
    // Another address beside it: nobody listens there, so the one that stays answers over the connection that it has.
    names.say("api.test", &["127.0.0.99", "127.0.0.1"], 1);
    wait::until("the new address is asked too", || asked(&server, "/").contains("127.0.0.99"));
    assert_eq!(server.get("/").text(), "here");
    assert_eq!(origin.connections(), 1);
    // It alone, and then none at all.
    names.say("api.test", &["127.0.0.99"], 1);
    wait::until("the old address is asked no more", || {
        let asked = asked(&server, "/");
        asked.contains("127.0.0.99") && !asked.contains("127.0.0.1:")
    });
    names.say("api.test", &[], 1);
    wait::until("nobody is left", || asked(&server, "/") == "api");
}

#[test]
fn a_name_server_that_fails_changes_nothing_and_a_reload_keeps_what_was_known() {
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    names.say("api.test", &["127.0.0.1"], 1);
    let server = start(&names, &origin);
    assert_eq!(server.get("/").status, 200);
    names.fail("api.test");
    wait::until("the failure is told", || server.log().contains("api.test could not be resolved"));
    assert_eq!(server.get("/").status, 200);
    server.reload();
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn a_dead_name_does_not_stop_a_start_and_is_up_when_it_is_found() {
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    let server = start(&names, &origin);
    assert_eq!(server.get("/").status, 502, "nobody has the name yet");
    names.say("api.test", &["127.0.0.1"], 60);
    // That it does not exist holds for ten seconds, as in nginx.
    wait::until("the name is found", || server.get("/").status == 200);
}

#[test]
fn a_dead_name_among_servers_is_down_and_the_others_answer() {
    let origin = Origin::fixed(200, &[], b"here");
    let text = site! {
        http "upstream api { server nobody.invalid:80; server @ORIGIN@; }"
        server "location / { proxy_pass http://api; }
            location /dead/ { proxy_pass http://other.invalid/; }"
    };
    let server = Server::start_in(Prefix::new(), text, &[("ORIGIN", &origin.address())]);
    for _ in 0..4 {
        assert_eq!(server.get("/").text(), "here");
    }
    assert_eq!(server.get("/dead/").status, 502);
    server.says("host not found in upstream \"nobody.invalid:80\"");
}

#[test]
fn a_host_from_a_variable_is_asked_of_the_resolver_once_for_as_long_as_the_answer_holds() {
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    names.say("long.test", &["127.0.0.1"], 60);
    names.say("short.test", &["127.0.0.1"], 1);
    let server = start(&names, &origin);
    for host in ["long.test", "LONG.test", "long.test"] {
        assert_eq!(server.get(&format!("/by/?host={host}")).text(), "here");
    }
    assert_eq!(names.count("long.test"), 2, "once for each kind of address");
    assert_eq!(server.get("/by/?host=short.test").status, 200);
    names.fail("short.test");
    wait::until("what was said holds no longer", || server.get("/by/?host=short.test").status == 502);
    assert_eq!(server.get("/by/?host=nobody.test").status, 502);
    wait::until("the error log says so in nginx's words", || {
        server.log().contains("nobody.test could not be resolved (3: Host not found)")
    });
    // A failure is not kept.
    names.say("short.test", &["127.0.0.1"], 60);
    assert_eq!(server.get("/by/?host=short.test").status, 200);
}

#[test]
fn an_alias_is_followed_name_by_name_and_each_is_asked_for_once() {
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    names.say("api.test", &["127.0.0.1"], 60);
    names.say("end.test", &["127.0.0.1"], 60);
    for (name, other) in [
        ("first.test", "second.test"),
        ("second.test", "end.test"),
        ("other.test", "second.test"),
        ("round.test", "and-round.test"),
        ("and-round.test", "round.test"),
        ("nowhere.test", "nothing.test"),
    ] {
        names.say_alias(name, other);
    }
    let server = start(&names, &origin);
    let ask = |host: &str| server.get(&format!("/by/?host={host}")).status;
    assert_eq!(["first.test", "other.test", "FIRST.test.", "end.test"].map(ask), [200; 4]);
    // Of each name its addresses of both kinds.
    assert_eq!(["first.test", "second.test", "other.test", "end.test"].map(|name| names.count(name)), [2; 4]);
    assert_eq!(["round.test", "nowhere.test"].map(ask), [502; 2]);
}

#[test]
fn a_silent_name_server_is_asked_again_and_all_who_wait_are_answered() {
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    names.hush("slow.test");
    let server = start(&names, &origin);
    std::thread::scope(|scope| {
        let asking: Vec<_> =
            (0..4).map(|_| scope.spawn(|| server.get("/patient/?host=slow.test").status)).collect();
        wait::until("the name is asked for", || names.count("slow.test") >= 2);
        names.say("slow.test", &["127.0.0.1"], 60);
        for asked in asking {
            assert_eq!(asked.join().expect("no panic"), 200);
        }
    });
    // Who is less patient hears of it in nginx's words.
    names.hush("silent.test");
    assert_eq!(server.get("/by/?host=silent.test").status, 502);
    wait::until("the error log says so", || {
        server.log().contains("silent.test could not be resolved (110: Operation timed out)")
    });
}

#[test]
fn addresses_of_one_name_take_turns_and_the_next_is_tried() {
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    names.say("two.test", &["127.0.0.98", "127.0.0.1"], 60);
    let server = start(&names, &origin);
    let first: Vec<bool> =
        (0..4).map(|_| asked(&server, "/by/?host=two.test").starts_with("127.0.0.98")).collect();
    assert!(first[0] != first[1] && first[0] == first[2] && first[1] == first[3], "{first:?}");
}

#[test]
fn keys_and_clients_keep_their_server() {
    let (one, two) = (Origin::fixed(200, &[], b"one"), Origin::fixed(200, &[], b"two"));
    let text = site! {
        main "worker_processes 2;"
        http "upstream keys { hash $arg_key consistent; server @ONE@; server @TWO@; }
            upstream clients { ip_hash; server @ONE@; server @TWO@; }"
        server "location /keys { proxy_pass http://keys; }
            location /clients { proxy_pass http://clients; }"
    };
    let server = Server::start(text, &[("ONE", &one.address()), ("TWO", &two.address())]);
    let mut found = std::collections::HashSet::new();
    for key in 0..40 {
        let path = format!("/keys?key={key}");
        let first = server.get(&path).text();
        assert_eq!(server.get(&path).text(), first, "key {key}");
        found.insert(first);
    }
    assert_eq!(found.len(), 2, "forty keys are not all one server's");
    let first = server.get("/clients").text();
    assert!((0..10).all(|_| server.get("/clients").text() == first));
}

#[test]
fn look_ups_are_counted_under_the_zone_of_their_resolver_and_go_on_over_a_reload() {
    skip_on_nginx!();
    let (names, origin) = (NameServer::start(), Origin::fixed(200, &[], b"here"));
    names.say("api.test", &["127.0.0.1"], 60);
    names.fail("broken.test");
    let file = FOLLOWED
        .replace("@NAMES@;", "@NAMES@ status_zone=dns;")
        .replace("access_log off;", "access_log off; dashboard 127.0.0.1:@DASHBOARD@;");
    let (port, looked) = (origin.port().to_string(), ports::free());
    let values = [("NAMES", names.address()), ("PORT1", port), ("DASHBOARD", looked.to_string())];
    let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Server::start(&file, &values);
    assert_eq!(server.get("/").text(), "here");
    assert_eq!(server.get("/by/?host=broken.test").status, 502);
    assert_eq!(server.get("/by/?host=nobody.test").status, 502);
    let told = || -> Value { client::get(looked, "/api/9/resolvers/dns").json() };
    let before = told();
    let of = |told: &Value, word: &str| told["responses"][word].as_u64().expect("a count");
    assert_eq!(
        [of(&before, "noerror"), of(&before, "servfail"), of(&before, "nxdomain")],
        [1, 1, 1],
        "{before}"
    );
    assert_eq!(before["requests"]["name"], 3);
    server.reload();
    let after = told();
    assert!(of(&after, "noerror") >= 1 && of(&after, "servfail") == 1, "{after}");
}
