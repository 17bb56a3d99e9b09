//! Where requests come to, without a file system and without a client.

use super::{From, Settled, settle};
use crate::fixture::{admitted, worker};
use crate::imagined;

#[test]
fn a_script_that_asks_for_a_file_stops_and_goes_on_with_what_it_is_told() {
    let worker = worker(
        "server { listen 80; set $seen 1; root /files;
            location / { set $seen 2; if (-f $request_filename) { set $seen \"$seen file\"; break; } return 200 $seen; } }",
    );
    let mut request = admitted(&worker, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let Settled::Test(test, paused) = settle(&mut request, From::Server) else { panic!("it asks") };
    assert_eq!(test.path, b"/files/a");
    assert_eq!(request.route.slots.value(0).as_deref(), Some(&b"2"[..]));
    assert!(matches!(settle(&mut request, From::Script(paused.answered(true))), Settled::Here));
    assert_eq!(request.route.slots.value(0).as_deref(), Some(&b"2 file"[..]));
    assert!(matches!(settle(&mut request, From::Script(paused.answered(false))), Settled::Return(..)));
}

#[test]
fn a_request_that_nobody_sent_comes_to_where_there_are_no_files() {
    let worker = worker(
        "server { listen 80;
            location / { if (!-e $request_filename) { rewrite ^ /index.php last; } }
            location ~ \\.php$ { return 200 here; } }",
    );
    let mut request = admitted(&worker, "GET /post/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(imagined::settle(&mut request), Ok(Settled::Return(..))));
    assert_eq!(request.route.uri, b"/index.php");
}

#[test]
fn each_location_that_is_found_bounds_an_announced_body_and_a_named_one_does_not() {
    let worker = worker(
        "server { listen 80; client_max_body_size 4;
            location /wide { client_max_body_size 5; } location /on { client_max_body_size 5; rewrite ^ /narrow last; }
            location /narrow { } location /inside { internal; } location /slash/ { proxy_pass http://127.0.0.1:1; } }",
    );
    let settled = |target: &str, from| {
        let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
        format!("{:?}", settle(&mut admitted(&worker, &head), from))
    };
    for (target, from, expected) in [
        ("/wide", From::Server, "Here"),
        ("/narrow", From::Server, "TooLarge"),
        ("/on", From::Server, "TooLarge"),
        ("/elsewhere", From::Server, "TooLarge"),
        ("/inside", From::Server, "Status(404)"),
        ("/slash", From::Server, "TooLarge"),
        ("/narrow", From::Rewrite, "Here"),
    ] {
        assert_eq!(settled(target, from), expected, "{target}");
    }
}

#[test]
fn a_path_changes_ten_times_and_no_more() {
    let worker = worker("server { listen 80; location / { rewrite ^(.*)$ $1x; } }");
    let mut request = admitted(&worker, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(settle(&mut request, From::Server), Settled::Status(500)));
    assert_eq!(request.route.uri, b"/xxxxxxxxxxx");
}
