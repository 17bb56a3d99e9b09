//! What goes by what the answer itself says: `expires` and `charset` by a `map` of `$sent_http_content_type`.

use millstream_tests::origin::{Origin, Request, answer};
use millstream_tests::server::Server;

const SITE: &str = site! {
    main "worker_processes 1;"
    http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=answers:1m;
        types { text/html html; text/css css; image/png png; }
        map $sent_http_content_type $lifetime {
            default off;
            text/html epoch;
            text/css max;
            ~image/ 7d;
            application/json 5s;
        }
        map $sent_http_content_type $alphabet {
            default \"\";
            ~^text/ utf-8;
        }
        expires $lifetime;
        charset $alphabet;
        charset_types *;"
    server "root @DIR@;
        location / { }
        location /api/ { proxy_pass http://@ORIGIN@; }
        location /cached/ {
            proxy_pass http://@ORIGIN@;
            proxy_cache answers;
            proxy_cache_valid 200 1m;
            proxy_ignore_headers Cache-Control Expires;
        }"
};

#[test]
fn lifetime_and_charset_go_by_the_type_of_the_answer() {
    let origin = Origin::start(|request: &Request| {
        let media = if request.target().ends_with("json") { "application/json" } else { "text/html" };
        answer(200, &[("Content-Type", media), ("Cache-Control", "max-age=60")], b"made")
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    for name in ["page.html", "style.css", "image.png", "other"] {
        server.prefix().write(name, "a file");
    }
    let html = ("text/html; charset=utf-8", Some("no-cache"));
    let json = ("application/json", Some("max-age=5"));
    for (path, (media, control)) in [
        ("/page.html", html),
        ("/style.css", ("text/css; charset=utf-8", Some("max-age=315360000"))),
        ("/image.png", ("image/png", Some("max-age=604800"))),
        ("/other", ("text/plain; charset=utf-8", None)),
        ("/api/page", html),
        ("/api/json", json),
        ("/cached/page", html),
        ("/cached/page", html),
        ("/cached/json", json),
        ("/cached/json", json),
    ] {
        let got = server.get(path);
        let said = (got.field("content-type").unwrap_or_default(), got.field("cache-control"));
        assert_eq!((got.status, said), (200, (media, control)), "{path}");
    }
    assert_eq!(origin.count(), 4);
}
