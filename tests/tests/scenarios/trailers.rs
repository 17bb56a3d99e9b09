//! Trailer fields of `add_trailer`, and how answers are framed for them.

use millstream_tests::client::Client;
use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, Step};
use millstream_tests::server::Server;

const SITE: &str = site! {
    http "default_type text/plain;
        proxy_cache_path @DIR@/cache keys_zone=pages:1m;
        add_trailer X-Host $host; add_trailer X-Always yes always; add_trailer X-Empty \"\";
        add_trailer X-Sent $sent_trailer_x_host:$sent_http_content_type;"
    server "server_name localhost;
        location /text { return 200 text; }
        location /gone { return 404; }
        location /whole { chunked_transfer_encoding off; return 200 whole; }
        location /own { add_trailer X-Status $upstream_cache_status;
            proxy_pass http://@ORIGIN@; proxy_cache pages; proxy_cache_valid 200 1h; }"
};

fn whole(server: &Server, method: &str, path: &str, version: &str) -> String {
    let mut client: Client = server.client();
    let request = format!("{method} {path} {version}\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.send(request).expect("open");
    String::from_utf8(client.rest_of_connection().expect("an answer")).expect("text")
}

#[test]
fn trailers_follow_the_body_of_a_chunked_answer_and_no_other() {
    let origin = Origin::fixed(200, &[], b"body");
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let answer = whole(&server, "GET", "/text", "HTTP/1.1");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("Transfer-Encoding: chunked") && !head.contains("Content-Length"), "{head}");
    let trailers = "X-Host: localhost\r\nX-Always: yes\r\nX-Sent: localhost:text/plain\r\n";
    assert_eq!(body, format!("4\r\ntext\r\n0\r\n{trailers}\r\n"));

    let gone = whole(&server, "GET", "/gone", "HTTP/1.1");
    assert!(gone.ends_with("\r\n0\r\nX-Always: yes\r\n\r\n"), "{gone}");
    for (method, path, version) in
        [("GET", "/text", "HTTP/1.0"), ("HEAD", "/text", "HTTP/1.1"), ("GET", "/whole", "HTTP/1.1")]
    {
        let answer = whole(&server, method, path, version);
        assert!(!answer.contains("X-Always") && answer.contains("Content-Length"), "{path}: {answer}");
    }
    // The level's own, evaluated when the body is out, also for an answer that is stored.
    for status in ["MISS", "HIT", "HIT"] {
        let answer = whole(&server, "GET", "/own", "HTTP/1.1");
        assert!(answer.contains("4\r\nbody\r\n0\r\n"), "{answer}");
        assert!(answer.ends_with(&format!("X-Status: {status}\r\n\r\n")), "{answer}");
        assert!(!answer.contains("X-Always"), "{answer}");
    }
}

#[test]
fn trailers_of_an_upstream_are_known_and_passed_on_where_that_is_wanted() {
    let sent =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n";
    let origin = Origin::start(move |_| vec![Step::Send(sent.into())]);
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=pages:1m;
          server { listen 127.0.0.1:@PORT@;
            location / { proxy_pass http://@ORIGIN@; }
            location /stored { proxy_pass_trailers on; proxy_cache pages; proxy_cache_valid 200 1h;
                proxy_pass http://@ORIGIN@; }
            location /known { add_trailer X-Known $upstream_trailer_x_sum; proxy_pass http://@ORIGIN@; }
            location /passed { proxy_pass_trailers on; proxy_pass http://@ORIGIN@; } } }",
        &[("ORIGIN", &origin.address())],
    );
    for (path, trailers) in
        [("/", ""), ("/known", "X-Known: 1, 2\r\n"), ("/passed", "X-Sum: 1\r\nX-Sum: 2\r\n")]
    {
        let answer = whole(&server, "GET", path, "HTTP/1.1");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert_eq!(body, format!("4\r\nbody\r\n0\r\n{trailers}\r\n"), "{path}");
    }
    // They are for the client that asked, and are not stored (RFC 9111 §3.1 allows that).
    let asked = whole(&server, "GET", "/stored", "HTTP/1.1");
    assert!(asked.ends_with("body\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n"), "{asked}");
    let hit = whole(&server, "GET", "/stored", "HTTP/1.1");
    assert!(hit.ends_with("body") && !hit.contains("X-Sum"), "{hit}");
}

#[test]
fn trailers_that_may_not_stand_behind_a_body_or_are_hidden_are_not_passed_on() {
    let sent = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=1\r\n\
                Host: evil\r\nContent-Length: 99\r\nCache-Control: public\r\nX-Accel-Redirect: /secret\r\nX-Hidden: 1\r\n\r\n";
    let origin = Origin::start(move |_| vec![Step::Send(sent.into())]);
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; server { listen 127.0.0.1:@PORT@; proxy_pass_trailers on;
            location / { proxy_pass http://@ORIGIN@; proxy_hide_header X-Hidden; } } }",
        &[("ORIGIN", &origin.address())],
    );
    let answer = whole(&server, "GET", "/", "HTTP/1.1");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert_eq!(body, "4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n");
}

#[test]
fn trailers_of_the_rest_of_a_response_do_not_follow_the_whole() {
    skip_on_nginx!("it stores no parts");
    let origin = Origin::numbered(|_, number| {
        let (range, body) = if number == 0 { ("0-4", "01234") } else { ("5-9", "56789") };
        let head =
            format!("HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Range: bytes {range}/10\r\n");
        let rest = format!("Transfer-Encoding: chunked\r\n\r\n5\r\n{body}\r\n0\r\nX-Sum: 1\r\n\r\n");
        vec![Step::Send((head + "Cache-Control: max-age=60\r\n" + &rest).into())]
    });
    let site = site! {
        http "http2 on; proxy_cache_path memory keys_zone=pages:1m memory=8m;"
        server "location / { proxy_pass_trailers on; proxy_cache pages; proxy_cache_max_range_offset 0;
            proxy_pass http://@ORIGIN@; }"
    };
    let server = Server::start(site, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    assert_eq!(frames.ask("/", &[("range", "bytes=0-4")]).text(), "01234");
    let whole = frames.whole("/");
    assert_eq!(
        (whole.status, whole.text().as_str(), whole.trailers.as_slice()),
        (200, "0123456789", &[][..])
    );
    assert_eq!(origin.count(), 2);
}
