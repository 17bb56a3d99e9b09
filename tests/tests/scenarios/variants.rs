//! How many variants of one response a cache has: spellings that ask for the same, and arguments that change nothing, make none.

use millstream_tests::origin::{Origin, Request, answer};
use millstream_tests::server::Server;

/// Codes as the request allows, zstd before br before gzip; the body names the coding and the
/// Accept-Encoding.
fn coding() -> Origin {
    Origin::start(|request: &Request| {
        let accepted = request.field("accept-encoding").unwrap_or("none").to_owned();
        let coding = ["zstd", "br", "gzip"]
            .into_iter()
            .find(|coding| accepted.split(',').any(|one| one.trim() == *coding));
        let body = format!("{} of {accepted}", coding.unwrap_or("plain"));
        let mut fields = vec![("Cache-Control", "max-age=60"), ("Vary", "Accept-Encoding")];
        fields.extend(coding.map(|coding| ("Content-Encoding", coding)));
        answer(200, &fields, body.as_bytes())
    })
}

fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        main "worker_processes 2;"
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=zone:1m;"
        server "add_header X-Cache-Status $upstream_cache_status;
            location / { proxy_pass http://@ORIGIN@; proxy_cache zone; @DIRECTIVES@ }
            location /free/ { proxy_pass http://@ORIGIN@; }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

const BROWSERS: [&str; 6] = [
    "gzip, deflate, br, zstd",
    "gzip, deflate, br",
    "br, gzip;q=0.8, deflate;q=0.5",
    "deflate, gzip, br, zstd",
    "br;q=1.0, gzip;q=0.8, *;q=0.1",
    "gzip,br",
];

#[test]
fn browsers_that_write_accept_encoding_differently_share_a_response_that_all_of_them_take() {
    skip_on_nginx!();
    let origin = coding();
    let server = start(&origin, "");
    for (at, accepted) in BROWSERS.into_iter().enumerate() {
        let got = server.get_with("/", &[("Accept-Encoding", accepted)]);
        assert_eq!(
            (got.text().as_str(), got.cache_status()),
            ("br of gzip, br", if at == 0 { "MISS" } else { "HIT" }),
            "{accepted}"
        );
    }
    for (accepted, expected) in [
        ("gzip, deflate", "gzip of gzip"),
        ("gzip;q=0.5", "gzip of gzip"),
        ("br;q=0, gzip", "gzip of gzip"),
        ("zstd", "zstd of zstd"),
        ("gzip, zstd", "zstd of gzip, zstd"),
        ("deflate", "plain of deflate"),
        ("identity", "plain of identity"),
        ("compress, br", "br of compress, br"),
        ("gzip, identity;q=0", "gzip of gzip, identity;q=0"),
    ] {
        for _ in 0..2 {
            assert_eq!(server.get_with("/", &[("Accept-Encoding", accepted)]).text(), expected, "{accepted}");
        }
    }
    assert_eq!(server.get("/").text(), "plain of none");
    assert_eq!(origin.count(), 9, "each class once");
    // Where nothing is stored it is nobody's business.
    let free = server.get_with("/free/", &[("Accept-Encoding", "gzip, deflate, br, zstd")]);
    assert_eq!(free.text(), "zstd of gzip, deflate, br, zstd");
}

#[test]
fn a_coding_that_is_named_to_be_refused_is_stored_for_no_client_that_refuses_it() {
    skip_on_nginx!();
    for directives in ["", "proxy_set_header Accept-Encoding $http_accept_encoding;"] {
        // As small APIs do: whichever name is anywhere in the field.
        let origin = Origin::start(|request: &Request| {
            let accepted = request.field("accept-encoding").unwrap_or("none");
            let coding = ["zstd", "br", "gzip"].into_iter().find(|coding| accepted.contains(coding));
            let mut fields = vec![("Cache-Control", "max-age=60"), ("Vary", "Accept-Encoding")];
            fields.extend(coding.map(|coding| ("Content-Encoding", coding)));
            answer(200, &fields, b"x")
        });
        let server = start(&origin, directives);
        for (at, (one, other)) in [
            ("gzip;q=0", "identity"),
            ("gzip;q=0", ""),
            ("identity;q=1, gzip;q=0", "identity, br;q=0"),
            ("deflate, gzip;q=0", "deflate"),
            ("deflate;q=0.5, zstd;q=0.0", "deflate"),
            ("*, gzip;q=0, br;q=0, zstd;q=0", "deflate"),
            ("gzip, br;q=0", "gzip"),
            ("gzip, deflate, br, zstd;q=0", "gzip, br"),
            ("gzip, br;q=0, identity;q=0", "gzip, identity;q=0"),
            ("*;q=0, gzip;q=0", "*;q=0"),
            ("compress, gzip;q=0", "compress"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = format!("/{at}");
            server.get_with(&path, &[("Accept-Encoding", one)]);
            let got = server.get_with(&path, &[("Accept-Encoding", other)]);
            let coding = got.field("content-encoding");
            assert!(
                coding.is_none_or(|coding| other.split(", ").any(|taken| taken == coding)),
                "{directives} {one}, then {other}: {coding:?} {}",
                got.cache_status()
            );
        }
    }
}

#[test]
fn what_a_configuration_makes_of_accept_encoding_is_taken_by_every_client_that_shares_it() {
    skip_on_nginx!();
    for (made, expected) in [
        ("$http_accept_encoding", "br of gzip, br"),
        ("\"$http_accept_encoding, foo\"", "br of gzip, br"),
        ("gzip", "gzip of gzip"),
        ("\"\"", "plain of none"),
    ] {
        let origin = coding();
        let server = start(&origin, &format!("proxy_set_header Accept-Encoding {made};"));
        for accepted in BROWSERS {
            assert_eq!(
                server.get_with("/", &[("Accept-Encoding", accepted)]).text(),
                expected,
                "{made} {accepted}"
            );
        }
        assert_eq!(origin.count(), 1, "{made}");
    }
}

#[test]
fn arguments_that_are_ignored_are_sent_on_and_split_no_entry() {
    skip_on_nginx!();
    let ignored = "proxy_cache_ignore_args utm_* fbclid gclid;";
    for key in [
        "",
        "proxy_cache_key $request_uri;",
        "proxy_cache_key $uri$is_args$args;",
        "proxy_cache_key \"$uri?$query_string\";",
        "proxy_cache_key $request;",
    ] {
        let origin = Origin::start(|request| {
            answer(200, &[("Cache-Control", "max-age=60")], request.target().as_bytes())
        });
        let server = start(&origin, &format!("{ignored} {key}"));
        for (targets, first) in [
            (
                &["/x?utm_source=a&b=1", "/x?b=1", "/x?b=1&fbclid=z", "/x?gclid=1&b=1&utm_medium=m"][..],
                "/x?utm_source=a&b=1",
            ),
            (&["/y", "/y?utm_source=a", "/y?gclid=1&UTM_campaign=c"], "/y"),
            (&["/z?b=%201&a=2", "/z?utm_x&b=%201&a=2"], "/z?b=%201&a=2"),
        ] {
            for target in targets {
                assert_eq!(server.get(target).text(), first, "{key} {target}");
            }
        }
        for apart in [
            "/x?b=2",
            "/x?a=2&b=1",
            "/x?b=1&b=1",
            "/z?a=2&b=%201",
            "/z?b=+1&a=2",
            "/x?c=1&utm_source=a",
            // To an API that takes `;` for a separator, what follows it is another argument.
            "/x?b=1&utm_source=a;b=2",
            "/y?gclid;b=2",
        ] {
            let told = server.get(apart);
            assert_eq!((told.text().as_str(), told.cache_status()), (apart, "MISS"), "{key}");
        }
        assert_eq!(origin.count(), 11, "{key}");
    }
}

#[test]
fn a_change_and_a_purge_of_a_url_with_ignored_arguments_are_of_its_entry() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"x");
    let server = start(&origin, "proxy_cache_ignore_args utm_*; proxy_cache_purge_allow local;");
    for method in ["POST", "PURGE"] {
        server.get("/a?b=1");
        assert_eq!(server.get("/a?b=1&utm_source=s").cache_status(), "HIT");
        let told = server.request(method, "/a?utm_source=other&b=1", &[("Content-Length", "0")]);
        assert_eq!(told.status, 200, "{method}: {}", told.text());
        assert_eq!(server.get("/a?b=1").cache_status(), "MISS", "{method}");
    }
}

#[test]
fn serve_ignores_arguments_that_are_named() {
    skip_on_nginx!();
    for (options, expected) in [(&["--ignore-args", "utm_*,gclid"][..], 1), (&[], 3)] {
        let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"x");
        let url = format!("http://{}", origin.address());
        let (port, _process) = super::serve_url::serve(&[&[url.as_str()], options].concat());
        for target in ["/a", "/a?utm_source=s", "/a?gclid=1"] {
            assert_eq!(millstream_tests::client::get(port, target).status, 200);
        }
        assert_eq!(origin.count(), expected, "{options:?}");
    }
}
