//! Answers that filters make much of: what is held of them for clients that do not read is little, and the process outlives whatever a page
//! says.

use millstream_tests::client::Client;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::process::resident_bytes;
use millstream_tests::server::Server;

const MEGABYTE: u64 = 1024 * 1024;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log crit; worker_processes 1;
    events { worker_connections 4096; }
    http {
        access_log off; send_timeout 600s; proxy_temp_path @DIR@/temp; proxy_http_version 1.1;
        server {
            listen 127.0.0.1:@PORT@ sndbuf=64k;
            location / { proxy_pass http://@ORIGIN@; ssi on; }
            location /replaced { proxy_pass http://@ORIGIN@; sub_filter a $arg_to; sub_filter_once off; }
            location /small { return 200 small; }
        }
    }";

fn doubled(times: usize) -> String {
    let double = "<!--# set var=\"a\" value=\"$a$a\" -->";
    format!("<!--# set var=\"a\" value=\"0123456789abcdef\" -->{}", double.repeat(times))
}

fn page(path: &str) -> String {
    match path {
        "/replaced" => "a".repeat(200_000),
        "/echoed" => doubled(14) + &"<!--# echo var=\"a\" -->".repeat(3000),
        "/stubs" => {
            let block = format!("<!--# block name=\"b\" -->{}<!--# endblock -->", "x".repeat(1_000_000));
            block + &"<!--# include virtual=\"/nothing\" stub=\"b\" -->".repeat(900)
        }
        "/tree" => "<!--# include virtual=\"/branch\" -->".repeat(16),
        "/branch" => "<!--# include virtual=\"/leaf\" -->".repeat(16),
        "/leaf" => "z".repeat(300_000),
        "/captured" => {
            let again = format!("<!--# if expr=\"{}=/(.*)/\" --><!--# endif -->", "$1".repeat(110));
            doubled(1) + "<!--# if expr=\"$a=/(.*)/\" --><!--# endif -->" + &again.repeat(4) + "end"
        }
        "/sought" => {
            let sought = "<!--# if expr=\"$a=/(?=0)(0|0|1|.)*\\1[xy]7/\" --><!--# endif -->";
            doubled(4) + &sought.repeat(900) + "end"
        }
        _ => String::new(),
    }
}

fn start() -> (Origin, Server) {
    let origin = Origin::start(|request| {
        let path = request.target().split('?').next().unwrap_or_default();
        answer(200, &[("Content-Type", "text/html")], page(path).as_bytes())
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    (origin, server)
}

#[test]
fn clients_that_do_not_read_hold_little_however_much_comes_of_an_answer() {
    skip_on_nginx!();
    const READERS: u64 = 8;
    let replaced = format!("/replaced?to={}", "R".repeat(7000));
    for path in [&replaced, "/echoed", "/stubs", "/tree"] {
        let (_origin, server) = start();
        let before = resident_bytes(server.id());
        let clients: Vec<Client> = (0..READERS)
            .map(|_| {
                let mut client = server.client();
                client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).expect("sent");
                assert_eq!(client.head().expect("a head").status, 200);
                client.exactly(400_000).expect("the beginning");
                client
            })
            .collect();
        assert_eq!(server.get("/small").text(), "small");
        let each = resident_bytes(server.id()).saturating_sub(before) / READERS;
        assert!(each <= 7 * MEGABYTE, "{}: {} KB for each", &path[..5], each / 1024);
        drop(clients);
    }
}

#[test]
fn what_a_page_captures_and_seeks_has_bounds_and_the_page_goes_on_behind_them() {
    skip_on_nginx!();
    let (_origin, server) = start();
    for path in ["/captured", "/sought"] {
        let page = server.get(path);
        assert_eq!(page.status, 200);
        assert!(page.text().ends_with("end"), "{path}");
        assert!(page.text().contains("[an error occurred"), "{path}");
    }
}
