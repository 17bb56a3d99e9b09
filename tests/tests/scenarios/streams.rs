//! Answers that take their time: events pass at once, nobody gets another's stream, and nothing is held for who has left.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::endless::Endless;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const SITE: &str = site! {
    events "worker_connections 4096;"
    http "gzip on; gzip_min_length 0; gzip_types text/event-stream application/x-ndjson;
        proxy_temp_path @DIR@/temp; client_body_temp_path @DIR@/body;
        proxy_cache_path @ZONE@ keys_zone=z:1m @MEMORY@;
        proxy_http_version 1.1;"
    server "location / { proxy_pass http://@ORIGIN@; }
        location /unbuffered { proxy_pass http://@ORIGIN@; proxy_buffering off; }
        location /cached { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid any 1s; @CACHE@ }"
};

fn start(origin: &str, cache: &str) -> Server {
    let memory = [("ZONE", "memory"), ("MEMORY", "memory=16m")];
    let values = [("ORIGIN", origin), ("CACHE", cache), memory[0], memory[1]];
    Server::start(SITE, &values)
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

fn read_until(client: &mut Client, packed: &mut Vec<u8>, is_packed: bool, wanted: &str) -> String {
    loop {
        let size = usize::from_str_radix(&client.line().expect("a chunk"), 16).expect("a size");
        packed.extend(client.exactly(size).expect("the chunk"));
        client.line().expect("its end");
        let mut text = Vec::new();
        match is_packed {
            // It has not ended, which is the point.
            true => _ = flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text),
            false => text.clone_from(packed),
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if text.contains(wanted) {
            return text;
        }
    }
}

#[test]
fn an_event_reaches_the_client_before_the_next_one_is_made_compressed_or_not() {
    skip_on_nginx!();
    let types = ["text/event-stream", "application/x-ndjson"];
    for (path, kind, fields) in [
        ("/", types[0], ""),
        ("/", types[1], ""),
        ("/", types[1], "X-Accel-Buffering: no\r\n"),
        ("/unbuffered", types[0], ""),
        ("/cached", types[0], ""),
        ("/cached", types[1], ""),
    ] {
        for is_packed in [true, false] {
            let gate = Arc::new(Gate::default());
            let head = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: {kind}\r\n{fields}\r\n"
            );
            let first = [head.into_bytes(), chunk("event one\n\n")].concat();
            let second = [chunk("event two\n\n"), b"0\r\n\r\n".to_vec()].concat();
            let origin = Origin::in_two(&first, &gate, &second);
            let server = start(&origin.address(), "");
            let mut client = server.client();
            let accept = if is_packed { "Accept-Encoding: gzip\r\n" } else { "" };
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{accept}\r\n")).expect("sent");
            let head = client.head().expect("a head");
            assert_eq!(head.field("content-encoding"), is_packed.then_some("gzip"), "{path} {kind}");
            let mut packed = Vec::new();
            read_until(&mut client, &mut packed, is_packed, "event one\n\n");
            assert!(gate.open(), "{path} {kind} {fields}: the event came only with the next one");
            read_until(&mut client, &mut packed, is_packed, "event two\n\n");
        }
    }
}

#[test]
fn a_client_that_leaves_with_more_behind_its_request_than_is_read_ahead_frees_the_upstream_soon() {
    skip_on_nginx!();
    let origin = Endless::start(b"");
    let server = start(&origin.address(), "proxy_cache_unread_timeout 1s;");
    let behind = vec![b'G'; 96 * 1024];
    for (number, path) in ["/", "/cached", "/", "/cached"].into_iter().enumerate() {
        let mut client = server.client();
        client.send(format!("GET {path}?{number} HTTP/1.1\r\nHost: a\r\n\r\n")).expect("sent");
        wait::until("the origin is asked", || origin.asked() > number);
        client.send(&behind).expect("the kernel keeps what is not read");
    }
    let closed = wait::within(Duration::from_secs(20), || (origin.open() == 0).then_some(()));
    assert!(closed.is_some(), "{} connections to the upstream are open", origin.open());
}

#[test]
fn when_everybody_has_left_a_stream_its_upstream_connection_closes_soon() {
    skip_on_nginx!();
    let head =
        |more: &str| format!("HTTP/1.1 200 OK\r\n{more}Transfer-Encoding: chunked\r\n\r\n7\r\nevent 1\r\n");
    for (what, path, begin, cache) in [
        ("not cached", "/", head(""), ""),
        ("not to be stored", "/cached", head("Cache-Control: no-store\r\n"), ""),
        ("stored if it ended", "/cached", head(""), "proxy_cache_unread_timeout 1s;"),
        ("arriving for too long", "/cached", head(""), "proxy_cache_fill_timeout 10ms;"),
        ("no head yet", "/cached", String::new(), "proxy_cache_unread_timeout 1s;"),
    ] {
        let origin = Endless::start(begin.as_bytes());
        let server = start(&origin.address(), cache);
        for number in 0..20 {
            let mut client = server.client();
            client.send(format!("GET {path}?{number} HTTP/1.1\r\nHost: a\r\n\r\n")).expect("sent");
            wait::until("the origin is asked", || origin.asked() > number);
            if !begin.is_empty() {
                assert_eq!(client.head().expect("a head").status, 200, "{what}");
            }
        }
        let closed = wait::within(Duration::from_secs(20), || (origin.open() == 0).then_some(()));
        assert!(closed.is_some(), "{what}: {} connections to the upstream are open", origin.open());
    }
}

#[test]
fn an_answer_that_arrives_for_too_long_is_not_kept_and_nobody_new_joins_it() {
    skip_on_nginx!();
    let begin = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nevent 1\r\n";
    let origin = Endless::start(begin);
    let server = start(&origin.address(), "proxy_cache_fill_timeout 100ms;");
    let ask = || {
        let mut client = server.client();
        client.send("GET /cached HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        assert_eq!(client.head().expect("a head").status, 200);
        assert_eq!(client.line().expect("a chunk"), "7", "each from its own beginning");
        client
    };
    let first = ask();
    let mut others = Vec::new();
    wait::until("somebody gets a stream of its own", || {
        others.push(ask());
        origin.asked() > 1
    });
    drop((first, others));
}

#[test]
fn an_upgraded_connection_does_not_hold_up_who_asks_for_the_same() {
    skip_on_nginx!();
    let origin = Origin::start(|request| match request.field("upgrade") {
        Some(_) => {
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
            vec![Step::Send(head.into()), Step::Pass(Arc::new(Gate::default()))]
        }
        None => answer(200, &[], b"plain"),
    });
    let upgrade = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\";
        proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;";
    let server = start(&origin.address(), upgrade);
    let mut tunnel = server.client();
    tunnel
        .send("GET /cached HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        .expect("sent");
    assert_eq!(tunnel.head().expect("a head").status, 101);
    assert_eq!(server.get("/cached").text(), "plain");
}

#[test]
fn answers_that_nobody_else_can_have_are_fetched_side_by_side() {
    skip_on_nginx!();
    for (what, status, field, cache) in [
        ("an internal redirect", 200, ("X-Accel-Redirect", "/elsewhere"), ""),
        (
            "an error with a page of its own that may not be stored",
            404,
            ("Cache-Control", "no-store"),
            "proxy_intercept_errors on; error_page 404 /page;",
        ),
    ] {
        let gate = Arc::new(Gate::default());
        let held = Arc::clone(&gate);
        let first = std::sync::atomic::AtomicBool::new(true);
        let begun = Arc::new(Gate::default());
        let begin = Arc::clone(&begun);
        let origin = Origin::start(move |request| {
            if !request.target().starts_with("/cached") {
                return answer(200, &[], b"instead");
            }
            let gate = match first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                true => &begin,
                false => &held,
            };
            let mut steps = vec![Step::Pass(Arc::clone(gate))];
            steps.extend(answer(status, &[field], b"no"));
            steps
        });
        let server = start(&origin.address(), cache);
        let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
        for client in &mut clients {
            client.send("GET /cached HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        }
        wait::until("the first is asked", || origin.count() == 1);
        begun.open();
        let asked = || origin.requests().iter().filter(|request| request.target() == "/cached").count();
        let all = wait::within(Duration::from_secs(10), || (asked() == 4).then_some(()));
        assert!(all.is_some() && gate.open(), "{what}: {} were asked at a time", asked());
        for client in &mut clients {
            assert_eq!(client.answer().expect("an answer").text(), "instead", "{what}");
        }
    }
}

#[test]
fn confirmations_that_may_not_be_stored_are_asked_for_side_by_side() {
    skip_on_nginx!();
    let gates = [Arc::new(Gate::default()), Arc::new(Gate::default())];
    let [begun, held] = gates.each_ref().map(Arc::clone);
    let first = std::sync::atomic::AtomicBool::new(true);
    let origin = Origin::start(move |request| {
        if request.field("if-none-match").is_none() {
            return answer(200, &[("ETag", "\"one\""), ("Cache-Control", "max-age=3600")], b"stored");
        }
        let is_first = first.swap(false, std::sync::atomic::Ordering::SeqCst);
        // Whose cookie it is nobody can tell: what it comes with is not stored.
        let confirmed = b"HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\nSet-Cookie: a=b\r\n\r\n";
        vec![Step::Pass(Arc::clone(if is_first { &begun } else { &held })), Step::Send(confirmed.to_vec())]
    });
    let cache = "proxy_cache_revalidate on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;
        proxy_cache_purge PURGE from local; proxy_cache_purge_soft on;";
    let server = start(&origin.address(), cache);
    assert_eq!(server.get("/cached").text(), "stored");
    let purged = server.request("PURGE", "/cached", &[]);
    assert_eq!(purged.status, 200, "from now on it is stale");
    let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send("GET /cached HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    }
    wait::until("the first asks whether it is still so", || origin.count() == 2);
    gates[0].open();
    let all = wait::within(Duration::from_secs(10), || (origin.count() == 5).then_some(()));
    assert!(all.is_some() && gates[1].open(), "{} were asked at a time", origin.count() - 2);
    for client in &mut clients {
        assert_eq!(client.answer().expect("an answer").text(), "stored");
    }
}

#[test]
fn a_body_goes_out_again_when_the_whole_is_asked_for_once_more() {
    skip_on_nginx!();
    let origin = Origin::start(|request| match request.field("if-none-match") {
        // Of something else than what is stored, so that it confirms nothing.
        Some(_) => vec![Step::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"other\"\r\n\r\n".to_vec())],
        None => {
            let body = format!("{} bytes", request.body.len());
            answer(
                200,
                &[("ETag", "\"one\""), ("Cache-Control", "max-age=0, must-revalidate")],
                body.as_bytes(),
            )
        }
    });
    let cache = "proxy_cache_methods QUERY; proxy_cache_revalidate on;";
    let server = start(&origin.address(), cache);
    for _ in 0..2 {
        let answer = server.ask("QUERY /cached HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!((answer.status, answer.text().as_str()), (200, "5 bytes"));
    }
}
