//! Many calls of gRPC at once, slow ones beside others, and reloads under all of them.

use millstream_tests::judges::{JudgeLoad, JudgeServer, approve, judged};
use millstream_tests::wait;
use rustix::process::Signal;
use serde_json::json;

use super::Proxy;

#[test]
fn a_thousand_streams_of_one_connection_are_open_at_once_and_talk() {
    let Some(server) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&server);
    approve("in clear", &judged(&["many", "-n", "1000", &proxy.address()]));
    approve("over TLS", &judged(&["-tls", "many", "-n", "1000", &proxy.tls_address()]));
    assert_eq!(server.end()["most"], 1000);
}

#[test]
fn whoever_reads_slowly_stops_no_other_stream_of_its_connection() {
    let Some(server) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&server);
    approve("a client that does not read", &judged(&["slow", &proxy.address()]));
    approve("a client that does not read, over TLS", &judged(&["-tls", "slow", &proxy.tls_address()]));
    approve("a server that does not read", &judged(&["hold", &proxy.address()]));
}

#[test]
fn a_long_talk_of_small_messages_is_no_flood() {
    let Some(server) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&server);
    for size in ["0", "20", "100", "5000"] {
        // Each message waits for the one before: on a busy machine that takes longer than a minute.
        let talk = judged(&[
            "-wait",
            "5m",
            "bidi",
            "-n",
            "40000",
            "-turns",
            "40000",
            "-size",
            size,
            &proxy.address(),
        ]);
        approve(&format!("messages of {size}"), &talk);
    }
    let calls = judged(&["-wait", "5m", "load", "-w", "10", "-n", "40000", "-size", "0", &proxy.address()]);
    approve("calls without anything in them", &calls);
    assert!(!proxy.server.log().contains("CALM"), "{}", proxy.server.log());
}

#[test]
fn ten_reloads_lose_no_call_and_end_no_stream() {
    let Some(server) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&server);
    let load = JudgeLoad::start(&["load", "-c", "4", "-w", "4"], &proxy.address());
    let secured = JudgeLoad::start(&["-tls", "load", "-c", "2", "-w", "2"], &proxy.tls_address());
    let streams = JudgeLoad::start(&["bidi", "-c", "2", "-w", "3", "-turns", "1000000000"], &proxy.address());
    for number in 1..=10 {
        proxy.rewrite(number);
        proxy.server.signal(Signal::HUP);
        let in_force = || proxy.server.get("/generation").text() == number.to_string();
        wait::until("the new configuration answers", in_force);
    }
    for load in [load.end(), secured.end()] {
        approve("calls", &load);
        assert_eq!(load["codes"], json!({ "OK": load["calls"] }), "{load}");
    }
    let told = streams.end();
    approve("streams", &told);
    assert_eq!(told["streams"], 6, "each is the one that was opened: {told}");
}
