//! `valid_referers` and `$invalid_referer`: which pages may refer to a file.

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        map $arg_as $copied { default $invalid_referer; }
        server { listen 127.0.0.1:@PORT@; server_name example.com .tree.example www.tail.* ~^re\\d+$;
            referer_hash_max_size 1024; referer_hash_bucket_size 128;
            valid_referers none blocked *.above.example ~^by-above;
            location /names { valid_referers server_names; return 200 \"$invalid_referer\"; }
            location /listed { valid_referers www.a.example *.b.example c.* .d.example; return 200 \"$invalid_referer\"; }
            location /paths { valid_referers a.example/img/ *.b.example/x c.*/y; return 200 \"$invalid_referer\"; }
            location /none { valid_referers none a.example; return 200 \"$invalid_referer\"; }
            location /blocked { valid_referers blocked a.example; return 200 \"$invalid_referer\"; }
            location /regex { valid_referers ~google\\. ~(?-i)CASE; return 200 \"$invalid_referer\"; }
            location /twice { valid_referers a.example; valid_referers none b.example; return 200 \"$invalid_referer\"; }
            location /above { return 200 \"$invalid_referer\";
                location /above/nested { return 200 \"$invalid_referer\"; } }
            location /long { valid_referers ~.*; return 200 \"$invalid_referer\"; }
            location /set { valid_referers a.example; set $invalid_referer maybe; return 200 \"$invalid_referer\"; }
            location /made { valid_referers a.example; return 200 \"$copied\"; }
            location /order { valid_referers *.b.example/x www.b.example; return 200 \"$invalid_referer\"; }
        }
        server { listen 127.0.0.1:@PORT@; server_name plain; return 200 \"$invalid_referer\"; }
        server { listen 127.0.0.1:@PORT@; server_name early; valid_referers server_names; return 200 \"$invalid_referer\";
            server_name late; }
    }";

const CASES: &[(&str, Option<&str>, bool)] = &[
    ("/names", None, false),
    ("/names", Some("http://example.com"), true),
    ("/names", Some("HTTPS://EXAMPLE.com:8080/a?b"), true),
    ("/names", Some("http://www.example.com/"), false),
    ("/names", Some("http://tree.example/"), true),
    ("/names", Some("http://a.b.tree.example/"), true),
    ("/names", Some("http://www.tail.org/"), true),
    ("/names", Some("http://re42/some/"), true),
    ("/names", Some("http://re42x/some/"), false),
    ("/names", Some("example.com"), false),
    ("/names", Some("ftp://example.com/"), false),
    ("/names", Some("http://by-above/"), true),
    ("/listed", Some("http://www.a.example"), true),
    ("/listed", Some("http://a.example/"), false),
    ("/listed", Some("http://x.b.example/"), true),
    ("/listed", Some("http://b.example/"), false),
    ("/listed", Some("http://c.org/"), true),
    ("/listed", Some("http://x.c.org/"), false),
    ("/listed", Some("http://d.example/"), true),
    ("/listed", Some("http://x.d.example/"), true),
    ("/listed", Some("http://www.a.example.org/"), false),
    ("/listed", Some("http://user@www.a.example/"), false),
    ("/listed", Some("http://example.com/"), false),
    ("/listed", Some("http://x.above.example/"), false),
    ("/listed", None, false),
    ("/listed", Some(""), false),
    ("/paths", Some("http://a.example/img/b"), true),
    ("/paths", Some("http://a.example:81/img/b"), true),
    ("/paths", Some("http://a.example/IMG/b"), false),
    ("/paths", Some("http://a.example/im"), false),
    ("/paths", Some("http://a.example"), false),
    ("/paths", Some("http://a.example?/img/"), false),
    ("/paths", Some("http://w.b.example/xyz"), true),
    ("/paths", Some("http://c.org/y"), true),
    ("/paths", Some("http://c.org/z"), false),
    ("/none", None, true),
    ("/none", Some(""), false),
    ("/none", Some("-"), false),
    ("/none", Some("http://a.example/"), true),
    ("/blocked", None, false),
    ("/blocked", Some(""), true),
    ("/blocked", Some("a.example"), true),
    ("/blocked", Some("http://su"), true),
    ("/blocked", Some("http://other.example/"), false),
    ("/regex", Some("http://www.GOOGLE.com/search"), true),
    ("/regex", Some("http://a.example/google.html"), true),
    ("/regex", Some("http://case.example/"), false),
    ("/regex", Some("http://CASE.example/"), true),
    ("/regex", Some("www.google.com/search"), false),
    ("/twice", None, true),
    ("/twice", Some("http://a.example/"), true),
    ("/twice", Some("http://b.example/"), true),
    ("/twice", Some("http://c.example/"), false),
    ("/above", None, true),
    ("/above", Some("x"), true),
    ("/above", Some("http://x.above.example/"), true),
    ("/above/nested", Some("http://x.above.example/"), true),
    ("/above/nested", Some("http://example.com/"), false),
    ("/above/nested", Some("http://by-above.example/"), true),
    ("/made", Some("http://a.example/"), true),
    ("/made", Some("http://b.example/"), false),
    ("/order", Some("http://www.b.example/y"), true),
    ("/order", Some("http://web.b.example/y"), false),
];

#[test]
fn a_referer_is_valid_as_in_nginx() {
    let server = Server::start(SITE, &[]);
    let told = |host: &str, path: &str, referer: Option<&str>| {
        let referer = referer.map(|referer| ("Referer", referer));
        let fields: Vec<(&str, &str)> = [("Host", host)].into_iter().chain(referer).collect();
        server.get_with(path, &fields).text()
    };
    for (path, referer, is_valid) in CASES {
        let expected = if *is_valid { "" } else { "1" };
        assert_eq!(told("example.com", path, *referer), expected, "{path} {referer:?}");
    }
    for length in [255, 256, 257] {
        let long = format!("http://{}", "a".repeat(length));
        let expected = if length > 256 { "1" } else { "" };
        assert_eq!(told("example.com", "/long", Some(&long)), expected, "{length}");
    }
    assert_eq!(told("example.com", "/set", None), "maybe");
    assert_eq!(told("plain", "/", Some("http://a.example/")), "");
    assert_eq!(told("early", "/", Some("http://late/a")), "");
    assert_eq!(told("early", "/", Some("http://latter/a")), "1");
}

#[test]
fn a_page_that_may_not_refer_gets_nothing_out_of_the_cache_either() {
    let origin = Origin::start(|_| answer(200, &[("Cache-Control", "max-age=60")], b"picture"));
    let site = site! {
        http "proxy_cache_path @DIR@/cache keys_zone=pages:1m;"
        server "server_name site.example;
            location /img/ {
                valid_referers none blocked server_names *.friend.example;
                if ($invalid_referer) { return 403; }
                proxy_pass http://@ORIGIN@; proxy_cache pages;
            }"
    };
    let server = Server::start(site, &[("ORIGIN", &origin.address())]);
    let status = |referer: &str| server.get_with("/img/a.png", &[("Referer", referer)]).status;
    assert_eq!(status("http://thief.example/"), 403);
    assert_eq!((origin.count(), status("http://site.example/page")), (0, 200));
    assert_eq!((status("http://thief.example/"), status("https://www.friend.example:444/")), (403, 200));
    assert_eq!((server.get("/img/a.png").status, origin.count()), (200, 1));
}
