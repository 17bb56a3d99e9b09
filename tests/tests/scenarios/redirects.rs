//! Where a client is sent to, and what stands in for an error of a page for an error.

use millstream_tests::origin::Origin;
use millstream_tests::server::Server;
use millstream_tests::wait;

const REDIRECTS: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        server {
            listen 127.0.0.1:@PORT@;
            server_name first.example second.example;
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
            location /loop { recursive_error_pages on; error_page 404 500 /loop; return 404; }
        }
    }";

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
        let mut client = server.client();
        let head = match host {
            "" => format!("GET {path} HTTP/1.0\r\n\r\n"),
            "." => format!("GET {path} HTTP/1.0\r\nHost: .\r\n\r\n"),
            host => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        };
        client.send(head).expect("sent");
        let answer = client.answer().expect("an answer");
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
