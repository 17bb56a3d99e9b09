//! What of a request goes upstream, what else is sent in its place, and what is said of the answer's characters.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        server {
            listen 127.0.0.1:@PORT@; charset utf-8;
            location / { proxy_pass http://@ORIGIN@; add_header X-Body \"[$request_body]\"; }
            location /fields { proxy_pass http://@ORIGIN@; proxy_pass_request_headers off; proxy_set_header X-Set yes; }
            location /bodiless { proxy_pass http://@ORIGIN@; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }
            location /replaced { proxy_pass http://@ORIGIN@; proxy_set_body \"<$request_body>\"; }
        }
    }";

#[test]
fn what_goes_upstream_of_a_request_is_what_the_location_lets_go() {
    let origin = Origin::start(|request| {
        let said = |name: &str| request.field(name).unwrap_or("-").to_owned();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let text = format!("{} {} {} [{body}]", said("x-client"), said("x-set"), said("content-length"));
        answer(200, &[("Content-Type", "text/plain")], text.as_bytes())
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    for (path, came, seen) in [
        ("/", "yes - 4 [body]", Some("[body]")),
        ("/fields", "- yes 4 [body]", None),
        ("/bodiless", "yes - - []", None),
        ("/replaced", "yes - 6 [<body>]", None),
    ] {
        let mut client = server.client();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nX-Client: yes\r\nContent-Length: 4\r\n\r\n");
        client.send(format!("{head}body")).expect("open");
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.text(), came, "{path}");
        assert_eq!(answer.field("x-body"), seen, "{path}");
        assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"), "{path}");
    }
}

#[test]
fn a_body_is_in_a_file_that_others_can_read_where_that_is_wanted() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; client_body_temp_path @DIR@/bodies; client_body_buffer_size 1k;
            server { listen 127.0.0.1:@PORT@; add_header X-File $request_body_file; add_header X-Body $request_body;
                location / { proxy_pass http://@ORIGIN@; }
                location /stays { client_body_in_file_only on; proxy_pass http://@ORIGIN@; }
                location /clean { client_body_in_file_only clean; proxy_pass http://@ORIGIN@; } } }",
        &[("ORIGIN", &origin.address())],
    );
    let large = "0123456789".repeat(1_000);
    for (path, body, is_in_file) in [
        ("/", "small", false),
        ("/", large.as_str(), true),
        ("/stays", "small", true),
        ("/stays", large.as_str(), true),
        ("/clean", "small", true),
    ] {
        let mut client = server.client();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        client.send(head + body).expect("it is sent");
        let told = client.answer().expect("it is answered");
        assert_eq!(told.text(), body, "{path}");
        assert_eq!(told.field("x-body").is_none(), is_in_file, "{path}");
        let file = told.field("x-file").map(std::path::PathBuf::from);
        assert_eq!(file.is_some(), is_in_file, "{path}");
        match file {
            Some(file) if path == "/stays" => {
                assert_eq!(std::fs::read_to_string(&file).expect("it is there"), body);
            }
            Some(file) => wait::until("the file is gone", || !file.exists()),
            None => {}
        }
    }
    assert_eq!(server.prefix().count_files("bodies"), 2, "nothing stays but what is to");
}

/// A site that passes bodies on as they come.
fn unbuffered(origin: &str) -> Server {
    Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off;
            server { listen 127.0.0.1:@PORT@; proxy_request_buffering off; client_body_in_file_only on;
                location / { proxy_pass http://@ORIGIN@; add_header X-Body \"[$request_body]\"; }
                location /fixed { return 200 fixed; } } }",
        &[("ORIGIN", origin)],
    )
}

#[test]
fn a_body_that_came_with_its_head_is_kept_though_bodies_are_passed_on_as_they_come() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = unbuffered(&origin.address());
    for (fields, body) in [
        ("Content-Length: 4\r\n", "body"),
        ("Transfer-Encoding: chunked\r\n", "1\r\nb\r\n3\r\nody\r\n0\r\n\r\n"),
    ] {
        let mut client = server.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")).expect("open");
        let told = client.answer().expect("an answer");
        assert_eq!((told.text().as_str(), told.field("x-body")), ("body", Some("[body]")), "{fields}");
    }
    let lengths: Vec<_> =
        origin.requests().iter().map(|request| request.field("content-length").map(str::to_owned)).collect();
    assert_eq!(lengths, [Some("4".to_owned()), Some("4".to_owned())], "its length is known");
}

#[test]
fn the_beginning_of_a_body_goes_on_while_the_rest_is_still_to_come() {
    for (fields, first, rest, whole) in [
        ("Content-Length: 8\r\n", "begi", "nend", "beginend"),
        (
            "Transfer-Encoding: chunked\r\n",
            "2\r\nbe\r\n2\r\ngi\r\n",
            "4\r\nnend\r\n0\r\n\r\n",
            "4\r\nbegi\r\n4\r\nnend\r\n0\r\n\r\n",
        ),
    ] {
        let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = unbuffered(&origin.local_addr().expect("bound").to_string());
        let mut client = server.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{first}")).expect("open");
        let (mut asked, _) = origin.accept().expect("the upstream is asked");
        let mut came = Vec::new();
        read_until(&mut asked, &mut came, b"begi");
        client.send(rest).expect("open");
        read_until(&mut asked, &mut came, whole.as_bytes());
        asked.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("it is read");
        assert_eq!(client.answer().expect("an answer").status, 204, "{fields}");
    }
}

fn read_until(stream: &mut TcpStream, came: &mut Vec<u8>, end: &[u8]) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
    let mut piece = [0; 4096];
    while !came.windows(end.len()).any(|window| window == end) {
        let count = stream.read(&mut piece).expect("more is to come");
        assert!(count > 0, "{}", String::from_utf8_lossy(came));
        came.extend_from_slice(&piece[..count]);
    }
}

#[test]
fn what_is_no_chunked_body_is_refused_also_where_nobody_wants_the_body() {
    let server = unbuffered("127.0.0.1:1");
    for (body, status) in [("4\r\nbody\r\n0\r\n\r\n", 200), ("4\r\nbody too long\r\n0\r\n\r\n", 400)] {
        let mut client = server.client();
        let head = "POST /fixed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}{body}")).expect("open");
        assert_eq!(client.answer().expect("an answer").status, status, "{body}");
    }
}
