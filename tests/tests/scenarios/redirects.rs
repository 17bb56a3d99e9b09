//! Where a client is sent to, and what stands in for an error of a page for an error.

use millstream_tests::origin::Origin;
use millstream_tests::server::Server;
use millstream_tests::wait;

const REDIRECTS: &str = site! {
    main "worker_processes 1;"
    server "server_name first.example second.example;
        error_page 400 /usual;
        location /usual { return 301 /to; }
        location /path { absolute_redirect off; return 301 /to; }
        location /portless { port_in_redirect off; return 302 /to; }
        location /named { server_name_in_redirect on; return 302 /to; }
        location /both { server_name_in_redirect on; port_in_redirect off; location /both/slash/ { proxy_pass http://127.0.0.1:1; } }
        location /url { absolute_redirect off; return 302 http://else.example/to; }
        location /rewritten { absolute_redirect off; rewrite ^ /to?a=b permanent; }
        location /proxied { absolute_redirect off; proxy_redirect http://inside/ /outside/; proxy_pass http://@ORIGIN@; }
        location /page { absolute_redirect off; error_page 404 =303 http://else.example/; return 404; }
        location /first { error_page 404 = /second; return 404; }
        location /second { error_page 404 = /third; return 404; }
        location /again { recursive_error_pages on; error_page 404 = /second; return 404; }
        location /both-pages { recursive_error_pages on; error_page 404 = /middle; return 404; }
        location /middle { recursive_error_pages on; error_page 404 =410 /third; return 404; }
        location /third { return 200 third; }
        location /loop { recursive_error_pages on; error_page 404 500 /loop; return 404; }"
};

#[test]
fn a_path_becomes_a_url_as_the_location_says() {
    let origin = Origin::fixed(302, &[("Location", "http://inside/to")], b"");
    let server = Server::start(REDIRECTS, &[("ORIGIN", &origin.address())]);
    let port = server.port();
    for (path, host, expected) in [
        ("/usual", "second.example", format!("http://second.example:{port}/to")),
        ("/usual", "", format!("http://127.0.0.1:{port}/to")),
        ("/usual", ".", format!("http://127.0.0.1:{port}/to")),
        ("/path", "second.example", "/to".into()),
        ("/portless", "second.example", "http://second.example/to".into()),
        ("/named", "second.example", format!("http://first.example:{port}/to")),
        ("/both/slash", "second.example", "http://first.example/both/slash/".into()),
        ("/url", "a", "http://else.example/to".into()),
        ("/rewritten", "a", "/to?a=b".into()),
        ("/proxied", "a", "/outside/to".into()),
        ("/page", "a", "http://else.example/".into()),
    ] {
        let head = match host {
            "" => format!("GET {path} HTTP/1.0\r\n\r\n"),
            "." => format!("GET {path} HTTP/1.0\r\nHost: .\r\n\r\n"),
            host => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        };
        let answer = server.ask(head);
        assert_eq!(answer.field("location"), Some(&*expected), "{path} of {host:?}");
    }
}

#[test]
fn an_error_of_a_page_for_an_error_has_a_page_where_the_location_says_so() {
    let server = Server::start(REDIRECTS, &[("ORIGIN", "127.0.0.1:1")]);
    for (path, status, text) in [
        ("/first", 404, "404 Not Found"),
        ("/second", 200, "third"),
        ("/again", 200, "third"),
        ("/both-pages", 410, "third"),
        ("/loop", 500, "500 Internal Server Error"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.text().contains(text), "{path}: {}", answer.text());
    }
    wait::until("it is told", || server.log().contains("redirection cycle"));
}

const REFRESHES: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off; absolute_redirect off; msie_refresh on;
        server { listen 127.0.0.1:@PORT@; root @DIR@;
            location / { return 301 text; }
            location /quoted { return 302 \"/a b'\\\"<%>\"; }
            location /page { return 301; error_page 301 text; }
            location /other { return 307 text; }
            location /off { msie_refresh off; return 301 text; }
            location /folder { }
            location /proxied { proxy_pass http://@ORIGIN@; }
        }
    }";

#[test]
fn a_client_with_msie_is_led_on_by_a_page_where_that_is_wanted() {
    let origin = Origin::fixed(302, &[("Location", "http://inside/to")], b"");
    let server = Server::start(REFRESHES, &[("ORIGIN", &origin.address())]);
    std::fs::create_dir(server.prefix().join("folder")).expect("own directory");
    let msie = ("User-Agent", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)");
    for (path, status, url) in [
        ("/", 200, "text"),
        ("/quoted", 200, "/a%20b%27%22%3C%%3E"),
        ("/page", 200, "text"),
        ("/folder", 200, "/folder/"),
        ("/other", 307, ""),
        ("/off", 301, ""),
        ("/proxied", 302, ""),
    ] {
        let refreshed = server.get_with(path, &[msie]);
        assert_eq!(
            (refreshed.status, refreshed.field("Location").is_none()),
            (status, status == 200),
            "{path}"
        );
        let expected = format!("<meta http-equiv=\"Refresh\" content=\"0; URL={url}\">");
        assert_eq!(refreshed.text().contains(&expected), status == 200, "{path}: {}", refreshed.text());
        let other = server.get_with(path, &[("User-Agent", "Mozilla/5.0 Opera MSIE 6.0")]);
        assert!((301..=307).contains(&other.status) && other.field("Location").is_some(), "{path}");
    }
}
