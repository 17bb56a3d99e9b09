//! What of a request goes upstream, what else is sent in its place, and what is said of the answer's characters.

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        server {
            listen 127.0.0.1:@PORT@; charset utf-8;
            location / { proxy_pass http://@ORIGIN@; add_header X-Body \"[$request_body]\"; }
            location /fields { proxy_pass http://@ORIGIN@; proxy_pass_request_headers off; proxy_set_header X-Set yes; }
            location /bodiless { proxy_pass http://@ORIGIN@; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }
            location /replaced { proxy_pass http://@ORIGIN@; proxy_set_body \"<$request_body>\"; }
        }
    }";

#[test]
fn what_goes_upstream_of_a_request_is_what_the_location_lets_go() {
    let origin = Origin::start(|request| {
        let said = |name: &str| request.field(name).unwrap_or("-").to_owned();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let text = format!("{} {} {} [{body}]", said("x-client"), said("x-set"), said("content-length"));
        answer(200, &[("Content-Type", "text/plain")], text.as_bytes())
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    for (path, came, seen) in [
        ("/", "yes - 4 [body]", Some("[body]")),
        ("/fields", "- yes 4 [body]", None),
        ("/bodiless", "yes - - []", None),
        ("/replaced", "yes - 6 [<body>]", None),
    ] {
        let mut client = server.client();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nX-Client: yes\r\nContent-Length: 4\r\n\r\n");
        client.send(format!("{head}body")).expect("open");
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.text(), came, "{path}");
        assert_eq!(answer.field("x-body"), seen, "{path}");
        assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"), "{path}");
    }
}
