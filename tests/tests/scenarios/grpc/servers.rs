//! What servers of gRPC do to the calls of others: they are gone, take few streams at a time, or tell connections to go away.

use millstream_tests::frames::{End, Frames};
use millstream_tests::judges::{JudgeLoad, JudgeServer, approve, judged};
use millstream_tests::server::is_nginx;
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use serde_json::json;

use super::Proxy;

fn nothing_lost(load: &serde_json::Value) {
    approve("under load", load);
    assert_eq!(load["codes"], json!({ "OK": load["calls"] }), "{load}");
}

#[test]
fn where_one_server_is_gone_the_next_is_asked() {
    let Some(alive) = JudgeServer::go(&["-name", "alive"]) else { return };
    let servers = format!("server 127.0.0.1:{}; server {};", ports::free(), alive.address());
    let proxy = Proxy::before(servers, "grpc");
    let load = judged(&["load", "-c", "5", "-n", "500", &proxy.address()]);
    nothing_lost(&load);
    assert_eq!(load["servers"], json!({ "alive": 500 }));
    approve("streams", &judged(&["streams", &proxy.address()]));
}

#[test]
fn calls_are_spread_over_two_servers() {
    let Some(one) = JudgeServer::go(&["-name", "one"]) else { return };
    let two = JudgeServer::go(&["-name", "two"]).expect("the first runs");
    let proxy = Proxy::before(format!("server {}; server {};", one.address(), two.address()), "grpc");
    let load = judged(&["load", "-c", "4", "-n", "400", &proxy.address()]);
    nothing_lost(&load);
    for name in ["one", "two"] {
        assert!(load["servers"][name].as_u64().is_some_and(|calls| (100..=300).contains(&calls)), "{load}");
    }
}

#[test]
fn two_hundred_calls_at_once_succeed_at_a_server_that_takes_five_on_a_connection() {
    let Some(server) = JudgeServer::go(&["-max-streams", "5"]) else { return };
    let proxy = Proxy::of(&server);
    for (sleep, count) in [("5", "2000"), ("-1", "5000")] {
        let load = judged(&["load", "-c", "1", "-w", "200", "-n", count, "-sleep", sleep, &proxy.address()]);
        nothing_lost(&load);
    }
    approve("200 streams", &judged(&["many", "-n", "200", &proxy.address()]));
}

#[test]
fn a_server_that_sends_connections_away_by_their_age_loses_no_call() {
    let Some(server) = JudgeServer::go(&["-max-age", "150ms", "-max-age-grace", "20s"]) else { return };
    let proxy = Proxy::of(&server);
    let streams = JudgeLoad::start(&["bidi", "-c", "2", "-w", "3", "-turns", "200"], &proxy.address());
    nothing_lost(&judged(&["load", "-c", "4", "-w", "4", "-duration", "3s", &proxy.address()]));
    approve("streams", &streams.end());
    // Whoever keeps connections had to open new ones all the time.
    let counted = server.end();
    assert!(counted["connections"].as_u64().is_some_and(|connections| connections > 10), "{counted}");
}

#[test]
fn a_stream_whose_server_dies_ends_with_the_status_that_says_so() {
    skip_on_nginx!();
    let Some(server) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&server);
    let mut frames = Frames::connect(proxy.server.port());
    let fields = [("content-type", "application/grpc"), ("te", "trailers")];
    let stream = frames.request("POST", "/millstream.judge.Judge/Bidi", &fields, false);
    // A BytesValue of one octet.
    frames.data(stream, b"\0\0\0\0\x03\x0a\x01a", false);
    frames.until("it is echoed", |now| now.so_far(stream).body.len() == 8);
    let id = rustix::process::Pid::from_raw(server.id() as i32).expect("a process");
    rustix::process::kill_process(id, Signal::KILL).expect("it is ours");
    let answer = frames.answer(stream);
    let told =
        |name: &str| answer.trailers.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
    assert_eq!(
        (answer.end, told("grpc-status"), told("grpc-message")),
        (End::Whole, Some("14"), Some("502 Bad Gateway"))
    );
}

#[test]
fn a_server_that_ends_in_order_under_load_loses_no_call() {
    if is_nginx() {
        // It may ask on a kept connection that has just been sent away.
        return;
    }
    let Some(leaving) = JudgeServer::go(&["-name", "leaving"]) else { return };
    let staying = JudgeServer::go(&["-name", "staying"]).expect("the first runs");
    let proxy = Proxy::before(format!("server {}; server {};", leaving.address(), staying.address()), "grpc");
    let load = JudgeLoad::start(&["load", "-c", "4", "-w", "4"], &proxy.address());
    let lines = || proxy.server.prefix().read("access.log").lines().count();
    wait::until("the load runs", || lines() > 500);
    let counted = leaving.end();
    assert!(counted["calls"].as_u64().is_some_and(|calls| calls > 100), "{counted}");
    let before = lines();
    wait::until("the other carries the load", || lines() > before + 500);
    nothing_lost(&load.end());
}
