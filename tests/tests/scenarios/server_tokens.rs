//! `server_tokens`: what the Server field and the built-in pages say.

use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;

const SITE: &str = site! {
    http "proxy_cache_path @DIR@/cache keys_zone=zone:1m; server_tokens 'shop';"
    server "http2 on;
        location /fixed { return 404; }
        location /usual { server_tokens off; return 404; }
        location /none { server_tokens ''; return 404; }
        location /made { server_tokens 'shop for $arg_who'; return 404; }
        location /empty { server_tokens $arg_who; return 404; }
        location /stored { server_tokens 'shop for $arg_who'; proxy_pass http://@ORIGIN@; proxy_cache zone; proxy_cache_key $uri;
            proxy_cache_valid 1h; }
        location /stored/fixed { proxy_pass http://@ORIGIN@; proxy_cache zone; proxy_cache_key $uri; proxy_cache_valid 1h; }"
};

#[test]
fn a_string_is_what_the_server_field_and_the_pages_say() {
    skip_on_nginx!();
    let origin = Origin::start(|_| answer(200, &[], b"stored"));
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    for (path, field, page) in [
        ("/fixed", Some("shop"), Some("<hr><center>shop</center>")),
        ("/usual", Some("millstream"), Some("<hr><center>millstream</center>")),
        ("/none", None, Some("404 Not Found")),
        ("/made?who=you", Some("shop for you"), Some("<hr><center>shop for you</center>")),
        ("/made?who=<b>&", Some("shop for <b>"), Some("<hr><center>shop for &lt;b&gt;</center>")),
        ("/empty?who=me", Some("me"), Some("<hr><center>me</center>")),
        ("/empty", None, Some("404 Not Found")),
        // The second of each is a hit.
        ("/stored?who=a", Some("shop for a"), None),
        ("/stored?who=b", Some("shop for b"), None),
        ("/stored/fixed", Some("shop"), None),
        ("/stored/fixed", Some("shop"), None),
    ] {
        let got = server.get(path);
        assert_eq!(got.field("server"), field, "{path}");
        assert!(got.text().contains(page.unwrap_or("stored")), "{path}: {}", got.text());
        assert!(field.is_some() || !got.text().contains("<hr>"), "{path}: {}", got.text());
        assert_eq!(frames.ask(path, &[]).field("server"), field, "{path} over HTTP/2");
    }
    assert_eq!(origin.count(), 2, "the others were hits");
}
