//! `shadow`: what a cache could serve, found out on requests that are all passed on.

use millstream_tests::client;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;

/// `/items/N` is the same for everybody, `/me` is the client's own.
fn api() -> Origin {
    Origin::start(|request| match request.target() {
        "/me" => answer(200, &[], format!("{{\"name\":\"{}\"}}", name_of(request)).as_bytes()),
        target => answer(
            200,
            &[("Content-Type", "application/json")],
            format!("{{\"item\":\"{target}\"}}").as_bytes(),
        ),
    })
}

fn name_of(request: &Request) -> String {
    let cookie = request.field("cookie").unwrap_or_default();
    cookie.trim_start_matches("session=").to_owned()
}

#[test]
fn a_location_with_shadow_on_is_observed_and_its_report_goes_on_over_a_reload() {
    skip_on_nginx!();
    let origin = api();
    let template = site! {
        log "notice"
        http "proxy_cache_path memory keys_zone=one:1m memory=8m; shadow on;"
        server "location / { proxy_pass http://@ORIGIN@; }
            location /items/ { proxy_pass http://@ORIGIN@; proxy_cache one; proxy_cache_valid 1h; }
            location /api { api; }"
    };
    let server = Server::start(template, &[("ORIGIN", &origin.address())]);
    for number in 0..30 {
        server.get_with("/me", &[("Cookie", &format!("session=s{number}"))]);
        server.get("/items/1");
    }
    let report = server.get("/api/9/shadow").json();
    assert_eq!(report["totals"]["requests"], 30, "the location with a cache is not observed: {report:#}");
    assert_eq!(report["locations"][0], "_ /", "{report:#}");
    server.reload();
    server.get("/me");
    assert_eq!(server.get("/api/9/shadow").json()["totals"]["requests"], 31);
    assert_eq!(server.get("/api/9/shadow?stale_budget=1%25").json()["stale_budget"], 0.01);
    assert_eq!(server.get("/api/9/shadow?stale_budget=much").status, 400);
}

#[test]
fn without_an_observed_location_there_is_no_report() {
    skip_on_nginx!();
    let server = Server::start(site! { server "location /api { api; } location / { return 204; }" }, &[]);
    let refused = server.get("/api/9/shadow");
    assert!(refused.status == 404 && refused.text().contains("shadow on;"), "{}", refused.text());
}

#[test]
fn streams_and_large_and_cut_responses_pass_unchanged_while_they_are_observed() {
    skip_on_nginx!();
    let large = vec![b'x'; 3 << 20];
    let sent = large.clone();
    let origin = Origin::start(move |request| match request.target() {
        "/large" => answer(200, &[], &sent),
        "/cut" => vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()), Step::Close],
        _ => answer(200, &[("Content-Type", "text/event-stream")], b"data: 1\n\n"),
    });
    let template = site! { server "shadow on; location / { proxy_pass http://@ORIGIN@; }" };
    let server = Server::start(template, &[("ORIGIN", &origin.address())]);
    assert_eq!(server.get("/large").body, large);
    assert_eq!(client::get(server.port(), "/events").text(), "data: 1\n\n");
    let mut client = server.client();
    client.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let cut = client.head().expect("a head");
    assert_eq!(cut.status, 200);
    assert!(client.body("GET", &cut).is_err(), "a cut response never looks whole");
}
