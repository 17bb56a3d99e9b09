//! Clients that stop reading what is compressed for them: encoders have a bound, others still get theirs, and nothing is lost.

use std::io::Read;

use millstream_tests::client::Client;
use millstream_tests::frames::{End, Frames, GENEROUS};
use millstream_tests::process::resident_bytes;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::settings;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; worker_processes 2;
    events { worker_connections 4096; }
    http {
        access_log off; send_timeout 600s; default_type text/html;
        gzip on; brotli on; zstd on; @LEVELS@
        server { listen 127.0.0.1:@PORT@ sndbuf=16k; http2 on; root @DIR@/site; }
    }";

const LARGE: usize = 3 << 19;

fn text(length: usize) -> String {
    let digits = (0..length as u64 / 8).map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761) as u32));
    digits.collect()
}

fn start(levels: &str) -> Server {
    let server = Server::start(SITE, &[("LEVELS", levels)]);
    let site = server.prefix().join("site");
    std::fs::create_dir(&site).expect("own directory");
    std::fs::write(site.join("large"), text(LARGE)).expect("own directory");
    std::fs::write(site.join("small"), text(5_000)).expect("own directory");
    server
}

fn read(coding: &str, bytes: &[u8]) -> String {
    let mut text = String::new();
    let read = match coding {
        "gzip" => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text),
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_string(&mut text),
        _ => zstd::stream::read::Decoder::new(bytes).and_then(|mut body| body.read_to_string(&mut text)),
    };
    read.expect("it is coded as it says");
    text
}

/// What the encoders of all streams may hold, and a margin: streams with their buffers, threads, the
/// allocator's own.
const ENCODERS: u64 = 256 << 20;
const BESIDES: u64 = 48 << 20;
const EACH: u64 = 160 << 10;

fn assert_bounded(server: &Server, before: u64, streams: u64, what: &str) {
    let grown = resident_bytes(server.id()).saturating_sub(before);
    println!("{what}: {} MiB more for {streams} that stall", grown >> 20);
    assert!(grown <= ENCODERS + BESIDES + EACH * streams, "{what}: {} MiB", grown >> 20);
}

/// Others lack encoders until the stalled ones have stalled for a second.
fn assert_others_have_encoders(server: &Server, coding: &str) {
    wait::until(&format!("a newcomer has an encoder for {coding}"), || {
        let answer = server.get_with("/small", &[("Accept-Encoding", coding)]);
        let is_coded = answer.field("content-encoding") == Some(coding);
        assert!(!is_coded || read(coding, &answer.body) == text(5_000));
        is_coded
    });
}

#[test]
fn streams_that_stall_leave_their_encoders_to_others_and_are_whole_when_they_are_read() {
    skip_on_nginx!();
    // Somewhat more than have encoders at a time: each that gets one later has it compress as much.
    for (coding, levels, connections, streams) in [
        ("gzip", "gzip_comp_level 1;", 8, 100),
        ("br", "brotli_comp_level 9; brotli_window 64k;", 1, 100),
        ("br", "brotli_comp_level 9; brotli_window 128k;", 1, 12),
        ("zstd", "", 2, 100),
        ("zstd", "zstd_comp_level 19;", 1, 12),
    ] {
        let what = format!("{coding} {levels}");
        let server = start(levels);
        assert_others_have_encoders(&server, coding);
        let before = resident_bytes(server.id());
        let mut stalled: Vec<(Frames, Vec<u32>)> = (0..connections)
            .map(|_| {
                let mut frames = Frames::connect_with(server.port(), &[(settings::INITIAL_WINDOW_SIZE, 1)]);
                let fields = [("accept-encoding", coding)];
                let streams: Vec<u32> = (0..streams).map(|_| frames.get_with("/large", &fields)).collect();
                frames
                    .until("all have begun", |now| streams.iter().all(|id| !now.so_far(*id).body.is_empty()));
                (frames, streams)
            })
            .collect();
        assert_others_have_encoders(&server, coding);
        assert_bounded(&server, before, connections * streams, &what);
        let (frames, streams) = stalled.first_mut().expect("there is one");
        frames.widen(0, GENEROUS);
        for stream in [streams[0], streams[streams.len() - 1]] {
            frames.widen(stream, GENEROUS);
            let answer = frames.answer(stream);
            assert_eq!(answer.end, End::Whole, "{what}");
            let body = match answer.field("content-encoding") {
                Some(coded) => read(coded, &answer.body),
                None => answer.text(),
            };
            assert!(body == text(LARGE), "{what}");
        }
    }
}

#[test]
fn clients_that_stop_reading_leave_their_encoders_to_others_and_get_all_when_they_go_on() {
    skip_on_nginx!();
    let server = start("brotli_comp_level 9; brotli_window 128k;");
    assert_others_have_encoders(&server, "br");
    let before = resident_bytes(server.id());
    let mut clients: Vec<Client> = (0..12)
        .map(|_| {
            let mut client = Client::connect_narrow(server.port()).expect("it listens");
            client.send("GET /large HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n").expect("sent");
            client
        })
        .collect();
    let heads: Vec<_> = clients.iter_mut().map(|client| client.head().expect("a head")).collect();
    assert_others_have_encoders(&server, "br");
    assert_bounded(&server, before, 12, "clients of HTTP/1");
    let first = &heads[0];
    assert_eq!(first.field("content-encoding"), Some("br"));
    let body = clients[0].body("GET", first).expect("all of it");
    assert!(read("br", &body) == text(LARGE));
}
