//! Heads that are made to cost much or to mislead, and what the answers' heads say where nginx's say it.

use std::sync::Arc;
use std::time::Duration;

use millstream_tests::client::{Answer, Client};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::process::cpu_time;
use millstream_tests::server::{Server, is_nginx};

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; worker_processes 1; events {}
    http {
        log_format status $status; access_log @DIR@/access.log status; default_type text/plain; keepalive_requests 100000;
        types { image/png png; text/css css; }
        large_client_header_buffers 4 16k; proxy_buffer_size 32k; proxy_buffers 8 32k;
        proxy_cache_path @DIR@/cache keys_zone=pages:1m;
        proxy_cache_key $uri; proxy_http_version 1.1;
        server {
            listen 127.0.0.1:@PORT@; server_name Upper.Example;
            location / { proxy_pass http://@ORIGIN@; proxy_set_header Connection \"\"; }
            location /cached { proxy_pass http://@ORIGIN@; proxy_cache pages; proxy_cache_valid 200 1h; }
            location /stamped { proxy_pass http://@ORIGIN@; proxy_cache pages; proxy_cache_valid 200 1h; expires 1h; }
            location /set { proxy_pass http://@ORIGIN@; add_header Last-Modified \"Mon, 28 Sep 1970 06:00:00 GMT\";
                add_header ETag \"\"; }
            location /twice { proxy_pass http://@ORIGIN@; add_header ETag \"first\" always; add_header ETag $arg_tag always; }
            location /page { proxy_pass http://@ORIGIN@; proxy_intercept_errors on; error_page 401 403 /text; }
            location /name { return 200 $server_name; }
            location /text { return 200 text; add_header X-Added yes always; }
            location /length { proxy_pass http://@ORIGIN@; proxy_set_header Content-Length \"\"; }
            location /zip { gzip on; gzip_vary on; return 404; }
            location /up { proxy_pass http://@ORIGIN@; add_header X-Added yes always; proxy_set_header Connection upgrade;
                proxy_set_header Upgrade $http_upgrade; }
            location /accel { proxy_pass http://@ORIGIN@; }
            location /files/ { root @DIR@; }
            location /missing { error_page 404 = @named; return 404; }
            location @named { root @DIR@/files; }
        }
    }";

fn start(origin: &Origin) -> Server {
    let prefix = millstream_tests::prefix::Prefix::new();
    prefix.write("files/a.css", "file");
    prefix.write("files/missing", "named");
    Server::start_in(prefix, SITE, &[("ORIGIN", &origin.address())])
}

/// `options` are listed in Connection.
fn head(options: usize, fields: usize) -> String {
    let options: Vec<String> = (0..options).map(|number| format!("x{number:04}")).collect();
    let fields: String = (0..fields).map(|number| format!("a{number:04}: b\r\n")).collect();
    format!("GET /cached HTTP/1.1\r\nHost: a\r\nConnection: {}\r\n{fields}\r\n", options.join(","))
}

#[test]
fn another_status_line_in_a_response_of_an_upstream_says_nothing() {
    let heads = [
        "HTTP/1.1 201 Created\r\nHTTP/1.1 200 OK\r\nX-Field: yes\r\n",
        "HTTP/1.1 201 Created\r\nX-Field: yes\r\nHTTP/1.1 500 Not: OK\nHTTP/1.0 200\r\n",
    ];
    for head in heads {
        let bytes = format!("{head}Content-Length: 4\r\n\r\nbody").into_bytes();
        let origin = Origin::start(move |_| vec![Step::Send(bytes.clone())]);
        let server = start(&origin);
        for path in ["/", "/cached"] {
            let got = server.get(path);
            let found = (got.status, got.text(), got.field("x-field"));
            assert_eq!(found, (201, "body".to_owned(), Some("yes")), "{path} {head:?}");
        }
    }
}

#[test]
fn a_connection_field_with_thousands_of_options_is_refused_at_once() {
    skip_on_nginx!("it looks for two of them");
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin);
    let before = cpu_time(server.id());
    for _ in 0..20 {
        assert_eq!(server.ask(head(2000, 900)).status, 400);
    }
    let used = cpu_time(server.id()).saturating_sub(before);
    assert!(used < Duration::from_secs(1), "{used:?} for twenty");
    assert_eq!(origin.count(), 0);
}

#[test]
fn an_answer_whose_connection_field_has_thousands_of_options_is_a_502() {
    skip_on_nginx!();
    let options = vec!["x"; 2000].join(",");
    let origin = Origin::fixed(200, &[("Connection", &options)], b"ok");
    let server = start(&origin);
    assert_eq!(server.get("/").status, 502);
}

#[test]
fn a_targeted_field_that_names_one_member_again_and_again_costs_little() {
    skip_on_nginx!("it reads none");
    let members: String = (0..1024).map(|number| format!("k{number:x},")).collect();
    let value = format!("{members}{}max-age=60", "k3ff,".repeat(4500));
    let origin = Origin::fixed(200, &[("CDN-Cache-Control", &value)], b"ok");
    let server = start(&origin);
    let before = cpu_time(server.id());
    for number in 0..40 {
        assert_eq!(server.get(&format!("/cached/{number}")).status, 200);
    }
    let used = cpu_time(server.id()).saturating_sub(before);
    assert!(used < Duration::from_secs(2), "{used:?} for forty");
    assert_eq!(server.get("/cached/0").text(), "ok");
    assert_eq!(origin.count(), 40, "it is the dictionary that lets it be stored");
}

#[test]
fn fields_that_connection_lists_end_here_however_many() {
    let origin = Origin::start(|request| {
        let kept = request.head.to_ascii_lowercase();
        let named = ["x-one", "x-two"].iter().filter(|name| kept.contains(**name)).count();
        let fields = [("Connection", "keep-alive, X-Hop"), ("X-Hop", "1"), ("X-End", "2")];
        answer(200, &fields, format!("{named} {}", kept.contains("x-three")).as_bytes())
    });
    let server = start(&origin);
    let many = (0..90).map(|number| format!("y{number}")).collect::<Vec<_>>().join(", ");
    let fields =
        [("Connection", &*format!("X-ONE, {many}, x-two")), ("X-One", "1"), ("X-Two", "2"), ("X-Three", "3")];
    let answer = server.get_with("/", &fields);
    skip_on_nginx!("it passes all of them on");
    assert_eq!(answer.text(), "0 true");
    assert_eq!((answer.field("x-hop"), answer.field("x-end")), (None, Some("2")));
}

#[test]
fn what_expires_gives_a_hit_begins_with_that_hit() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Origin::fixed(200, &[("Date", date), ("Age", "5000")], b"ok");
    let server = start(&origin);
    for _ in 0..3 {
        let answer = server.get("/stamped");
        assert_eq!(answer.field("cache-control"), Some("max-age=3600"));
        assert_ne!(answer.field("date"), Some(date));
        if !is_nginx() {
            assert_eq!(answer.field("age"), None, "it would take an hour and more off the hour");
        }
    }
}

#[test]
fn a_date_that_the_api_says_twice_is_said_once() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let origin =
        Origin::fixed(200, &[("Date", date), ("Date", date), ("Cache-Control", "max-age=999999999")], b"ok");
    let server = start(&origin);
    for _ in 0..2 {
        let answer = server.get("/cached");
        let dates = answer.head.lines().filter(|line| line.to_ascii_lowercase().starts_with("date:")).count();
        assert_eq!(dates, 1, "{}", answer.head);
    }
}

#[test]
fn of_what_an_answer_may_say_once_the_first_goes_on_on_a_miss_and_on_a_hit() {
    let origin = Origin::fixed(
        200,
        &[
            ("Expires", "Thu, 31 Dec 2037 23:55:55 GMT"),
            ("ETag", "\"one\""),
            ("X-Own", "one"),
            ("ETag", "\"two\""),
            ("expires", "Thu, 31 Dec 2037 23:55:56 GMT"),
            ("X-Own", "two"),
            ("Cache-Control", "max-age=60"),
        ],
        b"ok",
    );
    let server = start(&origin);
    for path in ["/", "/cached", "/cached"] {
        let head = server.get(path).head;
        let count =
            |name: &str| head.lines().filter(|line| line.to_ascii_lowercase().starts_with(name)).count();
        assert_eq!((count("expires:"), count("etag:"), count("x-own:")), (1, 1, 2), "{path}: {head}");
        assert!(head.contains("\"one\"") && head.contains(":55:55 GMT"), "{path}: {head}");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_hit_that_says_its_age_keeps_its_date() {
    skip_on_nginx!("it says no age");
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Origin::fixed(200, &[("Date", date)], b"ok");
    let server = start(&origin);
    let first = server.get("/cached");
    assert!(first.field("date").is_some());
    let hit = server.get("/cached");
    assert_eq!(hit.field("date"), Some(date));
    assert!(hit.field("age").is_some());
}

#[test]
fn a_text_has_the_type_of_its_uri() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin);
    for (path, media) in [
        ("/text", "text/plain"),
        ("/text.png", "image/png"),
        ("/text/a.CSS", "text/css"),
        ("/text.b/c", "text/plain"),
    ] {
        assert_eq!(server.get(path).field("content-type"), Some(media), "{path}");
    }
}

fn all<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let lines = answer.fields.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
    lines.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn an_added_validator_takes_the_place_of_the_answer_s_own() {
    let fields = [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("ETag", "\"a\"")];
    let origin = Origin::fixed(200, &fields, b"ok");
    let answer = start(&origin).get("/set");
    assert_eq!(all(&answer, "last-modified"), ["Mon, 28 Sep 1970 06:00:00 GMT"]);
    assert_eq!(answer.field("etag"), None);
}

#[test]
fn of_several_added_validators_the_last_counts_also_where_it_is_empty() {
    let origin = Origin::fixed(404, &[("ETag", "\"own\"")], b"no");
    let server = start(&origin);
    for (path, expected) in [("/twice?tag=last", vec!["last"]), ("/twice", vec![])] {
        assert_eq!(all(&server.get(path), "etag"), expected, "{path}");
    }
}

#[test]
fn a_page_in_place_of_a_401_says_how_to_be_let_in() {
    let fields = [("WWW-Authenticate", "Basic realm=\"a\""), ("X-Own", "1"), ("WWW-Authenticate", "Bearer")];
    for (status, expected) in [(401, vec!["Basic realm=\"a\"", "Bearer"]), (403, vec![])] {
        let origin = Origin::fixed(status, &fields, b"no");
        let answer = start(&origin).get("/page");
        assert_eq!((answer.status, answer.text().as_str()), (status, "text"));
        let asked_for = all(&answer, "www-authenticate");
        // 1.22 knows of one line.
        let known = if is_nginx() { &expected[..expected.len().min(1)] } else { &expected };
        assert_eq!(asked_for, known, "{status}");
        assert_eq!(answer.field("x-own"), None);
    }
}

#[test]
fn a_client_that_leaves_while_its_answer_is_fetched_for_the_cache_is_logged_with_499() {
    let gate = Arc::new(Gate::default());
    let origin = Origin::in_two(b"", &gate, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let server = start(&origin);
    let mut client = server.client();
    client.send("GET /cached HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    millstream_tests::wait::until("the API is asked", || origin.count() == 1);
    drop(client);
    gate.open();
    // 1.22 goes on for the cache's sake, and logs the upstream's status beside no byte sent.
    let logged = if is_nginx() { "200\n" } else { "499\n" };
    millstream_tests::wait::until("it is logged", || server.prefix().read("access.log") == logged);
    skip_on_nginx!("what it stores of it depends on how the client left");
    assert_eq!(server.get("/cached").text(), "ok");
    assert_eq!(origin.count(), 1, "what it asked for is stored");
}

#[test]
fn a_server_s_name_is_in_lower_case() {
    let origin = Origin::fixed(200, &[], b"ok");
    assert_eq!(start(&origin).get("/name").text(), "upper.example");
}

#[test]
fn a_built_in_page_is_compressed_like_any_other() {
    let origin = Origin::fixed(200, &[], b"ok");
    let server = start(&origin);
    let answer = server.get_with("/zip", &[("Accept-Encoding", "gzip")]);
    assert_eq!((answer.status, answer.field("content-encoding")), (404, Some("gzip")));
    assert_eq!(answer.field("vary"), Some("Accept-Encoding"));
    assert_eq!(server.get("/zip").field("vary"), Some("Accept-Encoding"));
}

#[test]
fn a_content_length_that_is_set_to_nothing_is_not_sent() {
    let origin = Origin::start(|request| {
        answer(200, &[], request.field("content-length").unwrap_or("none").as_bytes())
    });
    let server = start(&origin);
    let post = |path: &str| {
        let mut client: Client = server.client();
        client.ask(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")).text()
    };
    assert_eq!((post("/length").as_str(), post("/").as_str()), ("none", "0"));
}

#[test]
fn an_answer_that_changes_the_protocol_has_the_fields_of_any_answer() {
    let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\nX-End: 1\r\n\r\n";
    let origin = Origin::start(|_| vec![Step::Send(head.to_vec())]);
    let server = start(&origin);
    let mut client = server.client();
    client.send("GET /up HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n").expect("sent");
    let answer = client.head().expect("an answer");
    assert_eq!(answer.status, 101);
    for (name, value) in [("upgrade", "x"), ("x-added", "yes"), ("x-end", "1")] {
        assert_eq!(answer.field(name), Some(value), "{name}");
    }
    assert!(answer.field("server").is_some() && answer.field("date").is_some(), "{}", answer.head);
    assert!(answer.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("upgrade")));
}

#[test]
fn a_redirect_by_the_upstream_is_fetched_with_get_whatever_was_asked() {
    let origin = Origin::fixed(200, &[("X-Accel-Redirect", "/files/a.css")], b"");
    let server = start(&origin);
    let answer = server.ask("POST /accel HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!((answer.status, answer.text().as_str()), (200, "file"));
    let answer = server.request("HEAD", "/accel", &[]);
    assert_eq!((answer.status, answer.field("content-length")), (200, Some("4")));
}

#[test]
fn a_named_location_serves_files() {
    let origin = Origin::fixed(200, &[], b"ok");
    assert_eq!(start(&origin).get("/missing").text(), "named");
}

#[test]
fn a_file_that_is_not_there_is_a_line_in_the_error_log() {
    let origin = Origin::fixed(200, &[("X-Accel-Redirect", "/files/none")], b"");
    let server = start(&origin);
    assert_eq!(server.get("/accel").status, 404);
    millstream_tests::wait::until("the error log names the file", || {
        server
            .log()
            .lines()
            .any(|line| line.contains("open()") && line.contains("/files/none\" failed (2: No such file"))
    });
}

#[test]
fn the_server_s_own_return_comes_before_its_error_page() {
    let text = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; server { listen 127.0.0.1:@PORT@;
            error_page 403 /page; return 403; location /page { return 200 page; } } }";
    let answer = Server::start(text, &[]).get("/");
    assert_eq!(answer.status, 403);
    assert!(answer.text().contains("403 Forbidden"), "{}", answer.text());
}

#[test]
fn a_stored_answer_whose_origin_says_nothing_of_ranges_has_them_and_says_so() {
    skip_on_nginx!("it answers with the whole");
    let origin = Origin::fixed(200, &[("ETag", "\"a\"")], b"0123456789");
    let server = start(&origin);
    server.get("/cached");
    let whole = server.get("/cached");
    assert_eq!(whole.field("accept-ranges"), Some("bytes"));
    let part = server.get_with("/cached", &[("Range", "bytes=2-3")]);
    assert_eq!((part.status, part.text().as_str()), (206, "23"));
}

#[test]
fn an_added_field_may_name_what_was_said_before_it_also_at_a_hit() {
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60"), ("X-Own", "a")], b"body");
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=pages:1m;
            server { listen 127.0.0.1:@PORT@;
                location / {
                    proxy_pass http://@ORIGIN@; proxy_cache pages;
                    add_header X-Own b; add_header X-Seen $sent_http_x_own; add_header X-Early $sent_http_x_late;
                    add_header X-Late $upstream_cache_status;
                } } }",
        &[("ORIGIN", &origin.address())],
    );
    for status in ["MISS", "HIT", "HIT"] {
        let answer = server.get("/");
        assert_eq!(answer.field("x-seen"), Some("a, b"), "{}", answer.head);
        assert_eq!(answer.field("x-early"), None, "{}", answer.head);
        assert_eq!(answer.field("x-late"), Some(status), "{}", answer.head);
    }
}

#[test]
fn a_connection_idles_for_as_long_as_the_location_of_its_last_request_says() {
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; keepalive_timeout 600;
            server { listen 127.0.0.1:@PORT@;
                location / { return 200; } location /short { keepalive_timeout 100ms; return 200; } } }",
        &[],
    );
    let mut client = server.client();
    assert_eq!(client.get("/").expect("an answer").status, 200);
    assert_eq!(client.get("/short").expect("an answer").status, 200);
    assert!(client.is_closed_by_server());
}
