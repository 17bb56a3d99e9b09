//! What of a request goes upstream, what else is sent in its place, and what is said of the answer's characters.

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

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

#[test]
fn a_body_is_in_a_file_that_others_can_read_where_that_is_wanted() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; client_body_temp_path @DIR@/bodies; client_body_buffer_size 1k;
            server { listen 127.0.0.1:@PORT@; add_header X-File $request_body_file; add_header X-Body $request_body;
                location / { proxy_pass http://@ORIGIN@; }
                location /stays { client_body_in_file_only on; proxy_pass http://@ORIGIN@; }
                location /clean { client_body_in_file_only clean; proxy_pass http://@ORIGIN@; } } }",
        &[("ORIGIN", &origin.address())],
    );
    let large = "0123456789".repeat(1_000);
    for (path, body, is_in_file) in [
        ("/", "small", false),
        ("/", large.as_str(), true),
        ("/stays", "small", true),
        ("/stays", large.as_str(), true),
        ("/clean", "small", true),
    ] {
        let mut client = server.client();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        client.send(head + body).expect("it is sent");
        let told = client.answer().expect("it is answered");
        assert_eq!(told.text(), body, "{path}");
        assert_eq!(told.field("x-body").is_none(), is_in_file, "{path}");
        let file = told.field("x-file").map(std::path::PathBuf::from);
        assert_eq!(file.is_some(), is_in_file, "{path}");
        match file {
            Some(file) if path == "/stays" => {
                assert_eq!(std::fs::read_to_string(&file).expect("it is there"), body);
            }
            Some(file) => wait::until("the file is gone", || !file.exists()),
            None => {}
        }
    }
    assert_eq!(server.prefix().count_files("bodies"), 2, "nothing stays but what is to");
}
