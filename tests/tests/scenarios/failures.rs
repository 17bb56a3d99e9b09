//! When something around the server fails: the API is away, refuses, or the disk is full. One clear line each, nothing lost.

use std::process::Command;

use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};

const PROXY: &str = site! {
    http "proxy_cache_path @DIR@/cache keys_zone=pages:1m use_temp_path=off;
        upstream api { @SERVERS@ }"
    server "location / {
            proxy_pass http://api;
            proxy_cache pages;
            proxy_cache_valid 200 1h;
            add_header X-Cache-Status $upstream_cache_status;
        }"
};

#[test]
fn an_unreachable_api_is_a_502_and_a_line_that_names_it() {
    let nobody = format!("127.0.0.1:{}", ports::free());
    let server = Server::start(PROXY, &[("SERVERS", &format!("server {nobody};"))]);
    assert_eq!(server.get("/").status, 502);
    wait::until("the error log names the API", || {
        server.log().lines().any(|line| line.contains(&nobody) && line.contains("refused"))
    });
}

#[test]
fn the_next_api_is_tried_when_the_first_is_unreachable() {
    let nobody = format!("127.0.0.1:{}", ports::free());
    let origin = Origin::fixed(200, &[], b"the other one");
    let servers = format!("server {nobody}; server {};", origin.address());
    let server = Server::start(PROXY, &[("SERVERS", &servers)]);
    for number in 0..6 {
        let answer = server.get(&format!("/{number}"));
        assert_eq!((answer.status, answer.text().as_str()), (200, "the other one"));
    }
}

#[test]
fn a_post_that_may_have_arrived_is_not_sent_twice() {
    let origin = Origin::start(|_| vec![millstream_tests::origin::Step::Close]);
    let servers = format!("server {0}; server {0};", origin.address());
    let server = Server::start(PROXY, &[("SERVERS", &servers)]);
    assert_eq!(server.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").status, 502);
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_full_disk_stops_storing_and_not_serving() {
    skip_on_nginx!("it cuts the answer off");
    let prefix = Prefix::new();
    let cache = prefix.join("cache");
    std::fs::create_dir(&cache).expect("own directory");
    // Declared first, so that it is dropped last: a directory with something mounted in it cannot be removed.
    let server;
    let Some(_mounted) = Mounted::small(&cache) else {
        eprintln!("SKIPPED: a small tmpfs cannot be mounted here");
        return;
    };
    let body = vec![b'x'; 400_000];
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], &body);
    let servers = format!("server {};", origin.address());
    server = Server::start_in(prefix, PROXY, &[("SERVERS", &servers)]);
    for number in 0..4 {
        let answer = server.get(&format!("/{number}"));
        assert_eq!((answer.status, answer.body.len()), (200, body.len()), "request {number}");
    }
    wait::until("the error log says so", || server.log().to_lowercase().contains("no space left"));
}

/// A tmpfs of 128 KB, unmounted with the value.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn small(folder: &std::path::Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k,mode=777", "tmpfs"]).arg(folder);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Mounted(folder.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: the server that has files open there ends a moment later.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_client_that_asks_for_json_gets_failures_as_problem_details() {
    skip_on_nginx!();
    let nobody = format!("127.0.0.1:{}", ports::free());
    let conf = PROXY.replace(
        "location / {",
        "client_max_body_size 1; error_page 404 /own; location = /own { internal; return 404 own; }
        location = /none { return 404; } location / {",
    );
    let server = Server::start(&conf, &[("SERVERS", &format!("server {nobody};"))]);
    const JSON: &str = "application/problem+json";
    for (path, accept, kind) in [
        ("/", "application/json", JSON),
        ("/", "application/json, text/plain, */*", JSON),
        ("/", "text/html, application/json;q=0.9", "text/html"),
        ("/", "*/*", "text/html"),
    ] {
        let answer = server.get_with(path, &[("Accept", accept)]);
        assert_eq!((answer.status, answer.field("content-type")), (502, Some(kind)), "{accept}");
        if kind == JSON {
            assert_eq!(
                answer.text(),
                "{\"type\":\"about:blank\",\"title\":\"Bad Gateway\",\"status\":502}\n"
            );
            assert_eq!(answer.field("vary"), Some("Accept"));
        }
    }
    assert_eq!(
        server.get_with("/none", &[("Accept", "application/json")]).text(),
        "own",
        "error_page comes first"
    );
    let answer = server
        .ask("POST / HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nContent-Length: 5\r\n\r\nabcde");
    assert_eq!((answer.status, answer.field("content-type")), (413, Some(JSON)));
    assert!(answer.text().contains("\"status\":413"), "{}", answer.text());
}

#[test]
fn a_page_that_the_api_has_withdrawn_does_not_come_back_with_a_later_failure() {
    skip_on_nginx!();
    let withdrawn = [
        ("404", answer(404, &[], b"")),
        ("410", answer(410, &[], b"")),
        ("403", answer(403, &[], b"")),
        ("no-store", answer(200, &[("Cache-Control", "no-store")], b"new")),
        ("private", answer(200, &[("Cache-Control", "private")], b"new")),
        ("cookie", answer(200, &[("Set-Cookie", "a=b"), ("Cache-Control", "max-age=1")], b"new")),
        ("silent", answer(200, &[], b"new")),
    ];
    let kept = [("429", answer(429, &[], b"")), ("500", answer(500, &[], b""))];
    for ((name, between), comes_back) in
        withdrawn.map(|case| (case, false)).into_iter().chain(kept.map(|case| (case, true)))
    {
        let origin = Origin::numbered(move |_, number| match number {
            0 => answer(200, &[("Cache-Control", "max-age=1")], b"old"),
            1 => between.clone(),
            _ => answer(503, &[], b""),
        });
        let server = Server::start(
            site! {
                http "proxy_cache_path memory keys_zone=pages:1m;"
                server "location / {
                    proxy_pass http://@ORIGIN@; proxy_cache pages; proxy_cache_credentials public;
                    proxy_cache_use_stale http_503;
                }"
            },
            &[("ORIGIN", &origin.address())],
        );
        assert_eq!(server.get("/page").text(), "old", "{name}");
        wait::until("the stored response has expired", || {
            server.get("/page");
            origin.count() == 2
        });
        let last = server.get("/page");
        assert_eq!(
            (last.status, last.text() == "old"),
            if comes_back { (200, true) } else { (503, false) },
            "{name}"
        );
    }
}
