//! Bodies of requests: whole, however they are framed, at the pace of whoever reads them, and one in nobody else's way.

use std::sync::Arc;
use std::time::Duration;

use millstream_tests::frames::{End, Frames};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use millstream_wire::h2::error_code::ErrorCode;

use super::curl;

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log @DIR@/access.log; proxy_http_version 1.1; client_body_temp_path @DIR@/body;
        server { listen 127.0.0.1:@PORT@; http2 on; client_max_body_size 20m; client_body_timeout @TIMEOUT@;
            location / { proxy_pass http://@ORIGIN@; }
            location /as-it-comes { proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
            location /small { proxy_pass http://@ORIGIN@; client_max_body_size 1k; }
            location /here { return 200 here; } }
    }";

fn start(origin: &Origin, timeout: &str) -> Server {
    Server::start(SITE, &[("ORIGIN", &origin.address()), ("TIMEOUT", timeout)])
}

fn unchunked(request: &Request) -> Vec<u8> {
    if request.field("transfer-encoding").is_none() {
        return request.body.clone();
    }
    let (mut rest, mut body) = (&request.body[..], Vec::new());
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let size =
            std::str::from_utf8(&rest[..at]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let size = size.expect("a chunk's size");
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = &rest[at + size + 4..];
    }
    body
}

#[test]
fn five_megabytes_arrive_whole_with_and_without_a_length() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"thanks");
    let server = start(&origin, "60s");
    // Pseudo-random, without the marks that end the scripted API's chunked bodies.
    let body: Vec<u8> =
        (0..5_000_000_u32).map(|n| b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26).collect();
    let length = body.len().to_string();
    let mut frames = Frames::connect(server.port());
    for path in ["/", "/as-it-comes"] {
        for fields in [&[("content-length", length.as_str())][..], &[]] {
            let stream = frames.request("POST", path, fields, false);
            frames.upload(stream, &body);
            assert_eq!(frames.answer(stream).text(), "thanks", "{path} {fields:?}");
            let requests = origin.requests();
            let last = requests.last().expect("it came");
            assert!(unchunked(last) == body, "{path} {fields:?}: {} octets", last.body.len());
            assert!(last.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{}", last.head);
        }
    }
}

#[test]
fn an_upload_of_which_nothing_may_come_unread_arrives_whole() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"thanks");
    for size in ["0", "10"] {
        let site = SITE.replace("http2 on;", &format!("http2 on; http2_body_preread_size {size};"));
        let server = Server::start(&site, &[("ORIGIN", &origin.address()), ("TIMEOUT", "60s")]);
        let mut frames = Frames::connect(server.port());
        frames.round_trip();
        for path in ["/", "/as-it-comes"] {
            let stream = frames.request("POST", path, &[("content-length", "300000")], false);
            frames.upload(stream, &[b'x'; 300_000]);
            assert_eq!(frames.answer(stream).text(), "thanks", "{size} {path}");
            assert_eq!(origin.requests().last().map(|last| last.body.len()), Some(300_000), "{size} {path}");
        }
        assert!(!server.log().contains("panic"), "{}", server.log());
    }
}

#[test]
fn an_upload_that_nobody_reads_does_not_stop_its_neighbours() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let closed = Arc::clone(&gate);
    // What is asked for here is read only once the gate is open, as the socket's buffers are full long before.
    let (listener, port) = millstream_tests::ports::listener();
    let address = format!("127.0.0.1:{port}");
    let taken = std::thread::spawn(move || {
        let connection = listener.accept();
        closed.pass();
        drop(connection);
    });
    let origin = Origin::fixed(200, &[], b"thanks");
    let site = SITE.replace(
        "location /here",
        "location /stalled { proxy_pass http://@STALLED@; proxy_request_buffering off; }\nlocation /here",
    );
    let values = [("ORIGIN", origin.address()), ("TIMEOUT", "60s".to_owned()), ("STALLED", address)];
    let server = Server::start(&site, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
    let mut frames = Frames::connect(server.port());
    frames.round_trip();
    let stalled = frames.request("POST", "/stalled", &[], false);
    // As much as is taken: until nothing more has been for a while.
    let (mut sent, mut quiet) = (0, 0);
    while quiet < 20 {
        let piece = frames.room(stalled).min(16_384);
        match piece {
            0 => frames.read_for(Duration::from_millis(20)),
            _ => frames.data(stalled, &vec![b'x'; piece], false),
        }
        quiet = if piece == 0 { quiet + 1 } else { 0 };
        sent += piece;
        assert!(sent < 100 << 20, "nobody reads it, and it is taken");
    }
    let body = vec![b'y'; 3_000_000];
    for _ in 0..2 {
        let stream = frames.request("POST", "/as-it-comes", &[("content-length", "3000000")], false);
        frames.upload(stream, &body);
        assert_eq!(frames.answer(stream).text(), "thanks");
    }
    assert_eq!(frames.whole("/here").text(), "here");
    assert!(!frames.has_ended(stalled));
    frames.give_up(stalled);
    assert_eq!(frames.whole("/here").text(), "here");
    gate.open();
    taken.join().expect("it ends");
}

#[test]
fn a_body_past_the_limit_is_told_so_and_one_that_stops_has_its_time() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"thanks");
    let server = start(&origin, "500ms");
    let mut frames = Frames::connect(server.port());
    let announced = frames.request("POST", "/small", &[("content-length", "100000")], false);
    assert_eq!(frames.answer(announced).status, 413);
    let unannounced = frames.request("POST", "/small", &[], false);
    frames.data(unannounced, &[b'x'; 5000], false);
    assert_eq!(frames.answer(unannounced).status, 413);
    let slow = frames.request("POST", "/", &[], false);
    frames.data(slow, b"some", false);
    assert_eq!(frames.answer(slow).status, 408);
    assert_eq!(frames.whole("/here").text(), "here");
    assert_eq!(origin.count(), 0);
    wait::until("the log has them", || {
        let log = server.prefix().read("access.log");
        log.matches("HTTP/2.0\" 413").count() == 2 && log.matches("HTTP/2.0\" 408").count() == 1
    });
}

#[test]
fn who_expects_to_be_told_to_go_on_is_and_who_is_refused_is_not() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"thanks");
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    let expects = ("expect", "100-continue");
    let stream = frames.request("POST", "/", &[expects, ("content-length", "4")], false);
    frames.until("it is told to go on", |now| {
        now.so_far(stream).interim.iter().any(|(status, _)| *status == 100)
    });
    frames.data(stream, b"body", true);
    assert_eq!(frames.answer(stream).text(), "thanks");
    assert_eq!(origin.requests()[0].body, b"body");
    let refused = frames.request("POST", "/small", &[expects, ("content-length", "4000")], false);
    let answer = frames.answer(refused);
    assert_eq!((answer.status, answer.interim.len()), (413, 0));
}

#[test]
fn a_request_that_is_given_up_is_logged_499_and_its_api_connection_is_let_go() {
    skip_on_nginx!();
    let api = millstream_tests::endless::Endless::start(b"");
    let values = [("ORIGIN", api.address()), ("TIMEOUT", "60s".to_owned())];
    let server = Server::start(SITE, &values.each_ref().map(|(name, value)| (*name, value.as_str())));
    let mut frames = Frames::connect(server.port());
    let given_up = frames.get("/");
    let uploads = frames.request("POST", "/as-it-comes", &[], false);
    frames.data(uploads, b"some", false);
    wait::until("both are asked", || api.asked() == 2);
    frames.give_up(given_up);
    frames.give_up(uploads);
    wait::until("both connections are let go", || api.open() == 0);
    wait::until("the log has them", || {
        server.prefix().read("access.log").matches("HTTP/2.0\" 499").count() == 2
    });
    assert_eq!(frames.whole("/here").text(), "here");
    // Who leaves with all of its requests, the same.
    let stream = frames.get("/");
    wait::until("it is asked", || api.asked() == 3);
    drop(frames);
    wait::until("it is let go", || api.open() == 0);
    wait::until("the log has it", || {
        server.prefix().read("access.log").matches("HTTP/2.0\" 499").count() == 3
    });
    assert!(stream > 0);
}

#[test]
fn cookies_in_pieces_reach_the_api_as_one_and_its_early_hints_the_client() {
    skip_on_nginx!();
    let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Send(hints.to_vec())];
        steps.extend(answer(
            200,
            &[("Connection", "x-hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5")],
            b"thanks",
        ));
        steps
    });
    let server = start(&origin, "60s");
    let mut frames = Frames::connect(server.port());
    let pieces = [("cookie", "a=1"), ("x-between", "1"), ("cookie", "b=2"), ("cookie", "c=3")];
    let answer = frames.ask("/", &pieces);
    assert_eq!((answer.text().as_str(), answer.end), ("thanks", End::Whole));
    let request = origin.requests()[0].clone();
    assert_eq!(request.head.to_lowercase().matches("cookie:").count(), 1, "{}", request.head);
    assert_eq!(request.field("cookie"), Some("a=1; b=2; c=3"));
    for name in ["connection", "keep-alive", "transfer-encoding", "x-hop"] {
        assert_eq!(answer.field(name), None, "{:?}", answer.fields);
    }
    assert!(answer.fields.iter().all(|(name, _)| name.to_lowercase() == *name), "{:?}", answer.fields);
    let hinted = answer
        .interim
        .iter()
        .any(|(status, fields)| *status == 103 && fields.iter().any(|(name, _)| name == "link"));
    assert!(hinted, "{:?}", answer.interim);
}

/// Whatever has its response before the body is read.
const UNREAD: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log off; proxy_cache_path memory keys_zone=z:1m memory=8m;
        server { listen 127.0.0.1:@PORT@; http2 on; client_max_body_size 20m; lingering_timeout @PAUSE@; root @DIR@;
            proxy_cache_methods POST; proxy_cache_valid 1h; proxy_cache_key stored;
            location /text { return 200 text; }
            location /empty { return 200 \"\"; }
            location /stored { proxy_pass http://@ORIGIN@; proxy_cache z; }
            location /tried { try_files /none /text; }
            location /guarded { auth_request /guard; proxy_pass http://@ORIGIN@; proxy_cache z; }
            location = /guard { return 204; }
            location /few { client_max_body_size 100k; return 200 text; }
            location /forbidden { deny all; }
            location /call { deny all; error_page 403 = @denied; }
            location @denied { add_header grpc-status 7; return 204; }
            location /narrow { client_max_body_size 1k; return 200 text; }
            location /secret { auth_basic x; auth_basic_user_file @DIR@/users; }
            location /moved { return 301 /; } } }";

const SUCCESSES: [(&str, &str); 5] =
    [("/text", "text"), ("/empty", ""), ("/stored", "thanks"), ("/tried", "text"), ("/guarded", "thanks")];
/// Responses that end before the upload.
const OTHERS: [(&str, u16); 4] = [("/forbidden", 403), ("/narrow", 413), ("/secret", 401), ("/moved", 301)];

fn start_unread(pause: &str) -> (Server, Origin) {
    let origin = Origin::fixed(200, &[], b"thanks");
    let prefix = Prefix::new();
    prefix.write("users", "");
    let server = Server::start_in(prefix, UNREAD, &[("ORIGIN", &origin.address()), ("PAUSE", pause)]);
    let mut frames = Frames::connect(server.port());
    let stored = frames.request("POST", "/stored", &[("content-length", "1")], false);
    frames.data(stored, b"x", true);
    assert_eq!(frames.answer(stored).text(), "thanks");
    (server, origin)
}

#[test]
fn a_success_that_needs_no_body_ends_after_its_upload_and_an_error_before_it() {
    skip_on_nginx!();
    let (server, origin) = start_unread("60s");
    let body = [b'x'; 300_000];
    let mut frames = Frames::connect(server.port());
    for (path, text) in SUCCESSES {
        for fields in [&[("content-length", "300000")][..], &[]] {
            let stream = frames.request("POST", path, fields, false);
            frames.data(stream, &body[..16_384], false);
            frames.round_trip();
            assert!(!frames.has_ended(stream), "{path} {fields:?}: its client would read no window");
            frames.upload(stream, &body[16_384..]);
            let answer = frames.answer(stream);
            assert_eq!(
                (answer.status, answer.text().as_str(), answer.end),
                (200, text, End::Whole),
                "{path}"
            );
        }
    }
    assert_eq!(origin.count(), 1);
    for (path, status) in OTHERS {
        let stream = frames.request("POST", path, &[("content-length", "300000")], false);
        assert_eq!(frames.answer(stream).status, status, "{path}");
    }
    // A call of gRPC has its status in a head that ends the stream.
    let stream = frames.request("POST", "/call", &[("content-type", "application/grpc+proto")], false);
    let answer = frames.answer(stream);
    assert_eq!((answer.status, answer.field("grpc-status")), (204, Some("7")));
    // Who waits to be told to go on sends no body to a response.
    let expects = [("expect", "100-continue"), ("content-length", "300000")];
    let stream = frames.request("POST", "/text", &expects, false);
    assert_eq!(frames.answer(stream).text(), "text");
}

#[test]
fn a_success_waits_for_no_upload_that_stops_or_is_past_the_limit() {
    skip_on_nginx!();
    let (server, _origin) = start_unread("200ms");
    let mut frames = Frames::connect(server.port());
    for (path, text) in SUCCESSES {
        let stream = frames.request("POST", path, &[("content-length", "300000")], false);
        frames.data(stream, b"some", false);
        assert_eq!(until_given_up(&mut frames, stream), (200, text.to_owned()), "{path}");
    }
    let (server, _origin) = start_unread("60s");
    let mut frames = Frames::connect(server.port());
    let stream = frames.request("POST", "/few", &[], false);
    frames.upload_part(stream, &[b'x'; 110_000]);
    // There is no second wait behind the response.
    assert_eq!(until_given_up(&mut frames, stream), (200, "text".to_owned()));
}

/// The response of a stream that ended whole, and was reset since the rest of its upload is not needed.
fn until_given_up(frames: &mut Frames, stream: u32) -> (u16, String) {
    let is_reset = |frames: &mut Frames| frames.so_far(stream).end == End::Reset(ErrorCode::NoError);
    frames.until("the rest of the upload is refused", is_reset);
    assert_eq!(frames.order().iter().filter(|ended| **ended == stream).count(), 2, "it ends, then is reset");
    let answer = frames.so_far(stream);
    (answer.status, answer.text())
}

#[test]
fn curl_has_its_response_whether_its_upload_is_needed_or_not() {
    skip_on_nginx!();
    let (server, _origin) = start_unread("5s");
    let what = "%{http_code} %{size_download} %{errormsg}";
    for length in [100_000, 3_000_000] {
        let body = server.prefix().join("upload");
        std::fs::write(&body, vec![b'u'; length]).expect("own directory");
        let upload = format!("@{}", body.display());
        let successes = SUCCESSES.map(|(path, text)| (path, 200, Some(text.len())));
        let others = OTHERS.map(|(path, status)| (path, status, None));
        for (path, status, size) in successes.into_iter().chain(others) {
            let url = format!("http://127.0.0.1:{}{path}", server.port());
            let arguments =
                ["--http2-prior-knowledge", "-o", "/dev/null", "-w", what, "--data-binary", &upload, &url];
            let told = curl(&arguments);
            match size {
                Some(size) => assert_eq!(told.trim(), format!("{status} {size}"), "{path} {length}"),
                None => {
                    assert!(told.starts_with(&format!("{status} ")), "{path} {length}: {told}");
                    assert!(!told.contains("timed out"), "{path} {length}: {told}");
                }
            }
        }
    }
}
