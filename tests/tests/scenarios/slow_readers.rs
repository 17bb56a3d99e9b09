//! Clients that read slowly: each gets all of its answer, nobody waits for another, and memory stays within its bounds.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use millstream_tests::client::{self, Client};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::{allow_open_files, resident_bytes};
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};

const MEGABYTE: u64 = 1024 * 1024;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; worker_processes 2;
    events { worker_connections 4096; }
    http {
        access_log off; send_timeout 600s; proxy_temp_path @DIR@/temp;
        proxy_cache_path @ZONE@ keys_zone=z:1m memory=@MEMORY@;
        proxy_http_version 1.1;
        server {
            listen 127.0.0.1:@PORT@ sndbuf=64k;
            location / { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid any 1h; proxy_cache_lock_timeout 60s; @CACHE@ }
        }
    }";

fn start(origin: &Origin, zone: &str, memory: &str, cache: &str) -> Server {
    let address = origin.address();
    Server::start(SITE, &[("ORIGIN", &address), ("ZONE", zone), ("MEMORY", memory), ("CACHE", cache)])
}

fn body(length: usize) -> Vec<u8> {
    (0..length / 8).flat_map(|at| (at as u64).to_le_bytes()).collect()
}

fn chunked(body: &[u8]) -> Vec<Step> {
    let mut steps = vec![Step::Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec())];
    for piece in body.chunks(64 * 1024) {
        steps.push(Step::Send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()));
    }
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

fn ask(server: &Server, path: &str) -> Client {
    let mut client = server.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).expect("sent");
    client
}

#[test]
fn of_readers_of_one_large_answer_each_gets_all_whatever_its_pace() {
    skip_on_nginx!();
    let whole = body(6 * MEGABYTE as usize);
    for (zone, cache) in [("memory", ""), ("@DIR@/cache", ""), ("memory", "proxy_max_temp_file_size 0;")] {
        let held = Arc::new(Gate::default());
        let (gate, sent) = (Arc::clone(&held), whole.clone());
        let origin = Origin::start(move |_| {
            let mut steps = chunked(&sent);
            // Not before everybody has joined.
            steps.insert(0, Step::Pass(Arc::clone(&gate)));
            steps
        });
        let zone = zone.replace("@DIR@", millstream_tests::profile_directory().to_str().unwrap_or_default());
        let zone = if zone == "memory" { zone } else { format!("{zone}-{}", std::process::id()) };
        let server = start(&origin, &zone, "8m", cache);
        let mut clients: Vec<Client> = (0..3).map(|_| ask(&server, "/large")).collect();
        wait::until("it is asked for", || origin.count() == 1);
        held.open();
        let lasts = cache.is_empty();
        if lasts {
            // The others have not read a byte, and nobody waits for them.
            let fast = clients.pop().expect("three").answer().expect("all of it");
            assert!(fast.body == whole);
        }
        let readers: Vec<_> = clients
            .into_iter()
            .map(|mut client| std::thread::spawn(move || client.answer().map(|answer| answer.body)))
            .collect();
        for reader in readers {
            assert!(reader.join().expect("no panic").expect("all of it") == whole, "{cache}");
        }
        if zone != "memory" {
            drop(server);
            _ = std::fs::remove_dir_all(&zone);
        }
    }
}

#[test]
fn what_is_held_for_slow_readers_is_within_the_bound_and_whole() {
    skip_on_nginx!();
    assert!(allow_open_files(4096), "ulimit -n has to allow the connections");
    const READERS: u64 = 200;
    for (what, memory, length, is_chunked, asks) in [
        ("evicted while they are read", 16, 1, false, 1),
        ("hits that are evicted", 16, 1, false, 2),
        ("too large to be stored", 16, 4, true, 1),
    ] {
        let whole = body((length * MEGABYTE) as usize);
        let sent = whole.clone();
        let origin =
            Origin::start(move |_| if is_chunked { chunked(&sent) } else { answer(200, &[], &sent) });
        let server = start(&origin, "memory", &format!("{memory}m"), "");
        let before = resident_bytes(server.id());
        let mut clients = Vec::new();
        for number in 0..READERS {
            let path = format!("/{number}");
            for _ in 1..asks {
                assert!(server.get(&path).body == whole);
            }
            let mut client = ask(&server, &path);
            assert_eq!(client.head().expect("a head").status, 200);
            clients.push(client);
        }
        let held = resident_bytes(server.id()).saturating_sub(before);
        let bound = (memory + 64) * MEGABYTE + READERS * 64 * 1024;
        assert!(held <= bound, "{what}: {} MB held, {} allowed", held / MEGABYTE, bound / MEGABYTE);
        for mut client in clients {
            let read = match is_chunked {
                true => client.chunked().expect("all of it"),
                false => client.exactly(whole.len()).expect("all of it"),
            };
            assert!(read == whole, "{what}");
        }
    }
}

#[test]
fn what_many_slow_readers_of_one_answer_are_handed_at_its_end_is_within_the_bound() {
    skip_on_nginx!();
    assert!(allow_open_files(4096), "ulimit -n has to allow the connections");
    const READERS: u64 = 80;
    let whole = body(3 * MEGABYTE as usize);
    let gate = Arc::new(Gate::default());
    let (held, sent) = (Arc::clone(&gate), whole.clone());
    let origin = Origin::start(move |_| {
        // Nothing before everybody has come; then all of it.
        let mut steps = vec![Step::Pass(Arc::clone(&held))];
        steps.extend(answer(200, &[], &sent));
        steps
    });
    let server = start(&origin, "memory", "32m", "");
    let before = resident_bytes(server.id());
    let mut clients: Vec<Client> = (0..READERS).map(|_| ask(&server, "/one")).collect();
    wait::until("it is asked for", || origin.count() == 1);
    assert!(gate.open(), "one request is enough for all");
    for client in &mut clients {
        assert_eq!(client.head().expect("a head").status, 200);
    }
    assert!(server.get("/one").body == whole, "the fill has ended");
    // As much as makes room for more, so that each is handed what comes next.
    let begun = MEGABYTE as usize;
    for client in &mut clients {
        assert!(client.exactly(begun).expect("the beginning") == whole[..begun]);
    }
    let held = resident_bytes(server.id()).saturating_sub(before);
    let bound = (32 + 64) * MEGABYTE + READERS * 64 * 1024;
    assert!(held <= bound, "{} MB held, {} allowed", held / MEGABYTE, bound / MEGABYTE);
    for mut client in clients {
        assert!(client.exactly(whole.len() - begun).expect("the rest") == whole[begun..]);
    }
    assert_eq!(origin.count(), 1);
}

/// One connection to the API; a second request gets 502.
const ONE_AT_A_TIME: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log;
    events { worker_connections 1024; }
    http {
        access_log off; send_timeout 600s; proxy_temp_path @DIR@/temp; @ZONE@
        upstream api { zone api 64k; server @ORIGIN@ max_conns=1; }
        server {
            listen 127.0.0.1:@PORT@ sndbuf=64k;
            location / { proxy_pass http://api; }
            location /stored { proxy_pass http://api; @CACHE@ }
        }
    }";

#[test]
fn a_server_is_free_again_while_a_slow_client_reads_what_was_spilled() {
    let whole = body(8 * MEGABYTE as usize);
    let sent = whole.clone();
    let origin = Origin::start(move |request| match request.target() {
        "/large" => answer(200, &[], &sent),
        _ => answer(200, &[], b"small"),
    });
    let server = Server::start(ONE_AT_A_TIME, &[("ORIGIN", &origin.address()), ("ZONE", ""), ("CACHE", "")]);
    let mut slow = ask(&server, "/large");
    assert_eq!(slow.head().expect("a head").status, 200);
    wait::until("the server is free, though nobody has read", || server.get("/small").status == 200);
    assert!(slow.exactly(whole.len()).expect("all of it") == whole);
}

#[test]
fn a_server_is_busy_for_as_long_as_it_sends_into_the_cache_though_its_client_is_done() {
    skip_on_nginx!("a client waits for the end of its answer there");
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let origin = Origin::start(move |request| match request.target() {
        "/stored" => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"x\"\r\n\r\nfirst".to_vec()),
            Step::Pass(Arc::clone(&held)),
            Step::Send(b"later".to_vec()),
        ],
        _ => answer(200, &[], b"small"),
    });
    let values = [
        ("ORIGIN", &*origin.address()),
        ("ZONE", "proxy_cache_path memory keys_zone=z:1m memory=16m;"),
        ("CACHE", "proxy_cache z; proxy_cache_valid any 1h;"),
    ];
    let server = Server::start(ONE_AT_A_TIME, &values);
    let mut client = server.client();
    let part = client.get_with("/stored", &[("Range", "bytes=0-3")]).expect("an answer");
    assert_eq!((part.status, part.text().as_str()), (206, "firs"));
    assert_eq!(client.get("/small").expect("an answer").status, 502, "the server still sends");
    assert!(gate.open(), "none of it waited for the rest");
    wait::until("the server is free", || server.get("/small").status == 200);
    assert_eq!(server.get("/stored").text(), "firstlater");
    assert_eq!(origin.requests().iter().filter(|request| request.target() == "/stored").count(), 1);
}

#[test]
fn a_client_over_tls_that_takes_nothing_is_gone_after_send_timeout() {
    skip_on_nginx!();
    const STALLED: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; worker_processes 1; events {}
        http {
            access_log off; send_timeout 1s; lingering_timeout 600s; lingering_time 600s; dashboard 127.0.0.1:@DASHBOARD@;
            ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
            server { listen 127.0.0.1:@PORT@ ssl; location /large { alias @DIR@/large; } }
        }";
    let dashboard = ports::free();
    let prefix = Prefix::with_certificate("localhost");
    prefix.write("large", body(32 * MEGABYTE as usize));
    let server = Server::start_in(prefix, STALLED, &[("DASHBOARD", &dashboard.to_string())]);
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{}", server.port())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is installed");
    let mut stdin = client.stdin.take().expect("it is piped");
    stdin.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let metric = |name: &str| -> u64 {
        let text = client::get(dashboard, "/metrics").text();
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
    };
    wait::until("it is asked", || metric("millstream_client_tls_handshakes_total{session=\"new\"} ") == 1);
    // The one that asks for the metrics is a connection too.
    wait::until("it is let go", || metric("millstream_client_connections{state=\"active\"} ") <= 1);
    _ = client.kill();
    _ = client.wait();
}
