//! Listening sockets over reloads, upgrades and stops: who is refused, who is answered, and whose the files are.

use millstream_tests::client::Client;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::process::{is_alive, send};
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `@MORE@` are further `listen` lines, `@ZONE@` is the size of the zone in memory.
const SITE: &str = site! {
    main "worker_processes 2;" events "worker_connections 1000;" log "notice"
    http "@ZONE@
        upstream api { server @ORIGIN@; keepalive 16; }"
    server "@MORE@
        location / { proxy_pass http://api; }
        location /fixed { return 200 \"fixed\\n\"; }
        @PLACES@"
};

fn rewrite(server: &Server, origin: &Origin, more: &str) {
    server.rewrite(SITE, &[("ORIGIN", &origin.address()), ("MORE", more), ("ZONE", ""), ("PLACES", "")]);
}

fn start(origin: &Origin, more: &str) -> Server {
    Server::start(SITE, &[("ORIGIN", &origin.address()), ("MORE", more), ("ZONE", ""), ("PLACES", "")])
}

fn behind(gate: &Arc<Gate>) -> Origin {
    let gate = Arc::clone(gate);
    Origin::start(move |_| {
        let mut steps = vec![Step::Pass(Arc::clone(&gate))];
        steps.extend(answer(200, &[], b"late but whole"));
        steps
    })
}

#[test]
fn a_listener_that_a_reload_removes_refuses_at_once_and_can_come_back() {
    let gate = Arc::new(Gate::default());
    let origin = behind(&gate);
    let second = ports::free();
    let more = format!("listen 127.0.0.1:{second};");
    let server = start(&origin, &more);
    let mut client = Client::connect(second).expect("it listens");
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    for _ in 0..2 {
        rewrite(&server, &origin, "");
        server.signal(Signal::HUP);
        wait::until("the removed address refuses", || Client::connect(second).is_err());
        assert_eq!(server.get("/fixed").status, 200, "the address that stays answers");
        rewrite(&server, &origin, &more);
        server.signal(Signal::HUP);
        wait::until("the address answers again", || {
            Client::connect(second).is_ok_and(|mut client| client.get("/fixed").is_ok())
        });
    }
    assert!(gate.open(), "none of it waited for the request in progress");
    assert_eq!(client.answer().expect("the answer in flight").text(), "late but whole");
    assert!(!server.log().contains("[emerg]"), "{}", server.log());
}

#[test]
fn an_address_that_two_reloads_take_away_and_give_back_at_once_is_not_found_in_use() {
    let origin = Origin::fixed(200, &[], b"body");
    let second = ports::free();
    let more = format!("listen 127.0.0.1:{second};");
    let server = start(&origin, &more);
    for number in 1..=10 {
        rewrite(&server, &origin, if number % 2 == 1 { "" } else { more.as_str() });
        server.signal(Signal::HUP);
        let said = if is_nginx() { "reconfiguring" } else { "is in force" };
        wait::until("the reload is done", || server.log().matches(said).count() >= number);
    }
    assert!(!server.log().contains("[emerg]"), "{}", server.log());
    assert_eq!(Client::connect(second).expect("it listens").get("/fixed").expect("an answer").status, 200);
}

#[test]
fn after_a_graceful_stop_began_new_connections_are_refused_while_what_is_in_progress_is_finished() {
    let gate = Arc::new(Gate::default());
    let origin = behind(&gate);
    let mut server = start(&origin, "");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    let mut newcomer = server.client();
    server.signal(Signal::QUIT);
    wait::until("new connections are refused", || Client::connect(server.port()).is_err());
    let (refused, slow) = (Instant::now(), Duration::from_secs(1));
    wait::until("a client on a busy machine sends its first request", || refused.elapsed() > slow);
    assert_eq!(newcomer.get("/fixed").expect("it was accepted before").status, 200);
    assert!(gate.open(), "they were refused while the request was still in progress");
    assert_eq!(client.answer().expect("the answer in flight").text(), "late but whole");
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
}

/// A daemon that was upgraded (USR2) during a request, and whose old process was told to finish.
struct Upgraded {
    server: Server,
    /// Its request is with the old process.
    client: Client,
    old: u32,
    new: u32,
}

fn upgraded(origin: &Origin) -> Upgraded {
    // nginx ignores USR2 unless it runs as a daemon.
    let address = origin.address();
    let values = [("ORIGIN", address.as_str()), ("MORE", ""), ("ZONE", ""), ("PLACES", "")];
    let server = Server::start_daemon(SITE, &values);
    let old = server.current_id();
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    server.signal(Signal::USR2);
    wait::until("the pid file names a new process", || ![0, old].contains(&server.current_id()));
    let new = server.current_id();
    wait::until("the new process has its workers", || server.get("/fixed").status == 200);
    send(old, Signal::QUIT);
    Upgraded { server, client, old, new }
}

#[test]
fn after_an_upgrade_the_new_process_accepts_while_the_old_one_finishes() {
    let gate = Arc::new(Gate::default());
    let origin = behind(&gate);
    let Upgraded { server, mut client, old, new } = upgraded(&origin);
    for _ in 0..50 {
        assert_eq!(server.get("/fixed").status, 200, "the port never stops to answer");
    }
    assert!(is_alive(old), "it has a request in progress");
    assert!(gate.open(), "nothing waited for that request");
    assert_eq!(client.answer().expect("the answer in flight").text(), "late but whole");
    wait::until("the old process ends", || !is_alive(old));
    assert_eq!(server.get("/fixed").status, 200);
    send(new, Signal::TERM);
    wait::until("the new process ends", || !is_alive(new));
}

#[test]
fn an_old_process_that_finishes_after_an_upgrade_holds_no_socket() {
    let gate = Arc::new(Gate::default());
    let origin = behind(&gate);
    let Upgraded { server, mut client, old, new } = upgraded(&origin);
    send(new, Signal::TERM);
    wait::until("the new process ends", || !is_alive(new));
    // What the old one held of the sockets it would share with the new one: clients would connect and hang.
    wait::until("new connections are refused", || Client::connect(server.port()).is_err());
    assert!(is_alive(old), "it has a request in progress");
    assert!(gate.open(), "nothing waited for that request");
    assert_eq!(client.answer().expect("the answer in flight").text(), "late but whole");
    wait::until("the old process ends", || !is_alive(old));
}

#[test]
fn a_unix_socket_goes_with_the_last_process_that_listens_on_it() {
    let origin = Origin::fixed(200, &[], b"body");
    let values = [("ORIGIN", origin.address()), ("ZONE", String::new()), ("PLACES", String::new())];
    let mut values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    values.push(("MORE", "listen unix:@DIR@/web.sock;"));
    let more = SITE.replace("@MORE@", "listen unix:@DIR@/web.sock;");
    let server = Server::start_daemon(&more, &values);
    let file = server.prefix().join("web.sock");
    let upgrade = |old: u32| {
        server.signal(Signal::USR2);
        wait::until("the pid file names a new process", || ![0, old].contains(&server.current_id()));
        wait::until("it serves", || server.get("/fixed").status == 200);
        server.current_id()
    };
    let first = server.current_id();
    let second = upgrade(first);
    send(first, Signal::QUIT);
    wait::until("the first process ends", || !is_alive(first));
    assert!(UnixStream::connect(&file).is_ok(), "the second process has the socket");
    let third = upgrade(second);
    send(third, Signal::TERM);
    wait::until("the third process is gone, and the second has its name back", || {
        !is_alive(third) && server.current_id() == second
    });
    assert!(UnixStream::connect(&file).is_ok(), "the second process goes on with the socket");
    send(second, Signal::TERM);
    wait::until("the second process ends", || !is_alive(second));
    assert!(!file.exists(), "nobody listens there any more");
}

#[test]
fn a_reload_that_fails_at_a_listener_leaves_the_kept_zones_as_they_were() {
    skip_on_nginx!("it has no `memory=`, and no API without Plus");
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"body");
    let zone = |megabytes: u32| format!("proxy_cache_path memory keys_zone=answers:1m memory={megabytes}m;");
    let places = "location /api/ { api; } location /cached/ { proxy_pass http://api; proxy_cache answers; }";
    let origin_address = origin.address();
    let small = zone(16);
    let values = [("ORIGIN", origin_address.as_str()), ("MORE", ""), ("ZONE", &small), ("PLACES", places)];
    let server = Server::start(SITE, &values);
    let bound = || -> u64 {
        let told = server.get("/api/9/http/caches/answers").json();
        told["memory"]["max_bytes"].as_u64().expect("a number")
    };
    assert_eq!(bound(), 16 << 20);
    let (large, taken) = (zone(32), ports::listener());
    let listen = format!("listen 127.0.0.1:{};", taken.1);
    let reload = |more: &str, zone: &str| {
        let values =
            [("ORIGIN", origin_address.as_str()), ("MORE", more), ("ZONE", zone), ("PLACES", places)];
        server.rewrite(SITE, &values);
        server.signal(Signal::HUP);
    };
    reload(&listen, &large);
    wait::until("the reload is refused", || server.log().contains("stays in force"));
    assert_eq!(bound(), 16 << 20, "nothing of the refused configuration is in force");
    reload("", &large);
    wait::until("the next one is in force", || bound() == 32 << 20);
}
