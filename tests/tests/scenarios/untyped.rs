//! What has no media type, or one of its own: failures behind `X-Accel-Redirect`, `default_type ""`, types that are `*`.

use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;

const HANDED_ON: &str = site! {
    http "proxy_cache_path @DIR@/cache keys_zone=z:1m; types { application/pdf pdf; text/css css; }"
    server "http2 on; proxy_set_header X-Go $arg_go;
        location / { proxy_pass http://@ORIGIN@; }
        location /stored { proxy_pass http://@ORIGIN@/; proxy_cache z; proxy_cache_valid any 1h; }
        location /files/ { internal; root @DIR@; }
        location /paged/ { internal; root @DIR@; error_page 404 /error.css; }
        location = /error.css { internal; root @DIR@; }
        location /no { internal; deny all; }
        location /moved { internal; return 302 /x; }
        location /gone { internal; return 410; }
        location /text { internal; return 200 text; }"
};

#[test]
fn the_page_of_a_failure_has_its_own_type_and_a_file_that_of_the_answer_that_led_to_it() {
    let origin = Origin::start(|request| {
        let to = request.field("x-go").unwrap_or_default().to_owned();
        answer(
            200,
            &[
                ("X-Accel-Redirect", &to),
                ("Content-Type", "application/x-made"),
                ("Content-Disposition", "inline"),
            ],
            b"",
        )
    });
    let server = Server::start(HANDED_ON, &[("ORIGIN", &origin.address())]);
    server.prefix().write("files/a.pdf", "%PDF");
    server.prefix().write("error.css", "a {}");
    for (to, status, media) in [
        ("/files/a.pdf", 200, "application/x-made"),
        ("/text", 200, "application/x-made"),
        ("/files/none.pdf", 404, "text/html"),
        ("/paged/none.pdf", 404, "text/css"),
        ("/no", 403, "text/html"),
        ("/moved", 302, "text/html"),
        ("/gone", 410, "text/html"),
    ] {
        for from in ["/", "/stored"] {
            let path = format!("{from}?go={to}");
            let got = server.get(&path);
            let said = (got.status, got.field("content-type"), got.field("content-disposition"));
            assert_eq!(said, (status, Some(media), Some("inline")), "{path}");
            let got = Frames::connect(server.port()).whole(&path);
            assert_eq!((got.status, got.field("content-type")), (status, Some(media)), "{path} over HTTP/2");
        }
    }
}

const EMPTY: &str = site! {
    http "proxy_cache_path @DIR@/cache keys_zone=z:1m;"
    server "http2 on; default_type ''; types { } charset utf-8; charset_types *;
        location / { root @DIR@; }
        location /passed { proxy_pass http://@ORIGIN@; }
        location /stored { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid any 1h; }
        location /returned { return 200 x; }"
};

#[test]
fn an_empty_type_is_no_field() {
    let origin = Origin::fixed(200, &[("Content-Type", "")], b"x");
    let server = Server::start(EMPTY, &[("ORIGIN", &origin.address())]);
    server.prefix().write("file", "x");
    for path in ["/file", "/passed", "/stored", "/stored", "/returned"] {
        let got = server.get(path);
        assert_eq!((got.status, got.field("content-type")), (200, None), "{path}");
        let got = Frames::connect(server.port()).whole(path);
        assert_eq!((got.status, got.field("content-type")), (200, None), "{path} over HTTP/2");
    }
    let parts = server.get_with("/file", &[("Range", "bytes=0-0,0-0")]);
    assert!(!parts.text().contains("Content-Type"), "{}", parts.text());
}

#[test]
fn a_page_sent_as_204_describes_no_body_and_one_sent_as_206_says_when_it_changed() {
    let configuration = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; server { listen 127.0.0.1:@PORT@; http2 on; root @DIR@;
            location /none { error_page 404 =204 /page; return 404; }
            location /part { error_page 404 =206 /page; return 404; }
            location /kept { error_page 404 =410 /page; return 404; }
            location /page { }
            location /passed { proxy_pass http://@ORIGIN@; }
        } }";
    let origin = Origin::fixed(204, &[("Content-Type", "text/html")], b"");
    let server = Server::start(configuration, &[("ORIGIN", &origin.address())]);
    server.prefix().write("page", "x");
    for (path, status, is_typed, is_dated) in [
        ("/none", 204, false, false),
        ("/part", 206, true, true),
        ("/kept", 410, true, false),
        ("/passed", 204, false, false),
    ] {
        let got = server.get(path);
        let said = (got.status, got.field("content-type").is_some(), got.field("last-modified").is_some());
        assert_eq!(said, (status, is_typed, is_dated), "{path}");
        let got = Frames::connect(server.port()).whole(path);
        assert_eq!(
            (got.status, got.field("content-type").is_some()),
            (status, is_typed),
            "{path} over HTTP/2"
        );
    }
}

const STAR: &str = site! {
    http "default_type '';"
    server "http2 on; gzip_min_length 1;
        location /ssi { ssi on; ssi_types *; proxy_pass http://@ORIGIN@; }
        location /listed { ssi on; ssi_types text/css; proxy_pass http://@ORIGIN@; }
        location /added { add_after_body /end; addition_types *; proxy_pass http://@ORIGIN@; }
        location /replaced { sub_filter a Z; sub_filter_types *; proxy_pass http://@ORIGIN@; }
        location /packed { gzip on; gzip_types *; proxy_pass http://@ORIGIN@; }
        location = /end { return 200 END; }"
};

#[test]
fn a_star_is_for_answers_without_a_type_too() {
    for fields in [&[][..], &[("Content-Type", "")], &[("Content-Type", "x/y")]] {
        let origin = Origin::fixed(200, fields, b"a<!--# echo var='arg_x' -->b");
        let server = Server::start(STAR, &[("ORIGIN", &origin.address())]);
        for (path, expected) in [
            ("/ssi?x=1", "a1b"),
            ("/listed?x=1", "a<!--# echo var='arg_x' -->b"),
            ("/added", "a<!--# echo var='arg_x' -->bEND"),
            ("/replaced", "Z<!--# echo var='arg_x' -->b"),
        ] {
            assert_eq!(server.get(path).text(), expected, "{path} {fields:?}");
            assert_eq!(Frames::connect(server.port()).whole(path).text(), expected, "{path} {fields:?}");
        }
        let packed = server.get_with("/packed", &[("Accept-Encoding", "gzip")]);
        assert_eq!(packed.field("content-encoding"), Some("gzip"), "{fields:?}");
    }
}
