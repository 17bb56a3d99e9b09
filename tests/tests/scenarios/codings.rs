//! Each client gets what it likes best of the codings that are on, made once, kept, and still there after a restart.

use std::io::Read;
use std::process::Command;

use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;

const SITE: &str = site! {
    http "gzip on; gzip_types application/json; gzip_vary on;
        brotli on; brotli_types application/json;
        zstd on; zstd_types application/json;
        proxy_cache_path @DIR@/cache keys_zone=z:1m;"
    server "add_header X-Cache $upstream_cache_status;
        location / { proxy_pass http://@ORIGIN@; proxy_cache z; }
        location /live { proxy_pass http://@ORIGIN@; }"
};

fn body() -> String {
    (0..800)
        .map(|number| format!("{{\"number\": {number}, \"name\": \"person{number}@example.org\"}}\n"))
        .collect()
}

fn origin() -> Origin {
    Origin::start(|_| {
        let fields =
            [("Content-Type", "application/json"), ("Cache-Control", "max-age=3600"), ("ETag", "\"a\"")];
        answer(200, &fields, body().as_bytes())
    })
}

fn read(answer: &Answer) -> String {
    let (bytes, mut text) = (&answer.body[..], String::new());
    let read = match answer.field("content-encoding") {
        Some("gzip") => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text),
        Some("br") => brotli::Decompressor::new(bytes, 4096).read_to_string(&mut text),
        Some("zstd") => {
            zstd::stream::read::Decoder::new(bytes).and_then(|mut body| body.read_to_string(&mut text))
        }
        _ => return answer.text(),
    };
    read.expect("it is coded as it says");
    text
}

const CLIENTS: [(&str, Option<&str>); 6] = [
    ("gzip, deflate, br, zstd", Some("br")),
    ("gzip, deflate", Some("gzip")),
    ("zstd, gzip", Some("zstd")),
    ("br;q=0.5, gzip;q=0.9", Some("gzip")),
    ("gzip;q=0.5, identity", None),
    ("*;q=0", None),
];

#[test]
fn each_client_gets_the_coding_it_likes_best_live_from_the_cache_and_after_a_restart() {
    skip_on_nginx!("it has neither brotli nor zstd of its own");
    let origin = origin();
    let mut server = Server::start_in(Prefix::new(), SITE, &[("ORIGIN", &origin.address())]);
    for path in ["/live", "/"] {
        for (accepted, expected) in CLIENTS {
            let answer = server.get_with(path, &[("Accept-Encoding", accepted)]);
            assert_eq!(answer.field("content-encoding"), expected, "{path} {accepted}");
            assert_eq!(read(&answer), body(), "{path} {accepted}");
            assert_eq!(answer.field("vary"), Some("Accept-Encoding"), "{path} {accepted}");
            // Bytes that differ have a tag that says so (RFC 9110 §8.8.1).
            let tag = if expected.is_some() { "W/\"a\"" } else { "\"a\"" };
            assert_eq!(answer.field("etag"), Some(tag), "{path} {accepted}");
        }
    }
    let asked = origin.count();
    let get = |server: &Server, fields: &[(&str, &str)]| {
        let answer = server.get_with("/", fields);
        assert_eq!(answer.field("x-cache"), Some("HIT"), "{fields:?}");
        answer
    };
    let accepts = ("Accept-Encoding", "br");
    assert_eq!(get(&server, &[accepts, ("If-None-Match", "W/\"a\"")]).status, 304);
    // A weak tag is none for If-Range, and a coded answer has no ranges (RFC 9110 §13.1.5).
    for extra in [&[("Range", "bytes=0-9"), ("If-Range", "W/\"a\"")][..], &[("Range", "bytes=0-9")]] {
        let answer = get(&server, &[&[accepts], extra].concat());
        assert_eq!((answer.status, answer.field("content-encoding")), (200, Some("br")), "{extra:?}");
    }
    assert_eq!(get(&server, &[("Range", "bytes=0-9")]).status, 206);

    let coded: usize = CLIENTS[..3]
        .iter()
        .map(|(accepted, _)| get(&server, &[("Accept-Encoding", accepted)]).body.len())
        .sum();
    let length = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let folder = server.prefix().join("cache");
    wait::until("the file has what was made", || {
        files(&folder).iter().any(|path| length(path) > (body().len() + coded) as u64)
    });
    assert!(server.stop(Signal::QUIT).is_some());
    server.run().expect("it starts again");
    for (accepted, expected) in CLIENTS {
        let answer = get(&server, &[("Accept-Encoding", accepted)]);
        assert_eq!((answer.field("content-encoding"), read(&answer)), (expected, body()), "{accepted}");
    }
    assert_eq!(origin.count(), asked);
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn curl_reads_every_coding_that_it_knows() {
    skip_on_nginx!("it has neither brotli nor zstd of its own");
    let Ok(version) = Command::new("curl").arg("--version").output() else { return };
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let origin = origin();
    let server = Server::start_in(Prefix::new(), SITE, &[("ORIGIN", &origin.address())]);
    for (feature, coding) in [("libz", "gzip"), ("brotli", "br"), ("zstd", "zstd")] {
        if !version.contains(feature) {
            continue;
        }
        for path in ["live", "cached", "cached"] {
            let url = format!("http://127.0.0.1:{}/{path}", server.port());
            let asks = format!("Accept-Encoding: {coding}");
            let curl =
                Command::new("curl").args(["-s", "--compressed", "-H", &asks, &url]).output().expect("curl");
            assert!(curl.status.success() && curl.stdout == body().as_bytes(), "{coding} {path}: {curl:?}");
        }
    }
}
