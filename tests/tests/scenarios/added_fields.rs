//! `add_header_inherit` and `add_trailer_inherit`: which of the fields that outer levels add a response has.

use millstream_tests::server::Server;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        add_header X-A http; add_trailer X-T http;
        server { listen 127.0.0.1:@PORT@; server_name on;
            location / { add_header X-A own; add_trailer X-T own; return 200; }
            location /none { return 200; }
            location /merged { add_header_inherit merge; add_header X-A own; add_trailer_inherit merge; add_trailer X-T own;
                location /merged/nested { add_header X-A inner; add_trailer X-T inner; return 200; }
                location /merged/empty { return 200; }
                location /merged/on { add_header_inherit on; add_header X-A inner; return 200; }
                location /merged/off { add_header_inherit off; add_trailer_inherit off; return 200; }
                location /merged/if { if ($arg_x) { add_header X-A if; add_trailer X-T if; return 200; } return 200; }
                return 200; }
            location /off { add_header_inherit off; return 200;
                location /off/nested { add_header X-A inner; return 200; }
                location /off/merged { add_header_inherit merge; add_header X-A inner; return 200; } }
            location /always { add_header_inherit merge; add_header X-A own always; return 404; }
        }
        server { listen 127.0.0.1:@PORT@; server_name merge;
            add_header_inherit merge; add_header X-A server;
            location / { add_header X-A own; return 200; }
            location /etag { add_header ETag mine; return 200;
                location /etag/nested { add_header ETag yours; return 200; } }
        }
    }";

/// Host, path, and the values of `X-A` and of the trailer `X-T` in order.
const CASES: &[(&str, &str, &[&str], &[&str])] = &[
    ("on", "/", &["own"], &["own"]),
    ("on", "/none", &["http"], &["http"]),
    ("on", "/merged", &["own", "http"], &["own", "http"]),
    ("on", "/merged/nested", &["inner", "own", "http"], &["inner", "own", "http"]),
    ("on", "/merged/empty", &["own", "http"], &["own", "http"]),
    ("on", "/merged/on", &["inner"], &["own", "http"]),
    ("on", "/merged/off", &[], &[]),
    ("on", "/merged/if", &["own", "http"], &["own", "http"]),
    ("on", "/merged/if?x=1", &["if", "own", "http"], &["if", "own", "http"]),
    ("on", "/off", &[], &["http"]),
    ("on", "/off/nested", &["inner"], &["http"]),
    ("on", "/off/merged", &["inner"], &["http"]),
    ("on", "/always", &["own"], &[]),
    ("merge", "/", &["own", "server", "http"], &["http"]),
    ("merge", "/etag", &["server", "http"], &["http"]),
];

fn whole(server: &Server, host: &str, path: &str) -> String {
    let mut client = server.client();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    client.send(request).expect("open");
    String::from_utf8(client.rest_of_connection().expect("a response")).expect("text")
}

fn values<'r>(response: &'r str, name: &str) -> Vec<&'r str> {
    response.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

#[test]
fn fields_of_outer_levels_are_inherited_replaced_or_merged() {
    let server = Server::start(SITE, &[]);
    for (host, path, headers, trailers) in CASES {
        let response = whole(&server, host, path);
        assert_eq!(values(&response, "X-A"), *headers, "{host}{path}: {response}");
        assert_eq!(values(&response, "X-T"), *trailers, "{host}{path}: {response}");
    }
    // Of several that set a validator one is sent, the last in order, which the outer level wrote.
    assert_eq!(values(&whole(&server, "merge", "/etag/nested"), "ETag"), ["mine"]);
}
