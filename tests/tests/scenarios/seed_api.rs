//! The five steps of the article about a Flask API: default proxy, tuned, cache on disk, cache on tmpfs, buffered log.
//!
//! In front of real Gunicorn. What each file promises is in `tests/seed-configs/README.md`.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use millstream_tests::client::Answer;
use millstream_tests::gunicorn::Gunicorn;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::{Prefix, seed};
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::{load, wait};
use rustix::process::Signal;

fn in_front_of_gunicorn(name: &str, prefix: Prefix) -> (Server, Gunicorn) {
    let api = Gunicorn::start(prefix.path());
    let server = Server::start_in(prefix, &seed(name), &[("ORIGIN", &api.address())]);
    (server, api)
}

fn cache_status(answer: &Answer) -> &str {
    answer.cache_status()
}

fn unzip(body: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(body).read_to_string(&mut text).expect("a gzip body");
    text
}

#[test]
fn api_1_is_a_plain_proxy_that_tells_the_api_who_asks_and_logs_every_request() {
    let (server, _api) = in_front_of_gunicorn("api-1-default", Prefix::new());
    let index = server.get("/");
    assert_eq!(index.status, 200);
    assert!(index.text().contains("person7@example.org"), "{}", index.text());
    let seen =
        server.get_with("/client", &[("Host", "api.example:81"), ("X-Forwarded-For", "192.0.2.7")]).text();
    for expected in [
        r#""host":"api.example:81""#,
        r#""x-forwarded-for":"192.0.2.7, 127.0.0.1""#,
        r#""x-real-ip":"127.0.0.1""#,
        r#""x-forwarded-proto":"http""#,
    ] {
        assert!(seen.contains(expected), "{expected} is not in {seen}");
    }
    let line = format!("\"GET / HTTP/1.1\" 200 {} \"-\" \"-\"", index.body.len());
    wait::until("both requests are in the access log", || {
        server.prefix().read("access.log").lines().count() == 2
    });
    let log = server.prefix().read("access.log");
    assert!(log.starts_with("127.0.0.1 - - [") && log.contains(&line), "{log}");
    let report = load::run(server.port(), "/", 10, Duration::from_secs(1));
    assert!(report.failures.is_empty() && report.answered > 20, "{report:?}");
}

#[test]
fn api_2_compresses_json_for_those_who_accept_it_and_writes_no_access_log() {
    let (server, _api) = in_front_of_gunicorn("api-2-tuned", Prefix::new());
    let plain = server.get("/");
    assert_eq!((plain.status, plain.field("content-encoding")), (200, None));
    let zipped = server.get_with("/", &[("Accept-Encoding", "gzip, deflate")]);
    assert_eq!(zipped.field("content-encoding"), Some("gzip"));
    assert_eq!(zipped.field("vary"), Some("Accept-Encoding"));
    assert_eq!(unzip(&zipped.body), plain.text());
    assert!(zipped.body.len() < plain.body.len());
    let refused = server.get_with("/", &[("Accept-Encoding", "gzip;q=0")]);
    assert_eq!(refused.field("content-encoding"), None, "q=0 means: not this one (RFC 9110 §12.5.3)");
    let small = server.get_with("/items/2000", &[("Accept-Encoding", "gzip")]);
    assert_eq!(small.field("content-encoding"), None, "shorter than gzip_min_length");
    assert_eq!(server.prefix().read("access.log"), "");
}

fn cache_answers_from(folder: &str, mut server: Server) {
    assert_eq!(cache_status(&server.get("/")), "MISS");
    let hit = server.get("/");
    assert_eq!((cache_status(&hit), hit.status), ("HIT", 200));
    assert!(hit.text().contains("person7@example.org"));
    // The key names the credential, so each has an entry of its own.
    let by = |name: &str| server.get_with("/client", &[("Authorization", name)]);
    assert_eq!(cache_status(&by("Basic b25l")), "MISS");
    assert_eq!(cache_status(&by("Basic dHdv")), "MISS");
    let again = by("Basic b25l");
    assert_eq!(cache_status(&again), "HIT");
    assert!(again.text().contains("Basic b25l"), "{}", again.text());
    assert_eq!(cache_status(&server.get("/private")), "MISS");
    assert_eq!(cache_status(&server.get("/private")), "MISS", "private, no-store is never stored");
    let zipped = server.get_with("/", &[("Accept-Encoding", "gzip")]);
    assert_eq!((cache_status(&zipped), unzip(&zipped.body)), ("HIT", hit.text()));

    // One file per entry under nginx's own names: the MD5 of the key.
    let file = format!("{folder}/{MD5_OF_LOCALHOST_ROOT}");
    wait::until("the entry is on disk", || server.prefix().join(&file).exists());
    wait::until("all three entries are on disk", || server.prefix().count_files(folder) == 3);
    assert!(server.stop(Signal::QUIT).is_some());
    server.run().expect("it starts again");
    assert_eq!(cache_status(&server.get("/")), "HIT", "a restart finds the cache warm");
}

/// MD5 of `localhost/`: the key of `/` without a credential.
const MD5_OF_LOCALHOST_ROOT: &str = "f3bfeb3387c38d7a557be4d864d67f39";

#[test]
fn api_3_caches_on_disk_by_host_target_and_credential() {
    let (server, _api) = in_front_of_gunicorn("api-3-cache-disk", Prefix::new());
    cache_answers_from("cache", server);
}

#[test]
fn api_4_caches_on_tmpfs_as_on_disk() {
    let shared_memory = Path::new("/dev/shm");
    let prefix = if shared_memory.is_dir() { Prefix::within(shared_memory) } else { Prefix::new() };
    let (server, _api) = in_front_of_gunicorn("api-4-cache-ram", prefix);
    cache_answers_from("ramcache", server);
}

#[test]
fn api_5_keeps_log_lines_in_memory_and_writes_each_once_at_the_end() {
    let (mut server, _api) = in_front_of_gunicorn("api-5-buffered-log", Prefix::new());
    let mut client = server.client();
    for number in 0..5 {
        assert_eq!(
            cache_status(&client.get("/").expect("an answer")),
            if number == 0 { "MISS" } else { "HIT" }
        );
    }
    drop(client);
    assert_eq!(
        server.prefix().read("fast_api.log"),
        "",
        "a buffer of 256 KB is not full yet, nor are ten seconds over"
    );
    assert!(server.stop(Signal::QUIT).is_some());
    let log = server.prefix().read("fast_api.log");
    assert_eq!(log.matches("\"GET / HTTP/1.1\" 200 ").count(), 5, "{log}");
    assert_eq!(log.lines().count(), 5);
    assert_eq!(server.prefix().read("access.log"), "", "the location's own log replaces the inherited one");
}

#[test]
fn an_answer_that_sets_a_cookie_is_not_shared() {
    let origin = Origin::start(|_| {
        answer(200, &[("Set-Cookie", "session=1"), ("Cache-Control", "max-age=60")], b"mine")
    });
    let server = Server::start(&seed("api-3-cache-disk"), &[("ORIGIN", &origin.address())]);
    for _ in 0..3 {
        let answer = server.get("/");
        assert_eq!((cache_status(&answer), answer.field("set-cookie")), ("MISS", Some("session=1")));
    }
    assert_eq!(origin.count(), 3);
}

#[test]
fn a_404_is_remembered_for_its_minute_and_a_500_is_not() {
    let missing = Origin::fixed(404, &[], b"no such thing");
    let server = Server::start(&seed("api-3-cache-disk"), &[("ORIGIN", &missing.address())]);
    for _ in 0..3 {
        assert_eq!(server.get("/nothing").status, 404);
    }
    assert_eq!(missing.count(), 1);
    let broken = Origin::fixed(500, &[], b"oh no");
    let server = Server::start(&seed("api-3-cache-disk"), &[("ORIGIN", &broken.address())]);
    for _ in 0..3 {
        assert_eq!(server.get("/").status, 500);
    }
    assert_eq!(broken.count(), 3);
}

#[test]
fn a_cut_answer_is_not_stored() {
    let origin = Origin::start(|_| {
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this".to_vec();
        vec![millstream_tests::origin::Step::Send(cut), millstream_tests::origin::Step::Close]
    });
    let server = Server::start(&seed("api-3-cache-disk"), &[("ORIGIN", &origin.address())]);
    for _ in 0..2 {
        let answer = server.client().get("/");
        let passed_off_as_whole = answer.is_ok_and(|answer| answer.status == 200 && answer.body.len() == 9);
        assert!(!passed_off_as_whole, "a cut answer may not look whole");
    }
    assert!(origin.count() >= 2, "the second request asks the API again");
    if !is_nginx() {
        assert_eq!(server.prefix().count_files("cache"), 0);
    }
}
