//! Clients that read slowly: each gets all of its answer, nobody waits for another, and memory stays within its bounds.

use millstream_tests::client::Client;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::process::{allow_open_files, resident_bytes};
use millstream_tests::server::{Server, is_nginx};

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

/// Bytes that tell their place.
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
    if is_nginx() {
        return;
    }
    let whole = body(6 * MEGABYTE as usize);
    for (zone, cache) in [("memory", ""), ("@DIR@/cache", ""), ("memory", "proxy_max_temp_file_size 0;")] {
        let held = std::sync::Arc::new(millstream_tests::gate::Gate::default());
        let (gate, sent) = (std::sync::Arc::clone(&held), whole.clone());
        let origin = Origin::start(move |_| {
            let mut steps = chunked(&sent);
            // Not before everybody has joined.
            steps.insert(0, Step::Pass(std::sync::Arc::clone(&gate)));
            steps
        });
        let zone = zone.replace("@DIR@", millstream_tests::profile_directory().to_str().unwrap_or_default());
        let zone = if zone == "memory" { zone } else { format!("{zone}-{}", std::process::id()) };
        let server = start(&origin, &zone, "8m", cache);
        let mut clients: Vec<Client> = (0..3).map(|_| ask(&server, "/large")).collect();
        millstream_tests::wait::until("it is asked for", || origin.count() == 1);
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
    if is_nginx() {
        return;
    }
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
