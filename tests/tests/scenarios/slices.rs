//! `slice`: a large answer in pieces of one size, each an entry of its own.

use millstream_tests::application::{self, Application};
use millstream_tests::client::Client;
use millstream_tests::frames::{End, Frames};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use rustix::process::Signal;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        main "worker_processes 2;"
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=pieces:1m;
            upstream api { server @ORIGIN@; keepalive 8; }"
        server "location / {
                slice 1000;
                proxy_pass http://api;
                proxy_http_version 1.1;
                proxy_set_header Connection \"\";
                proxy_set_header Range $slice_range;
                proxy_cache pieces;
                proxy_cache_valid 200 206 1m;
                add_header X-Cache-Status $upstream_cache_status;
                @KEY@
                @DIRECTIVES@
            }"
    };
    let key = if directives.contains("proxy_cache_key") { "" } else { "proxy_cache_key $uri$slice_range;" };
    Server::start(template, &[("ORIGIN", &origin.address()), ("KEY", key), ("DIRECTIVES", directives)])
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + ((at / 26 + at) % 26) as u8).collect()
}

fn piece(request: &Request, body: &[u8], fields: &[(&str, &str)]) -> Vec<Step> {
    let bounds = request.field("range").and_then(|value| value.strip_prefix("bytes=")?.split_once('-'));
    let Some((Ok(first), Ok(last))) =
        bounds.map(|(first, last)| (first.parse::<usize>(), last.parse::<usize>()))
    else {
        return answer(200, fields, body);
    };
    if first >= body.len() {
        return answer(416, &[("Content-Range", format!("bytes */{}", body.len()).as_str())], b"");
    }
    let last = last.min(body.len() - 1);
    let range = format!("bytes {first}-{last}/{}", body.len());
    answer(206, &[fields, &[("Content-Range", range.as_str())]].concat(), &body[first..=last])
}

fn api(body: Vec<u8>) -> Origin {
    Origin::start(move |request: &Request| piece(request, &body, &[("ETag", "\"v1\"")]))
}

fn starts(origin: &Origin) -> Vec<usize> {
    let start = |request: &Request| {
        let value = request.field("range")?.strip_prefix("bytes=")?.split('-').next()?.to_owned();
        value.parse().ok()
    };
    let mut starts: Vec<usize> = origin.requests().iter().filter_map(start).collect();
    starts.sort_unstable();
    starts
}

#[test]
fn a_whole_answer_is_fetched_in_pieces_and_each_is_stored() {
    let body = body(10_500);
    let origin = api(body.clone());
    let server = start(&origin, "");
    for expected in ["MISS", "HIT"] {
        let whole = server.get("/");
        assert_eq!((whole.status, whole.cache_status(), whole.field("content-range")), (200, expected, None));
        assert_eq!((whole.field("accept-ranges"), whole.field("etag")), (Some("bytes"), Some("\"v1\"")));
        assert!(whole.body == body);
    }
    assert_eq!(starts(&origin), (0..11).map(|piece| piece * 1000).collect::<Vec<_>>());
    assert_eq!(origin.requests()[10].field("range"), Some("bytes=10000-10999"));
    let part = server.get_with("/", &[("Range", "bytes=1990-3010")]);
    assert_eq!((part.status, part.field("content-range")), (206, Some("bytes 1990-3010/10500")));
    assert!(part.body == body[1990..=3010]);
    let head = server.request("HEAD", "/", &[]);
    assert_eq!((head.status, head.field("content-length")), (200, Some("10500")));
    assert_eq!(server.get_with("/", &[("If-None-Match", "\"v1\"")]).status, 304);
    assert_eq!(origin.count(), 11);
}

#[test]
fn a_range_costs_only_the_pieces_that_it_lies_in() {
    let body = body(10_500);
    let origin = api(body.clone());
    let server = start(&origin, "");
    let part = server.get_with("/", &[("Range", "bytes=2500-3499")]);
    assert!(part.status == 206 && part.body == body[2500..3500]);
    assert_eq!(starts(&origin), [2000, 3000]);
    let tail = server.get_with("/", &[("Range", "bytes=-10")]);
    assert_eq!((tail.status, tail.field("content-range")), (206, Some("bytes 10490-10499/10500")));
    assert!(tail.body == body[10_490..]);
    assert_eq!(starts(&origin), [0, 2000, 3000, 10_000]);
    let within = server.get_with("/", &[("Range", "bytes=3000-3001")]);
    assert_eq!((within.status, within.cache_status()), (206, "HIT"));
    assert_eq!(server.get_with("/", &[("Range", "bytes=20000-")]).status, 416);
}

#[test]
fn pieces_of_two_representations_are_never_mixed() {
    let (old, new) = (body(5_000), body(5_026)[26..].to_vec());
    let origin = Origin::numbered(move |request, number| match number {
        0 | 1 => piece(request, &old, &[("ETag", "\"old\"")]),
        _ => piece(request, &new, &[("ETag", "\"new\"")]),
    });
    let server = start(&origin, "");
    assert!(server.client().get("/").is_err(), "the tag changed in the middle");
    skip_on_nginx!("it goes on with the old pieces until they expire");
    wait::until("the pieces are of one answer again", || {
        server.client().get("/").is_ok_and(|whole| whole.body == body(5_026)[26..])
    });
    server.says("slice response");
}

#[test]
fn pieces_that_say_no_version_are_not_stored_so_that_two_are_never_mixed() {
    let (old, new) = (body(3_500), body(3_526)[26..].to_vec());
    let changed = Arc::new(AtomicBool::new(false));
    let origin = Origin::start({
        let (old, new, changed) = (old.clone(), new.clone(), changed.clone());
        move |request: &Request| {
            let body = if changed.load(Ordering::SeqCst) { &new } else { &old };
            piece(request, body, &[("Cache-Control", "max-age=60")])
        }
    });
    let server = start(&origin, "proxy_cache_explain on;");
    let part = server.get_with("/", &[("Range", "bytes=1000-2999")]);
    assert!(part.status == 206 && part.body == old[1000..3000]);
    changed.store(true, Ordering::SeqCst);
    skip_on_nginx!("it mixes them");
    let whole = server.get("/");
    assert!(whole.status == 200 && whole.body == new, "two versions were mixed");
    let state = whole.field("cache-status").unwrap_or_default();
    assert!(state.contains("detail=no_validator"), "{state}");
    // A piece that is all there is needs no other.
    let small = Origin::start(|request: &Request| piece(request, b"all of it", &[]));
    let server = start(&small, "");
    for expected in ["MISS", "HIT"] {
        assert_eq!(server.get("/").cache_status(), expected);
    }
}

#[test]
fn an_answer_that_changed_its_length_or_place_breaks_off() {
    for (what, fields) in [
        ("another length", [("ETag", "\"v1\""), ("Content-Range", "bytes 1000-1999/9999")]),
        ("another place", [("ETag", "\"v1\""), ("Content-Range", "bytes 1001-2000/5000")]),
        ("no tag", [("X-None", "x"), ("Content-Range", "bytes 1000-1999/5000")]),
    ] {
        let whole = body(5_000);
        let origin = Origin::start(move |request: &Request| match request.field("range") {
            Some("bytes=1000-1999") => answer(206, &fields, &whole[1000..2000]),
            _ => piece(request, &whole, &[("ETag", "\"v1\"")]),
        });
        let server = start(&origin, "");
        // nginx does not look at the length of the whole again.
        assert!(is_nginx() && what == "another length" || server.client().get("/").is_err(), "{what}");
    }
}

#[test]
fn an_api_without_ranges_is_passed_on_whole() {
    let whole = body(5_000);
    let origin = Origin::fixed(200, &[], &whole);
    let server = start(&origin, "");
    for _ in 0..2 {
        let answer = server.get("/");
        assert!(answer.status == 200 && answer.body == whole);
    }
    assert!(is_nginx() || origin.count() == 1);
    let none = Origin::fixed(404, &[], b"not here");
    let server = start(&none, "");
    assert_eq!((server.get("/").status, server.get("/").text().as_str()), (404, "not here"));
}

#[test]
fn an_answer_that_is_not_stored_has_its_location_rewritten() {
    let origin = Origin::fixed(302, &[("Location", "http://api/elsewhere")], b"");
    let server = start(&origin, "");
    let answer = server.get("/");
    let expected = format!("http://localhost:{}/elsewhere", server.port());
    assert_eq!((answer.status, answer.field("location")), (302, Some(expected.as_str())));
}

#[test]
fn another_protocol_has_no_pieces() {
    let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello";
    let origin = Origin::start(|_| vec![Step::Send(head.to_vec())]);
    let server = start(&origin, "proxy_set_header Upgrade $http_upgrade;");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n").expect("sent");
    assert_eq!(client.head().expect("an answer").status, 101);
    assert_eq!(client.exactly(5).expect("what came behind the head"), b"hello");
}

#[test]
fn pieces_that_may_not_be_stored_are_put_together_all_the_same() {
    let whole = body(3_500);
    let origin = Origin::start({
        let whole = whole.clone();
        move |request: &Request| piece(request, &whole, &[("ETag", "\"v1\""), ("Cache-Control", "no-store")])
    });
    let server = start(&origin, "");
    for expected in [4, 8] {
        let answer = server.get("/");
        assert!(answer.status == 200 && answer.body == whole);
        assert_eq!((answer.cache_status(), origin.count()), ("MISS", expected));
    }
}

#[test]
fn the_next_piece_is_fetched_while_the_present_one_is_sent() {
    skip_on_nginx!("it asks when the present one is out");
    let whole = body(2_000);
    let gate = Arc::new(Gate::default());
    let origin = Origin::start({
        let (whole, gate) = (whole.clone(), Arc::clone(&gate));
        move |request: &Request| match request.field("range") {
            Some("bytes=0-999") => {
                let head = "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Length: 1000\r\n\
                    Content-Range: bytes 0-999/2000\r\n\r\n";
                vec![
                    Step::Send([head.as_bytes(), &whole[..500]].concat()),
                    Step::Pass(Arc::clone(&gate)),
                    Step::Send(whole[500..1000].to_vec()),
                ]
            }
            _ => piece(request, &whole, &[("ETag", "\"v1\"")]),
        }
    });
    let server = start(&origin, "");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    wait::until("the second piece was asked for", || origin.count() == 2);
    assert!(gate.open(), "it was asked for only when the present one was there");
    assert!(client.answer().expect("an answer").body == whole);
}

#[test]
fn cache_status_tells_of_the_first_piece_of_an_answer() {
    skip_on_nginx!("it has no such field");
    let origin = api(body(2_500));
    let server = start(&origin, "proxy_cache_explain on;");
    let state = |fields: &[(&str, &str)]| {
        let answer = server.get_with("/", fields);
        answer.field("cache-status").expect("it is switched on").to_owned()
    };
    let first = state(&[("Range", "bytes=1000-1999")]);
    assert!(first.starts_with("millstream; fwd=miss; stored; ttl="), "{first}");
    assert!(first.contains("key=\"/bytes=1000-1999\""), "{first}");
    assert!(state(&[("Range", "bytes=1000-1001")]).starts_with("millstream; hit; ttl="));
    let whole = state(&[]);
    assert!(
        whole.starts_with("millstream; fwd=miss; fwd-status=206; stored;"),
        "its first piece was not there: {whole}"
    );
    assert!(state(&[]).starts_with("millstream; hit;"));
}

fn start_uncached(address: &str, directives: &str) -> Server {
    let template = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        log_format range \"$request_uri $status $slice_range\";
        access_log @DIR@/access.log range;
        server {
            listen 127.0.0.1:@PORT@; http2 on;
            location / { slice 1000; proxy_set_header Range $slice_range; proxy_pass http://@ORIGIN@; @DIRECTIVES@ }
            location /as-sent/ { slice 1000; proxy_pass http://@ORIGIN@; }
            location /page/ {
                slice 1000; proxy_set_header Range $slice_range; proxy_pass http://@ORIGIN@;
                error_page 404 502 = /found; proxy_intercept_errors on;
            }
            location /named/ { error_page 418 = @pieces; return 418; }
            location @pieces { slice 1000; proxy_set_header Range $slice_range; proxy_pass http://@ORIGIN@; }
            location /found { return 200 found; }
        }
    }";
    Server::start(template, &[("ORIGIN", address), ("DIRECTIVES", directives)])
}

#[test]
fn without_a_cache_an_answer_is_put_together_of_pieces_too() {
    let whole = body(3_500);
    let origin = api(whole.clone());
    let server = start_uncached(&origin.address(), "");
    for path in ["/", "/named/"] {
        let before = origin.count();
        let answer = server.get(path);
        assert_eq!((answer.status, answer.field("content-length")), (200, Some("3500")), "{path}");
        assert_eq!((answer.field("accept-ranges"), answer.field("content-range")), (Some("bytes"), None));
        assert!(answer.body == whole, "{path}");
        assert_eq!(origin.count() - before, 4, "{path}");
    }
    for (range, expected, asked) in [
        ("bytes=1500-2599", 1_500..2_600, vec![1_000, 2_000]),
        ("bytes=-10", 3_490..3_500, vec![0, 3_000]),
        ("bytes=0-0", 0..1, vec![0]),
    ] {
        let before = starts(&origin);
        let part = server.get_with("/", &[("Range", range)]);
        let said = format!("bytes {}-{}/3500", expected.start, expected.end - 1);
        assert_eq!((part.status, part.field("content-range")), (206, Some(&*said)), "{range}");
        assert!(part.body == whole[expected], "{range}");
        assert_eq!(starts(&origin).len() - before.len(), asked.len(), "{range}");
        assert!(asked.iter().all(|start| starts(&origin).contains(start)), "{range}");
    }
    let head = server.request("HEAD", "/", &[]);
    assert_eq!((head.status, head.field("content-length")), (200, Some("3500")));
    assert_eq!(server.get_with("/", &[("Range", "bytes=9000-")]).status, 416);
    assert_eq!(server.get_with("/", &[("If-None-Match", "\"v1\"")]).status, 304);
}

#[test]
fn without_a_cache_a_piece_that_is_none_ends_the_answer_and_nothing_of_it_is_sent_where_it_is_short() {
    let whole = body(100);
    for (what, at, status, fields) in [
        ("another place", 0, 206, vec![("Content-Range", "bytes 1-1000/5000")]),
        ("no place", 0, 206, vec![("Content-Range", "bytes")]),
        ("no length of the whole", 0, 206, vec![("Content-Range", "bytes 0-999/*")]),
        ("another status", 1000, 200, vec![]),
        ("another tag", 1000, 206, vec![("Content-Range", "bytes 1000-1999/5000"), ("ETag", "\"v2\"")]),
        ("an error", 1000, 500, vec![]),
    ] {
        let whole = whole.repeat(50);
        let origin = Origin::start(move |request: &Request| {
            match request.field("range") == Some(&*format!("bytes={at}-{}", at + 999)) {
                true => answer(status, &fields, &whole[..1000]),
                false => piece(request, &whole, &[("ETag", "\"v1\"")]),
            }
        });
        let server = start_uncached(&origin.address(), "error_page 502 = /found;");
        let mut client = server.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let rest = client.rest_of_connection().expect("its end");
        assert!(rest.is_empty(), "{what}: {}", String::from_utf8_lossy(&rest));
        server.says("slice response");
    }
}

#[test]
fn over_http_2_pieces_are_put_together_without_a_cache_and_what_does_not_fit_is_reset() {
    let whole = body(3_500);
    let origin = Origin::start({
        let whole = whole.clone();
        move |request: &Request| match request.target() {
            "/torn" => answer(206, &[("Content-Range", "bytes 7-9/3500")], b"abc"),
            _ => piece(request, &whole, &[("ETag", "\"v1\"")]),
        }
    });
    let server = start_uncached(&origin.address(), "");
    let mut frames = Frames::connect(server.port());
    let answer = frames.whole("/");
    assert_eq!((answer.status, answer.field("content-length")), (200, Some("3500")));
    assert!(answer.body == whole);
    let stream = frames.get("/torn");
    let torn = frames.answer(stream);
    assert!(torn.status == 0 && matches!(torn.end, End::Reset(_)), "{torn:?}");
    let part = frames.ask("/", &[("range", "bytes=990-1009")]);
    assert_eq!((part.status, part.end), (206, End::Whole));
    assert!(part.body == whole[990..1_010]);
}

#[test]
fn without_a_cache_what_is_no_piece_is_passed_on_as_it_is() {
    let fields = [
        ("Age", "100"),
        ("Cache-Control", "no-cache=\"Set-Cookie\""),
        ("Set-Cookie", "a=b"),
        ("Location", "/elsewhere"),
    ];
    for (status, text) in [(200, "whole"), (302, "there"), (404, "not here"), (503, "ill")] {
        let origin = Origin::fixed(status, &fields, text.as_bytes());
        let server = start_uncached(&origin.address(), "");
        let answer = server.get_with("/", &[("Range", "bytes=1-2")]);
        assert_eq!((answer.status, answer.text().as_str()), (status, text));
        let passed = |name: &str| answer.field(name).map(str::to_owned);
        assert_eq!([passed("age"), passed("set-cookie")], [Some("100".into()), Some("a=b".into())]);
        assert_eq!(origin.requests()[0].field("range"), Some("bytes=0-999"));
    }
    let origin = Origin::fixed(404, &[], b"not here");
    let server = start_uncached(&origin.address(), "");
    assert_eq!(server.get("/page/").text(), "found");
    assert_eq!(server.get("/").text(), "not here");
    let log = || server.prefix().read("access.log");
    wait::until("both are logged", || log().lines().count() == 2);
    assert!(is_nginx() || log().contains("/ 404 -"), "{}", log());
}

#[test]
fn without_a_cache_the_fields_of_the_first_piece_are_those_of_the_answer() {
    let whole = body(1_500);
    let origin = Origin::start(move |request: &Request| {
        let control = ("Cache-Control", "private=\"Set-Cookie\"");
        piece(request, &whole, &[("ETag", "\"v1\""), ("Age", "100"), control, ("Set-Cookie", "a=b")])
    });
    let server = start_uncached(&origin.address(), "");
    let answer = server.get("/");
    assert_eq!((answer.status, answer.body.len()), (200, 1_500));
    assert_eq!((answer.field("age"), answer.field("set-cookie")), (Some("100"), Some("a=b")));
}

#[test]
fn without_a_cache_a_range_that_is_not_asked_for_in_pieces_goes_on_as_the_client_sent_it() {
    let whole = body(3_500);
    let origin = api(whole.clone());
    let server = start_uncached(&origin.address(), "");
    let part = server.get_with("/as-sent/", &[("Range", "bytes=1500-2599")]);
    assert_eq!((part.status, part.field("content-range")), (206, Some("bytes 1500-2599/3500")));
    assert!(part.body == whole[1_500..2_600]);
    assert_eq!(origin.requests()[0].field("range"), Some("bytes=1500-2599"));
    assert!(server.get("/as-sent/").body == whole);
    assert_eq!(origin.count(), 2);
}

#[test]
fn without_a_cache_a_client_that_leaves_ends_the_fetching() {
    // What is asked of the upstream: the first piece, or the second while the first is whole.
    for at in [0, 1] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it listens").to_string();
        let server = start_uncached(&address, "");
        let mut client = server.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let (mut asked, _) = listener.accept().expect("it is asked");
        if at == 1 {
            read_head(&mut asked);
            let head = "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Length: 1000\r\n\
                Content-Range: bytes 0-999/5000\r\nConnection: close\r\n\r\n";
            asked.write_all(&[head.as_bytes(), &body(1_000)].concat()).expect("it reads");
            (asked, _) = listener.accept().expect("it is asked for the next");
        }
        assert!(read_head(&mut asked).contains(&format!("bytes={at}")));
        drop(client);
        asked.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("it is a socket");
        let ended = asked.read_to_end(&mut Vec::new());
        // A reset is an end as well.
        let is_silent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(is_silent), "the upstream is still asked: {ended:?}");
    }
}

fn read_head(stream: &mut std::net::TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("a head")
}

#[test]
fn pieces_of_an_application_are_put_together_without_a_cache() {
    let whole = String::from_utf8(body(2_500)).expect("letters");
    let application = Application::start({
        let whole = whole.clone();
        move |asked| {
            let range = asked.param("RANGE").strip_prefix("bytes=").and_then(|range| range.split_once('-'));
            let Some((Ok(first), Ok(last))) =
                range.map(|(first, last)| (first.parse::<usize>(), last.parse::<usize>()))
            else {
                return application::answer("Status: 400\r\n\r\n");
            };
            let last = last.min(whole.len() - 1);
            application::answer(&format!(
                "Status: 206\r\nContent-Range: bytes {first}-{last}/{}\r\n\r\n{}",
                whole.len(),
                &whole[first..=last]
            ))
        }
    });
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; server { listen 127.0.0.1:@PORT@;
            location / { slice 1000; fastcgi_param RANGE $slice_range; fastcgi_pass 127.0.0.1:@APP@; } } }",
        &[("APP", &application.port().to_string())],
    );
    let answer = server.get("/");
    assert_eq!((answer.status, answer.text()), (200, whole.clone()));
    let part = server.get_with("/", &[("Range", "bytes=990-1009")]);
    assert_eq!((part.status, part.text().as_str()), (206, &whole[990..1010]));
    assert_eq!(application.asked().len(), 5);
}

/// Each unsafe request makes the next version, with `/made` in `Location`.
fn versions() -> Origin {
    let version = AtomicUsize::new(0);
    Origin::start(move |request: &Request| {
        if !request.head.starts_with("GET ") && !request.head.starts_with("HEAD ") {
            version.fetch_add(1, Ordering::SeqCst);
            return answer(201, &[("Location", "/made")], b"");
        }
        let version = version.load(Ordering::SeqCst);
        let tag = format!("\"{version}\"");
        piece(request, &of_version(version), &[("ETag", &tag), ("Cache-Control", "max-age=60")])
    })
}

fn of_version(version: usize) -> Vec<u8> {
    format!("{version};").into_bytes().repeat(1250)
}

const CHANGES: [&str; 5] = ["PUT", "POST", "DELETE", "PATCH", "ODD"];

fn change(server: &Server, method: &str, path: &str) {
    let written = server.request(method, path, &[("Content-Length", "0")]);
    assert_eq!(written.status, 201);
}

#[test]
fn a_change_takes_out_all_pieces_of_its_target() {
    skip_on_nginx!("it takes nothing out");
    for directives in [
        "",
        "proxy_cache_key $slice_range$uri;",
        "proxy_cache_key $request_method$request_uri$slice_range;",
        "proxy_cache_key $scheme$uri$slice_range$is_args$args; proxy_cache_ignore_args utm;",
        "proxy_cache_lock on;",
    ] {
        let origin = versions();
        let server = start(&origin, directives);
        let read = |path: &str, range: &str| {
            let fields = [("Range", range)];
            server.get_with(path, if range.is_empty() { &[] } else { &fields })
        };
        // Pieces 1 and 2 alone, so that nothing tells which others there are.
        let tail = read("/tail", "bytes=1100-");
        assert!(tail.status == 206 && tail.body == of_version(0)[1100..]);
        let mut version = 0;
        for path in ["/thing?of=all", "/made"] {
            for method in CHANGES {
                assert!(read(path, "").body == of_version(version), "{method} {path} {directives}");
                assert_eq!(read(path, "").cache_status(), "HIT", "{method} {path} {directives}");
                assert_eq!(server.request("HEAD", path, &[]).cache_status(), "HIT");
                let target = if path == "/made" { "/new" } else { path };
                change(&server, method, target);
                version += 1;
                let got = read(path, "");
                assert_eq!((got.status, got.cache_status()), (200, "MISS"), "{method} {path} {directives}");
                assert!(got.body == of_version(version), "{method} {path} {directives}");
            }
        }
        // Others keep theirs.
        assert_eq!(read("/tail", "bytes=1100-").cache_status(), "HIT", "{directives}");
        change(&server, "PUT", "/tail");
        let tail = read("/tail", "bytes=1100-");
        assert_eq!((tail.status, tail.cache_status()), (206, "MISS"), "{directives}");
        assert!(tail.body == of_version(version + 1)[1100..], "{directives}");
    }
}

#[test]
fn pieces_that_a_change_took_out_do_not_come_back_with_a_restart() {
    skip_on_nginx!();
    // However the process ends.
    for end in [Signal::QUIT, Signal::KILL] {
        let origin = versions();
        let mut server = start(&origin, "");
        let again = |server: &mut Server, signal| {
            server.stop(signal);
            server.run().expect("it starts");
        };
        assert!(server.get("/thing").body == of_version(0));
        assert_eq!(server.get("/thing").cache_status(), "HIT");
        again(&mut server, Signal::QUIT);
        assert_eq!(server.get("/thing").cache_status(), "HIT", "from the disk");
        for version in 1..4 {
            change(&server, "PUT", "/thing");
            again(&mut server, end);
            assert!(server.get("/thing").body == of_version(version), "{end:?} {version}");
            // What is stored now has to be in its file by then.
            again(&mut server, Signal::QUIT);
            assert_eq!(server.get("/thing").cache_status(), "HIT", "{end:?} {version}");
        }
    }
}

#[test]
fn a_change_of_pieces_that_waits_for_its_turn_is_seen_by_its_client_and_by_nobody_in_part() {
    skip_on_nginx!();
    let origin = versions();
    let server = start(&origin, "proxy_cache_invalidation rate=1r/m;");
    let stranger = || {
        let mut client =
            Client::connect_from(std::net::Ipv4Addr::new(127, 0, 0, 7), server.port()).expect("it listens");
        client.get("/thing").expect("whole")
    };
    assert!(stranger().body == of_version(0));
    change(&server, "PUT", "/thing");
    assert!(stranger().body == of_version(1), "the first has the turn");
    for version in 2..5 {
        change(&server, "PUT", "/thing");
        for _ in 0..2 {
            let part = server.get_with("/thing", &[("Range", "bytes=0-9")]);
            assert!(part.status == 206 && part.body == of_version(version)[..10]);
            let own = server.get("/thing");
            assert_eq!(own.cache_status(), "BYPASS");
            assert!(own.body == of_version(version));
            let other = stranger();
            assert!(other.cache_status() == "HIT" && other.body == of_version(1));
        }
    }
}

/// Files of a cache directory other than entries, with their lengths.
fn kept_beside(server: &Server) -> Vec<(OsString, u64)> {
    let directory = server.prefix().path().join("cache");
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let hidden = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."));
    let mut kept: Vec<_> = hidden
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name(), entry.metadata().map_or(0, |found| found.len())))
        .collect();
    kept.sort();
    kept
}

#[test]
fn a_change_of_what_no_piece_is_stored_of_is_not_written_down_and_takes_nothing_out() {
    skip_on_nginx!();
    let version = of_version(0);
    let origin =
        Origin::start(move |request: &Request| match request.head.split(' ').collect::<Vec<_>>()[..] {
            ["GET", path, ..] if path.starts_with("/pieces/none/") => {
                answer(302, &[("Location", "/login")], b"")
            }
            ["GET", ..] => piece(request, &version, &[("ETag", "\"v\""), ("Cache-Control", "max-age=60")]),
            _ => answer(302, &[("Location", "/pieces/none/too")], b""),
        });
    let mut server = Server::start(
        site! {
            main "worker_processes 2;"
            http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=pieces:1m;
                add_header X-Cache-Status $upstream_cache_status;"
            server "proxy_cache pieces;
                location /pieces/ {
                    slice 1000;
                    proxy_cache_key $uri$slice_range;
                    proxy_set_header Range $slice_range;
                    proxy_pass http://@ORIGIN@;
                }
                location / { proxy_cache_key $uri; proxy_pass http://@ORIGIN@; }"
        },
        &[("ORIGIN", &origin.address())],
    );
    let stored = ["/plain", "/pieces/stored"];
    let are_hits =
        |server: &Server| stored.map(|path| server.get(path).cache_status().to_owned()) == ["HIT", "HIT"];
    stored.iter().for_each(|path| _ = server.get(path));
    assert!(are_hits(&server));
    for number in 0..50 {
        for kind in ["", "none/"] {
            let path = format!("/pieces/{kind}{number}");
            if !kind.is_empty() {
                server.get(&path);
            }
            let changed = server.request("POST", &path, &[("Content-Length", "0")]);
            assert_eq!(changed.status, 302);
        }
    }
    assert_eq!(kept_beside(&server), []);
    server.stop(Signal::QUIT);
    server.run().expect("it starts");
    assert!(are_hits(&server), "from the disk");
    // The files that were there at the start have to be read first.
    wait::until("a change writes nothing down", || {
        let before = kept_beside(&server);
        _ = server.request("POST", "/pieces/never", &[("Content-Length", "0")]);
        kept_beside(&server) == before
    });
    server.stop(Signal::QUIT);
    server.run().expect("it starts");
    assert!(are_hits(&server));
}
