//! The host that an upstream is asked for: one, and never none where HTTP wants one.

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;

const HOSTS: &str = site! {
    http "map $http_x_tenant $tenant { a a.internal; }"
    server "location / { proxy_pass http://@ORIGIN@; }
        location /empty { proxy_pass http://@ORIGIN@; proxy_set_header Host ''; }
        location /variable { proxy_pass http://@ORIGIN@; proxy_set_header Host $tenant; }
        location /client { proxy_pass http://@ORIGIN@; proxy_set_header Host $http_host; }
        location /blank { proxy_pass http://@ORIGIN@; proxy_set_header Host ' '; }
        location /twice { proxy_pass http://@ORIGIN@; proxy_set_header Host first; proxy_set_header host last; }
        location /evaluated { set $to @ORIGIN@; proxy_pass http://$to; proxy_set_header Host $tenant; }
        location /old { proxy_pass http://@ORIGIN@; proxy_http_version 1.0; proxy_set_header Host $tenant; }
        location /included { add_after_body /variable; addition_types *; return 200 'and '; }"
};

#[test]
fn an_empty_host_is_the_one_of_proxy_pass_and_of_two_the_last_is_sent() {
    let origin = Origin::start(|request| {
        let hosts = request.head.lines().filter(|line| line.to_ascii_lowercase().starts_with("host:"));
        let hosts: Vec<&str> = hosts.collect();
        answer(200, &[], hosts.join("|").as_bytes())
    });
    let server = Server::start(HOSTS, &[("ORIGIN", &origin.address())]);
    let own = format!("Host: {}", origin.address());
    for (path, tenant, expected) in [
        ("/", "", own.as_str()),
        ("/empty", "", &own),
        ("/blank", "", &own),
        ("/variable", "", &own),
        ("/variable", "a", "Host: a.internal"),
        ("/client", "", "Host: a.example"),
        ("/twice", "", "Host: last"),
        ("/evaluated", "", &own),
        ("/evaluated", "a", "Host: a.internal"),
        ("/old", "", ""),
        ("/old", "a", "Host: a.internal"),
        ("/included", "", &format!("and {own}")),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nX-Tenant: {tenant}\r\n\r\n");
        assert_eq!(server.ask(head).text(), expected, "{path} {tenant}");
    }
    let mut client = server.client();
    assert_eq!(client.ask("GET /client HTTP/1.0\r\n\r\n").text(), own, "a client that names none");
}
