//! Heads that are refused: their client gets the `error_page` that names the status, as in nginx.

use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::{Server, is_nginx};

const PAGES: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http { access_log off; large_client_header_buffers 2 1k; client_header_buffer_size 1k; http2 on;
        server { listen 127.0.0.1:@PORT@; @PAGES@
            location / { return 200 index; }
            location = /large { return 200 'too large'; }
            location = /long { return 200 'too long'; }
            location = /bad { return 200 bad; }
            location @large { return 200 'named large'; }
        } }";

fn started(pages: &str) -> Server {
    Server::start(PAGES, &[("PAGES", pages)])
}

fn large() -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nX-Large: {}\r\n\r\n", "x".repeat(3000))
}

#[test]
fn a_head_that_is_too_large_gets_the_page_of_494() {
    for (pages, status, text) in [
        ("error_page 494 /large;", 400, "too large"),
        ("error_page 494 =413 /large;", 413, "too large"),
        ("error_page 494 = /large;", 200, "too large"),
        ("error_page 494 =431 /large;", 431, "too large"),
    ] {
        let server = started(pages);
        let got = server.ask(large());
        assert_eq!((got.status, got.text().as_str()), (status, text), "{pages}");
        assert_eq!(got.field("connection"), Some("close"), "{pages}");
        let mut frames = Frames::connect(server.port());
        let field = "x".repeat(3000);
        let got = frames.ask("/", &[("x-large", &field)]);
        assert_eq!((got.status, got.text().as_str()), (status, text), "{pages} over HTTP/2");
    }
}

#[test]
fn it_is_also_known_by_the_status_that_its_client_gets_and_leads_elsewhere_too() {
    skip_on_nginx!();
    let got = started("").ask(large());
    assert_eq!((got.status, got.text().contains("431 Request Header Fields Too Large")), (431, true));
    let got = started("error_page 431 /large;").ask(large());
    assert_eq!((got.status, got.text().as_str()), (431, "too large"));
    let got = started("error_page 494 @large;").ask(large());
    assert_eq!((got.status, got.text().as_str()), (400, "named large"));
    let got = started("error_page 494 https://help.example/;").ask(large());
    assert_eq!((got.status, got.field("location")), (302, Some("https://help.example/")));
}

#[test]
fn other_refused_heads_get_their_pages() {
    let server = started("error_page 414 /long; error_page 400 /bad;");
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(3000));
    let got = server.ask(&long);
    assert_eq!((got.status, got.text().as_str()), (414, "too long"));
    let got = server.ask("GET / HTTP/1.1\r\n\r\n");
    assert_eq!((got.status, got.text().as_str()), (400, "bad"), "without a Host");
}

const PASSED_ON: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http { access_log off; large_client_header_buffers 2 1k; client_header_buffer_size 1k; http2 on;
        server { listen 127.0.0.1:@PORT@; error_page 494 400 =200 @WHERE@;
            location /page { proxy_pass http://@ORIGIN@; }
            location @named { proxy_pass http://@ORIGIN@; } } }";

#[test]
fn a_page_of_a_refused_head_may_come_from_an_upstream() {
    let origin = Origin::start(|request| {
        let line = request.head.lines().next().unwrap_or_default();
        answer(200, &[], line.as_bytes())
    });
    let start = |place: &str| Server::start(PASSED_ON, &[("ORIGIN", &origin.address()), ("WHERE", place)]);
    let server = start("/page");
    assert_eq!(server.ask(large()).text(), "GET /page HTTP/1.1");
    assert_eq!(server.ask(large().replace("GET /", "PUT /x")).text(), "GET /page HTTP/1.1");
    assert_eq!(server.ask("GET / HTTP/1.1\r\n\r\n").text(), "GET /page HTTP/1.1");
    let mut frames = Frames::connect(server.port());
    let field = "x".repeat(3000);
    assert_eq!(frames.ask("/", &[("x-large", &field)]).text(), "GET /page HTTP/1.1");
    let server = start("@named");
    let named = server.ask(large().replace("GET /", "GET /a%20b?c"));
    assert_eq!(named.text(), "GET /a%20b?c HTTP/1.1");
    let mut client = server.client();
    client.send(large().replace("GET /", "HEAD /")).expect("sent");
    assert_eq!(client.answer_to("HEAD").expect("an answer").status, 200);
    assert!(client.rest_of_connection().is_ok_and(|rest| rest.is_empty()), "HEAD has no body");
}

const ROOMY: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http { access_log off; client_header_buffer_size 256; large_client_header_buffers 2 256;
        server { listen 127.0.0.1:@PORT@; server_name narrow; return 200 narrow; }
        server { listen 127.0.0.1:@PORT@; server_name roomy ~^r[0-9]$; large_client_header_buffers 4 1k; return 200 roomy; } }";

#[test]
fn a_head_has_the_room_that_the_server_it_names_grants() {
    let server = Server::start(ROOMY, &[]);
    let head = |host: &str, size: usize| {
        let field = "x".repeat(size);
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-A: {field}\r\nX-B: {field}\r\n\r\n")
    };
    for (host, size, status) in
        [("narrow", 100, 200), ("roomy", 900, 200), ("R7.", 900, 200), ("roomy:80", 900, 200)]
    {
        assert_eq!(server.ask(head(host, size)).status, status, "{host} {size}");
    }
    for (host, size) in [("narrow", 900), ("roomy", 3000), ("other", 900)] {
        assert!(matches!(server.ask(head(host, size)).status, 400 | 431), "{host} {size}");
    }
    // It comes in pieces, and before the field that names the server only the first one's room holds.
    let mut client = server.client();
    let whole = head("roomy", 900);
    for piece in whole.as_bytes().chunks(300) {
        client.send(piece).expect("sent");
    }
    assert_eq!(client.answer().expect("an answer").status, 200);
    let late = format!("GET / HTTP/1.1\r\nX-A: {}\r\nHost: roomy\r\n\r\n", "x".repeat(900));
    assert!(matches!(server.ask(&late).status, 400 | 431));
}

#[test]
fn the_preface_of_http2_where_that_is_not_spoken_is_no_request() {
    let server = Server::start(ROOMY, &[]);
    assert_eq!(server.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 400);
    assert_eq!(server.ask("GET / HTTP/2.0\r\nHost: a\r\n\r\n").status, 505);
}

#[test]
fn max_headers_counts_the_lines_that_a_client_sends() {
    let text = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; server { listen 127.0.0.1:@PORT@; http2 on; max_headers 5; return 200 ok; } }";
    let server = Server::start(text, &[]);
    for (count, is_taken) in [(5, true), (6, false)] {
        let lines = "X-A: b\r\n".repeat(count - 1);
        let got = server.ask(format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
        assert_eq!(got.status == 200, is_taken, "{count} over HTTP/1");
        let mut frames = Frames::connect(server.port());
        assert_eq!(
            frames.ask("/", &vec![("x-a", "b"); count]).status == 200,
            is_taken,
            "{count} beside :authority"
        );
        let mut fields = vec![("x-a", "b"); count - 1];
        fields.insert(0, ("host", "localhost"));
        assert_eq!(frames.ask("/", &fields).status == 200, is_taken, "{count}, Host among them");
    }
}

#[test]
fn more_fields_than_max_headers_are_a_bad_request_with_its_page() {
    let check = |pages: &str, status: u16, text: &str| {
        let site = PAGES.replace("@PAGES@", "max_headers 5; @PAGES@");
        let server = Server::start(&site, &[("PAGES", pages)]);
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X-A: b\r\n".repeat(5));
        let got = server.ask(&head);
        assert_eq!((got.status, got.field("connection")), (status, Some("close")), "{pages}");
        assert!(got.text().contains(text), "{pages}: {}", got.text());
        let mut frames = Frames::connect(server.port());
        let got = frames.ask("/", &[("x-a", "b"); 6]);
        assert_eq!(got.status, status, "{pages} over HTTP/2");
        assert!(got.text().contains(text), "{pages} over HTTP/2: {}", got.text());
    };
    check("", 400, "400 Bad Request");
    check("", 400, "Request Header Or Cookie Too Large");
    check("error_page 494 /large;", 400, "too large");
    check("error_page 494 =413 /large;", 413, "too large");
    if !is_nginx() {
        check("error_page 400 /bad;", 400, "bad");
        check("error_page 400 /bad; error_page 494 /large;", 400, "too large");
    }
}
