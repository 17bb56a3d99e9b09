//! Clients that say odd things: names of fields, too many of them, and browsers that keep no connection.

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        server {
            listen 127.0.0.1:@PORT@; server_name plain;
            location / { proxy_pass http://@ORIGIN@; }
            location /safari { keepalive_disable safari; return 200; }
            location /none { keepalive_disable none; return 200; }
            location /usual { return 200; }
        }
        server {
            listen 127.0.0.1:@PORT@; server_name underscores; underscores_in_headers on;
            location / { proxy_pass http://@ORIGIN@; }
        }
        server {
            listen 127.0.0.1:@PORT@; server_name any; ignore_invalid_headers off;
            location / { proxy_pass http://@ORIGIN@; }
        }
        server { listen 127.0.0.1:@FEW@; max_headers 5; return 204; }
    }";

fn start() -> (Origin, Server) {
    let origin = Origin::start(|request| {
        let came: Vec<&str> = ["x-plain", "x_score", "x.dot"]
            .into_iter()
            .filter(|name| request.field(name).is_some())
            .collect();
        answer(200, &[], came.join(" ").as_bytes())
    });
    let few = millstream_tests::ports::free().to_string();
    let server = Server::start(SITE, &[("ORIGIN", &origin.address()), ("FEW", &few)]);
    (origin, server)
}

#[test]
fn fields_with_odd_names_go_on_only_where_the_server_says_so() {
    let (_origin, server) = start();
    for (host, came) in
        [("plain", "x-plain"), ("underscores", "x-plain x_score"), ("any", "x-plain x_score x.dot")]
    {
        let fields = [("Host", host), ("X-Plain", "1"), ("X_Score", "1"), ("X.Dot", "1")];
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        assert_eq!(server.ask(format!("GET / HTTP/1.1\r\n{lines}\r\n")).text(), came, "{host}");
    }
}

#[test]
fn more_fields_than_max_headers_are_refused() {
    let (_origin, server) = start();
    let text = std::fs::read_to_string(server.prefix().join("nginx.conf")).expect("its configuration");
    let port =
        text.split("listen 127.0.0.1:").nth(4).and_then(|rest| rest.split(';').next()).expect("a port");
    for (more, status) in [(4, 204), (5, 400)] {
        let mut client =
            millstream_tests::client::Client::connect(port.parse().expect("a port")).expect("open");
        assert_eq!(
            client.ask(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X-More: 1\r\n".repeat(more))).status,
            status
        );
    }
}

#[test]
fn connections_of_some_old_browsers_are_not_kept() {
    let (_origin, server) = start();
    let (msie, safari) = ("Mozilla/4.0 (compatible; MSIE 5.0; Windows 98)", "Mac OS X Safari/7534.48.3");
    for (method, path, agent, kept) in [
        ("POST", "/usual", msie, false),
        ("GET", "/usual", msie, true),
        ("GET", "/usual", safari, true),
        ("GET", "/safari", safari, false),
        ("POST", "/safari", msie, true),
        ("POST", "/none", msie, true),
    ] {
        let fields = [("Host", "plain"), ("User-Agent", agent), ("Content-Length", "0")];
        let answer = server.request(method, path, &fields);
        let expected = if kept { "keep-alive" } else { "close" };
        assert_eq!(answer.field("connection"), Some(expected), "{method} {path} {agent}");
    }
}
