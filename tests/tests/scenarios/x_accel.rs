//! `X-Accel-Redirect`: which URIs lead somewhere, and what the response that led there leaves to the one that it led to;
//! `X-Accel-Charset`, which may be that one's too.

use millstream_tests::application;
use millstream_tests::client::Answer;
use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const SERVER: &str = site! {
    http "types { application/pdf pdf; }
        proxy_cache_path @DIR@/cache keys_zone=z:1m; proxy_set_header X-Says $http_x_says;
        proxy_cookie_path / /site;"
    server "http2 on;
        location / { proxy_pass http://@ORIGIN@; }
        location /stored { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid any 1h; }
        location /fastcgi { fastcgi_param LEADS on; fastcgi_pass 127.0.0.1:@APP@; }
        location /pub/ { internal; root @DIR@; }
        location /priv/ { internal; return 200 secret; }
        location /untyped/ { internal; alias @DIR@/pub/; default_type ''; }
        location /text { internal; default_type text/css; return 200 text; }
        location /tell { internal; return 200 $sent_http_content_type; }
        location /list/ { internal; alias @DIR@/pub/; autoindex on; }
        location ~ ^/fetch/(https?)://([^/]+)/(.*)$ { internal; return 200 $1|$2|$3|$args; }
        location /fetch/ { internal; return 200 merged; }
        location /second { internal; proxy_pass http://@SECOND@; }
        location /second/stored { internal; proxy_pass http://@SECOND@; proxy_cache z; proxy_cache_valid any 1h; proxy_ignore_headers Set-Cookie Cache-Control; }
        location /application { internal; fastcgi_pass 127.0.0.1:@APP@; }
        location /tried/ { internal; try_files $uri @second; }
        location /paged/ { internal; error_page 404 = @second; return 404; }
        location @second { proxy_pass http://@SECOND@; }
        location /third { internal; proxy_pass http://@ORIGIN@; proxy_set_header X-Says 'X-Accel-Redirect: /second|Set-Cookie: third=3; Path=/|Content-Type: third/type'; }"
};

fn says(request: &Request) -> Vec<Step> {
    let fields: Vec<_> = request
        .field("x-says")
        .unwrap_or_default()
        .split('|')
        .filter_map(|line| line.split_once(':'))
        .collect();
    let trimmed: Vec<_> = fields.iter().map(|(name, value)| (*name, value.trim())).collect();
    answer(200, &trimmed, b"not for the client")
}

/// Also returns what must live as long as the server.
fn start() -> (Server, impl Sized) {
    let origin = Origin::start(says);
    let second = Origin::start(|request| {
        let fields = [
            ("Content-Type", "image/png"),
            ("Set-Cookie", "second=2; Path=/"),
            ("Cache-Control", "max-age=9"),
            ("Content-Disposition", "inline"),
            ("Expires", "Fri, 01 Jan 2038 00:00:00 GMT"),
        ];
        let untyped = if request.target().ends_with("untyped") { 1 } else { 0 };
        answer(200, &fields[untyped..], b"second")
    });
    let application = application::Application::start(|asked| {
        application::answer(match asked.param("LEADS") {
            "" => "Content-Type: image/gif\r\n\r\nGIF",
            _ => "X-Accel-Redirect: /pub/../priv/a\r\n\r\n",
        })
    });
    let server = Server::start(
        SERVER,
        &[
            ("ORIGIN", &origin.address()),
            ("SECOND", &second.address()),
            ("APP", &application.port().to_string()),
        ],
    );
    for folder in ["pub", "priv"] {
        std::fs::create_dir(server.prefix().join(folder)).expect("own directory");
    }
    server.prefix().write("pub/a.pdf", "%PDF");
    server.prefix().write("pub/none", "x");
    server.prefix().write("pub/..x", "x");
    (server, (origin, second, application))
}

fn got(server: &Server, path: &str, said: &str) -> Answer {
    server.get_with(path, &[("X-Says", said)])
}

fn all<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let lines = answer.head.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}

#[test]
fn a_uri_with_dot_dot_leads_nowhere_however_it_is_written() {
    let (server, _upstreams) = start();
    for (uri, status) in [
        ("/pub/a.pdf", 200),
        ("/pub/./a.pdf", 200),
        ("/pub/..x", 200),
        ("/pub/a%2Epdf?../x", 200),
        ("/pub/../priv/a", 404),
        ("/pub/%2e%2e/priv/a", 404),
        ("/pub/..%2fpriv/a", 404),
        ("/pub/%2E./priv/a?x", 404),
        ("/pub/a/../../priv/a", 404),
        ("/pub/..", 404),
        ("/pub/x/..", 404),
        ("/..", 404),
        ("/pub/a%00", 404),
        ("?x", 404),
        ("https://host/priv/a", 404),
    ] {
        for from in ["/x", "/stored"] {
            let said = format!("X-Accel-Redirect: {uri}");
            let got = got(&server, from, &said);
            assert_eq!(got.status, status, "{uri} from {from}: {}", got.text());
            assert!(!got.text().contains("secret"), "{uri}");
        }
    }
    assert_eq!(got(&server, "/fastcgi", "x").status, 404);
    let line = "unsafe URI \"/pub/../priv/a\" was detected";
    wait::until("the error log names the URI", || server.log().contains(line));
    assert_eq!(got(&server, "/x", "X-Accel-Redirect: /priv/a").text(), "secret");
}

#[test]
fn the_slashes_of_a_uri_within_a_uri_stay() {
    let (server, _upstreams) = start();
    for (uri, expected) in [
        ("/fetch/https://cdn.example/a/b?x=1", "https|cdn.example|a/b|x=1"),
        ("/fetch/http://cdn.example/a//b", "http|cdn.example|a//b|"),
        ("/fetch/https%3A%2F%2Fcdn.example/a%20b", "https|cdn.example|a b|"),
        ("/fetch/https:/cdn.example/a", "merged"),
    ] {
        assert_eq!(got(&server, "/x", &format!("X-Accel-Redirect: {uri}")).text(), expected, "{uri}");
    }
}

#[test]
fn an_empty_type_leaves_the_type_to_the_location_that_it_leads_to() {
    let (server, _upstreams) = start();
    for (uri, said, expected) in [
        ("/pub/a.pdf", "|Content-Type:", Some("application/pdf")),
        ("/pub/a.pdf", "", Some("application/pdf")),
        ("/pub/a.pdf", "|Content-Type: a/b; charset=utf-8", Some("a/b; charset=utf-8")),
        ("/pub/none", "|Content-Type:", Some("text/plain")),
        ("/untyped/none", "|Content-Type:", None),
        ("/untyped/none", "|Content-Type: a/b", Some("a/b")),
        ("/text", "|Content-Type:", Some("text/css")),
        ("/text", "|Content-Type: a/b", Some("a/b")),
        ("/list/", "|Content-Type: a/b", Some("text/html")),
        ("/second/untyped", "|Content-Type:", None),
        ("/second/untyped", "|Content-Type: a/b", Some("a/b")),
    ] {
        let said = format!("X-Accel-Redirect: {uri}{said}");
        let answer = got(&server, "/x", &said);
        assert_eq!((answer.status, answer.field("content-type")), (200, expected), "{said}");
        let mut stream = Frames::connect(server.port());
        let answer = stream.ask("/x", &[("x-says", &said)]);
        assert_eq!((answer.status, answer.field("content-type")), (200, expected), "{said} over HTTP/2");
    }
    for (media, expected) in [("|Content-Type: a/b", "a/b"), ("|Content-Type:", ""), ("", "")] {
        assert_eq!(got(&server, "/x", &format!("X-Accel-Redirect: /tell{media}")).text(), expected);
    }
    let part = server.get_with(
        "/x",
        &[("X-Says", "X-Accel-Redirect: /pub/a.pdf|Content-Type: a/b"), ("Range", "bytes=0-0,2-2")],
    );
    assert!(part.field("content-type").is_some_and(|media| media.starts_with("multipart/byteranges")));
    assert!(part.text().contains("Content-Type: a/b"), "{}", part.text());
}

#[test]
fn a_second_upstream_names_its_own_type_and_adds_its_fields_to_those_of_the_first() {
    let (server, _upstreams) = start();
    let first = "|Content-Type: text/html|Set-Cookie: first=1; Path=/|Cache-Control: private|Content-Disposition: attachment|Expires: Thu, 01 Jan 2037 00:00:00 GMT";
    for (uri, media) in [
        ("/second", "image/png"),
        ("/second/stored", "image/png"),
        ("/second/stored", "image/png"),
        ("/tried/none", "image/png"),
        ("/paged/", "image/png"),
        ("@second", "image/png"),
        ("/application", "image/gif"),
        ("/second/untyped", "text/html"),
    ] {
        let answer = got(&server, "/x", &format!("X-Accel-Redirect: {uri}{first}"));
        assert_eq!(all(&answer, "content-type"), [media], "{uri}");
        if uri == "/application" {
            assert_eq!(all(&answer, "cache-control"), ["private"], "{uri}");
            continue;
        }
        assert_eq!(all(&answer, "set-cookie"), ["first=1; Path=/site", "second=2; Path=/site"], "{uri}");
        assert_eq!(all(&answer, "cache-control"), ["private", "max-age=9"], "{uri}");
        assert_eq!(all(&answer, "content-disposition"), ["attachment", "inline"], "{uri}");
        assert_eq!(all(&answer, "expires").len(), 2, "{uri}");
    }
    let answer = got(&server, "/x", &format!("X-Accel-Redirect: /third{first}"));
    let cookies = ["first=1; Path=/site", "third=3; Path=/site", "second=2; Path=/site"];
    assert_eq!(
        (all(&answer, "set-cookie"), answer.field("content-type")),
        (cookies.to_vec(), Some("image/png"))
    );
}

const CHARSETS: &str = site! {
    http "proxy_cache_path @DIR@/cache keys_zone=z:1m; proxy_cache_valid any 1h;
        charset_map koi8-r latin1 { E1 C1; }"
    server "http2 on; charset utf-8; proxy_set_header X-Says $http_x_says;
        location / { proxy_pass http://@ORIGIN@; }
        location /off { charset off; proxy_pass http://@ORIGIN@; }
        location /stored { charset off; proxy_cache z; proxy_cache_key $http_x_says; proxy_pass http://@ORIGIN@; }
        location /overrides { override_charset on; proxy_pass http://@ORIGIN@; }
        location /ignored { proxy_ignore_headers X-Accel-Charset; proxy_pass http://@ORIGIN@; }
        location /application { charset off; fastcgi_pass 127.0.0.1:@APP@; }
        location /pub/ { internal; charset windows-1251; alias @DIR@/; }"
};

#[test]
fn an_upstream_names_the_charset_of_its_response_or_that_there_is_none() {
    let origin = Origin::start(says);
    let application = application::Application::start(|_| {
        application::answer("X-Accel-Charset: KOI8-R\r\nContent-Type: text/html\r\n\r\nhello")
    });
    let port = application.port().to_string();
    let server = Server::start(CHARSETS, &[("ORIGIN", &origin.address()), ("APP", &port)]);
    server.prefix().write("page.html", "page");
    let told = [
        ("X-Accel-Charset: koi8-r|Content-Type: text/html", "text/html; charset=koi8-r"),
        ("X-Accel-Charset: utf-8|Content-Type: image/png", "image/png; charset=utf-8"),
        ("X-Accel-Charset: off|Content-Type: text/html", "text/html"),
        ("X-Accel-Charset: unheard-of|Content-Type: text/html", "text/html"),
        (
            "X-Accel-Charset: koi8-r|X-Accel-Redirect: /pub/page.html|Content-Type: text/html",
            "text/html; charset=koi8-r",
        ),
        ("X-Accel-Charset: off|X-Accel-Redirect: /pub/page.html|Content-Type: text/html", "text/html"),
        ("X-Accel-Redirect: /pub/page.html|Content-Type: text/html", "text/html; charset=windows-1251"),
    ];
    for (said, expected) in told {
        for path in ["/", "/off", "/stored", "/stored", "/overrides"] {
            let answer = got(&server, path, said);
            assert_eq!(
                (answer.status, answer.field("content-type")),
                (200, Some(expected)),
                "{path}: {said}"
            );
            assert_eq!(answer.field("x-accel-charset"), None);
            let mut stream = Frames::connect(server.port());
            let number = stream.get_with(path, &[("x-says", said)]);
            assert_eq!(
                stream.answer(number).field("content-type"),
                Some(expected),
                "{path}: {said} over HTTP/2"
            );
        }
    }
    for (path, said, expected) in [
        ("/ignored", "X-Accel-Charset: koi8-r|Content-Type: text/html", Some("text/html; charset=utf-8")),
        ("/", "X-Accel-Charset: |Content-Type: text/html", Some("text/html; charset=utf-8")),
        ("/off", "X-Accel-Charset: |Content-Type: text/html", Some("text/html")),
        ("/", "X-Accel-Charset: koi8-r", None),
        ("/application", "", Some("text/html; charset=KOI8-R")),
        (
            "/off",
            "X-Accel-Charset: koi8-r|Content-Type: text/html; charset=utf-8",
            Some("text/html; charset=utf-8"),
        ),
    ] {
        assert_eq!(got(&server, path, said).field("content-type"), expected, "{path}: {said}");
    }
    let line = "unknown charset \"unheard-of\" to override";
    wait::until("the error log names the charset", || server.log().contains(line));
    let latin = got(&server, "/off", "X-Accel-Charset: latin1|Content-Type: text/html; charset=koi8-r");
    assert_eq!(latin.field("content-type"), Some("text/html; charset=latin1"), "and it is converted");
}

#[test]
fn what_an_upstream_says_of_ranges_is_left_to_a_response_that_says_nothing_of_its_own() {
    let (server, _upstreams) = start();
    for (uri, range, expected) in [
        ("/text", None, vec!["parrots"]),
        ("/tell", None, vec!["parrots"]),
        // A file has its own, and a part of it none.
        ("/pub/a.pdf", None, vec!["bytes"]),
        ("/pub/a.pdf", Some("bytes=0-0"), vec![]),
        ("/pub/a.pdf", Some("bytes=9-"), vec![]),
        // A second upstream that says nothing leaves that of the first.
        ("/second", None, vec!["parrots"]),
    ] {
        let said = format!("X-Accel-Redirect: {uri}|Accept-Ranges: parrots");
        let mut fields = vec![("X-Says", said.as_str())];
        fields.extend(range.map(|range| ("Range", range)));
        let answer = server.get_with("/x", &fields);
        assert_eq!(all(&answer, "accept-ranges"), expected, "{uri} {range:?}: {}", answer.head);
    }
}
