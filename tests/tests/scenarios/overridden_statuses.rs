//! `error_page … =CODE`: the status that goes out decides whether a body follows and how it is framed, whatever answers.

use std::os::unix::fs::PermissionsExt;

use millstream_tests::application::{self, Application, Speaks};
use millstream_tests::client::{Answer, Client};
use millstream_tests::frames::{End, Frames};
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_wire::h2::error_code::ErrorCode;

/// What responds, its own body (`None` if unknown here), and the directives that make it respond.
fn targets() -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    let rows = include_str!("overridden_statuses/targets.tsv").lines().skip(1);
    rows.map(|row| match row.split('\t').collect::<Vec<_>>()[..] {
        [name, "unknown", content] => (name, None, content),
        [name, "empty", content] => (name, Some(""), content),
        [name, body, content] => (name, Some(body), content),
        _ => panic!("{row:?}"),
    })
}

const STATUSES: [u16; 7] = [200, 204, 205, 206, 302, 304, 404];

fn site(origin: &Origin, applications: &[(&str, &Application)]) -> Server {
    let mut locations = String::new();
    for (name, _, content) in targets() {
        locations.push_str(&format!("location = /t/{name} {{ {content} }}\n"));
        for status in STATUSES {
            locations.push_str(&format!(
                "location = /{status}/{name} {{ error_page 418 ={status} /t/{name}; return 418; }}
                location = /intercepted/{status}/{name} {{ error_page 503 ={status} /t/{name};
                    proxy_intercept_errors on; proxy_pass http://@ORIGIN@/503; }}\n"
            ));
        }
    }
    let template = site! {
        main "worker_processes 1;"
        http "proxy_cache_path @DIR@/cache keys_zone=answers:1m;
            proxy_cache_key $request_uri$request_method$slice_range;
            proxy_http_version 1.1;"
        server "http2 on;
            keepalive_requests 10000;
            location = /after { return 200 after; }
            location = /part { return 200 body; }
            @LOCATIONS@"
    };
    let template = template.replace("@LOCATIONS@", &locations);
    let prefix = Prefix::new();
    let folder = prefix.path();
    std::fs::create_dir_all(folder.join("list")).expect("a folder");
    std::fs::create_dir_all(folder.join("kept")).expect("a folder");
    // The worker may be of another user.
    std::fs::set_permissions(folder.join("kept"), std::fs::Permissions::from_mode(0o777)).expect("a folder");
    std::fs::write(folder.join("list/one"), "1").expect("written");
    std::fs::write(folder.join("file.txt"), "a file").expect("written");
    std::fs::write(folder.join("page.html"), "a <!--#include virtual=\"/part\" --> here").expect("written");
    let address = origin.address();
    let ports: Vec<(&str, String)> =
        applications.iter().map(|(name, application)| (*name, application.port().to_string())).collect();
    let mut values = vec![("ORIGIN", address.as_str())];
    values.extend(ports.iter().map(|(name, port)| (*name, port.as_str())));
    Server::start_in(prefix, &template, &values)
}

fn origin() -> Origin {
    Origin::start(|request| {
        let raw = |text: &str| vec![Step::Send(text.as_bytes().to_vec())];
        match request.target() {
            "/length" => answer(200, &[("Content-Type", "text/plain")], b"body"),
            "/chunks" => raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"),
            "/204" => raw("HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n"),
            "/304" => raw("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
            "/304-length" => raw("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 100\r\n\r\n"),
            "/led" => answer(200, &[("X-Accel-Redirect", "/part")], b""),
            "/pieces" => match request.field("Range") {
                Some("bytes=0-1") => {
                    answer(206, &[("Content-Range", "bytes 0-1/4"), ("ETag", "\"a\"")], b"bo")
                }
                None => answer(200, &[("ETag", "\"a\"")], b"body"),
                _ => answer(206, &[("Content-Range", "bytes 2-3/4"), ("ETag", "\"a\"")], b"dy"),
            },
            _ => answer(503, &[], b"not now"),
        }
    })
}

/// The final status decides about a body: 204 and 304 have none; HEAD has none at all.
fn check(about: &str, method: &str, status: u16, own: Option<&str>, told: u16, body: &[u8]) {
    assert_eq!(told, status, "{about}");
    if method == "HEAD" || matches!(status, 204 | 304) {
        assert_eq!(body, b"", "{about}");
    } else if let Some(own) = own {
        assert_eq!(String::from_utf8_lossy(body), own, "{about}");
    } else {
        assert!(!body.is_empty(), "{about}");
    }
}

fn framing_is_sound(about: &str, method: &str, answer: &Answer) {
    let (length, coding) = (answer.field("content-length"), answer.field("transfer-encoding"));
    if method == "HEAD" || matches!(answer.status, 204 | 304) {
        assert_eq!(coding, None, "{about}: {}", answer.head);
        assert!(answer.status != 204 || length.is_none(), "{about}: {}", answer.head);
    } else {
        assert!(length.is_some() != coding.is_some(), "{about}: {}", answer.head);
    }
}

fn ways(status: u16) -> impl Iterator<Item = (&'static str, String, Option<&'static str>)> {
    targets().flat_map(move |(name, own, _)| {
        let by_return = ["GET", "HEAD", "POST", "OPTIONS", "GET"].map(|method| (method, ""));
        let ways = by_return.into_iter().chain([("GET", "/intercepted")]);
        ways.map(move |(method, before)| (method, format!("{before}/{status}/{name}"), own))
    })
}

fn with_site(ask: impl Fn(&Server, u16) + Sync) {
    let cgi = |_: &application::Asked| b"Status: 200 OK\r\nContent-Type: text/plain\r\n\r\nbody".to_vec();
    let fastcgi =
        Application::start(|_| application::answer("Status: 200 OK\r\nContent-Type: text/plain\r\n\r\nbody"));
    let (uwsgi, scgi) = (Application::speaking(Speaks::Uwsgi, cgi), Application::speaking(Speaks::Scgi, cgi));
    let origin = origin();
    let server = site(&origin, &[("FASTCGI", &fastcgi), ("UWSGI", &uwsgi), ("SCGI", &scgi)]);
    std::thread::scope(|scope| {
        for status in STATUSES {
            let (ask, server) = (&ask, &server);
            scope.spawn(move || ask(server, status));
        }
    });
}

#[test]
fn the_response_behind_one_with_another_status_is_the_next_requests_own() {
    with_site(|server, status| {
        // What is too much behind a response would be taken for the next one.
        let mut client = Client::connect(server.port()).expect("a connection");
        for (method, path, own) in ways(status) {
            let about = format!("{method} {path}");
            let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n{length}\r\n");
            client.send(request + "GET /after HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
            let first = client.answer_to(method).unwrap_or_else(|error| panic!("{about}: {error}"));
            framing_is_sound(&about, method, &first);
            check(&about, method, status, own, first.status, &first.body);
            let second = client.answer().unwrap_or_else(|error| panic!("behind {about}: {error}"));
            assert_eq!((second.status, second.text()), (200, "after".to_owned()), "behind {about}");
        }
        assert_eq!(client.ask("GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").text(), "after");
        assert_eq!(client.rest_of_connection().expect("the end"), b"", "{status}");
    });
}

#[test]
fn a_stream_ends_with_the_head_of_a_status_that_has_no_body() {
    with_site(|server, status| {
        let mut frames = Frames::connect(server.port());
        for (method, path, own) in ways(status) {
            let about = format!("{method} {path}");
            let stream = frames.request(method, &path, &[("accept-encoding", "gzip")], true);
            let told = frames.answer(stream);
            assert_eq!(told.end, End::Whole, "{about}: {told:?}");
            check(&about, method, status, own, told.status, &told.body);
            if method == "HEAD" || matches!(status, 204 | 304) {
                assert_eq!(told.pieces, 0, "{about}: {told:?}");
            }
            let length = told.field("content-length").map(|length| length.parse::<usize>());
            if status == 204 {
                assert_eq!(length, None, "{about}: {told:?}");
            } else if method != "HEAD" && status != 304 {
                assert!(length.is_none_or(|length| length == Ok(told.body.len())), "{about}: {told:?}");
            }
        }
    });
}

const PAGES: &str = site! {
    main "worker_processes 1;"
    http "proxy_cache_path @DIR@/cache keys_zone=answers:1m;"
    server "http2 on;
        location = /file { return 404; error_page 404 =200 /f; }
        location = /f { alias @DIR@/file.txt; default_type text/plain; }
        location = /typed { return 502; error_page 502 =200 /pg; }
        location = /pg { default_type application/grpc; add_header grpc-status 14; return 204; }
        location = /also-typed { return 502; error_page 502 =200 /pg304; }
        location = /pg304 { default_type application/grpc; return 304; }
        location /closed { return 444; }
        location /left { return 499; }
        location /tried { try_files /none =444; }
        location /paged { return 404; error_page 404 @closed; }
        location @closed { return 444; }
        location /if { if ($request_method) { return 444; } }
        location = /after { return 200 after; }
        location = /interim { return 100; }
        location /cached {
            proxy_cache answers; proxy_cache_valid any 1h; proxy_pass http://@ORIGIN@;
            error_page 412 @unmet;
        }
        location /plain { proxy_cache answers; proxy_cache_valid any 1h; proxy_pass http://@ORIGIN@; }
        location @unmet { return 200 \"another one\"; }"
};

fn pages(origin: &str) -> Server {
    let prefix = Prefix::new();
    prefix.write("file.txt", "a file");
    Server::start_in(prefix, PAGES, &[("ORIGIN", origin)])
}

#[test]
fn a_condition_or_a_range_of_a_page_with_status_200_has_its_own_status() {
    let server = pages("127.0.0.1:1");
    for (field, value, status, body) in [
        ("Range", "bytes=0-0", 206, "a"),
        ("If-None-Match", "*", 304, ""),
        ("If-Match", "\"other\"", 412, "412 Precondition Failed"),
        ("Range", "bytes=90-", 416, "416 Requested Range"),
    ] {
        let mut client = server.client();
        let answer = client.get_with("/file", &[(field, value)]).expect("an answer");
        assert_eq!(answer.status, status, "{field}: {value}");
        assert!(answer.text().contains(body), "{field}: {value}: {}", answer.text());
        assert_eq!(client.get("/after").expect("an answer").text(), "after", "{field}: {value}");
    }
}

#[test]
fn a_response_without_a_body_has_its_type_once_its_status_has_one() {
    let server = pages("127.0.0.1:1");
    for path in ["/typed", "/also-typed"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.field("content-type"), Some("application/grpc"), "{path}");
        assert_eq!(answer.field("content-length"), Some("0"), "{path}");
    }
    assert_eq!(server.get("/typed").field("grpc-status"), Some("14"));
    assert_eq!(server.get("/pg").field("content-type"), None);
}

#[test]
fn a_stream_without_a_response_is_reset_and_others_go_on() {
    let server = pages("127.0.0.1:1");
    let mut frames = Frames::connect(server.port());
    for path in ["/closed", "/left", "/tried", "/paged", "/if"] {
        for method in ["GET", "HEAD", "POST"] {
            let stream = frames.request(method, path, &[], method != "POST");
            let after = frames.get("/after");
            let told = frames.answer(stream);
            assert_eq!(told.end, End::Reset(ErrorCode::ProtocolError), "{method} {path}");
            assert_eq!((told.status, told.pieces), (0, 0), "{method} {path}");
            assert_eq!(frames.answer(after).text(), "after", "{method} {path}");
        }
    }
    assert_eq!(frames.goaways(), &[]);
    let mut client = server.client();
    client
        .send("GET /closed HTTP/1.1\r\nHost: a\r\n\r\nGET /after HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    assert_eq!(client.rest_of_connection().expect("closed"), b"");
}

#[test]
fn nothing_is_taken_for_the_response_behind_an_interim_status() {
    let server = pages("127.0.0.1:1");
    let mut client = server.client();
    client
        .send("GET /interim HTTP/1.1\r\nHost: a\r\n\r\nGET /after HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    let all = client.rest_of_connection().expect("closed");
    assert!(!String::from_utf8_lossy(&all).contains("after"), "{}", String::from_utf8_lossy(&all));
}

#[test]
fn a_failed_condition_on_what_is_stored_is_an_error_like_any_other() {
    let origin = Origin::fixed(200, &[("ETag", "\"a\"")], b"body");
    let server = pages(&origin.address());
    for time in ["a miss", "a hit", "another hit"] {
        let told = |path| {
            let answer = server.get_with(path, &[("If-Match", "\"b\"")]);
            (answer.status, answer.text())
        };
        assert_eq!(told("/cached"), (412, "another one".to_owned()), "{time}");
        let (status, text) = told("/plain");
        assert_eq!(status, 412, "{time}");
        assert!(text.contains("<h1>412 Precondition Failed</h1>"), "{time}: {text}");
        let mut frames = Frames::connect(server.port());
        let over_http2 = frames.ask("/cached", &[("if-match", "\"b\"")]);
        assert_eq!((over_http2.status, over_http2.text()), (412, "another one".to_owned()), "{time}");
    }
}
