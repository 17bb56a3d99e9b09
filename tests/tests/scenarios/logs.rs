//! Logs that cannot be written: a pipe whose reader has stopped holds up neither requests nor signals.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use rustix::process::Signal;
use serde_json::Value;

/// A line is longer than a page, so that a pipe of 64 KiB is full after a few.
const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log notice;
    events { worker_connections 1000; }
    http {
        log_format long \"$request @PADDING@\";
        access_log @DIR@/pipe long;
        server {
            listen 127.0.0.1:@PORT@;
            location / { return 200 \"fixed\\n\"; }
        }
    }";

/// The value holds its reading end open.
fn pipe(path: &Path) -> fs::File {
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("own directory");
    OpenOptions::new().read(true).write(true).open(path).expect("a pipe of our own")
}

fn descriptors(server: &Server) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.serving_id())).map_or(0, Iterator::count)
}

/// A server whose access log no one reads, after enough requests to fill the pipe.
fn stuck() -> (Server, fs::File, usize) {
    let prefix = Prefix::new();
    let reader = pipe(&prefix.join("pipe"));
    let server = Server::start_in(prefix, SITE, &[("PADDING", &"x".repeat(4096))]);
    assert_eq!(server.get("/").status, 200);
    let before = descriptors(&server);
    for _ in 0..400 {
        assert_eq!(server.get("/").status, 200);
    }
    (server, reader, before)
}

#[test]
fn a_log_pipe_that_nobody_reads_keeps_no_connection_open_and_every_signal_works() {
    if is_nginx() {
        // Its workers block in write().
        return;
    }
    for stop in [Signal::QUIT, Signal::TERM] {
        let (mut server, mut reader, before) = stuck();
        wait::until("the connections' descriptors are back", || descriptors(&server) <= before + 4);
        server.signal(Signal::USR1);
        wait::until("the logs are reopened", || server.log().contains("USR1"));
        assert_eq!(server.get("/after-usr1").status, 200);
        let started = Instant::now();
        assert!(server.stop(stop).is_some_and(|status| status.success()), "{stop:?} ends it");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        let mut written = vec![0; 4096];
        reader.read_exact(&mut written).expect("what the pipe took is there");
        assert!(written.starts_with(b"GET / HTTP/1.1 xxx"));
    }
}

#[test]
fn a_log_pipe_gets_every_line_once_its_reader_goes_on() {
    skip_on_nginx!();
    let (mut server, mut reader, _) = stuck();
    assert_eq!(server.get("/last").status, 200);
    // 402 requests, each with a line of the same length but for the last one's path.
    let mut seen = vec![0; 401 * ("GET / HTTP/1.1 \n".len() + 4096)];
    reader.read_exact(&mut seen).expect("every line comes");
    assert!(seen.ends_with(b"x\n") && seen.split(|&byte| byte == b'\n').count() == 402);
    let mut last = [0; 9];
    reader.read_exact(&mut last).expect("and the last");
    assert_eq!(&last, b"GET /last");
    drop(reader);
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
}

fn named(directives: &str) -> Server {
    let template = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; events {}
    http {
        log_format short $uri;
        server {
            listen 127.0.0.1:@PORT@;
            root @DIR@;
            @DIRECTIVES@
            location / { access_log @DIR@/named/$arg_name.log short; return 200 ok; }
            location /elsewhere { root @DIR@/nowhere; access_log @DIR@/named/elsewhere.log short; access_log @DIR@/named/$arg_name short; return 200; }
            location /off { access_log @DIR@/named/$arg_name short; access_log off; return 200; }
            location /some { access_log @DIR@/named/$arg_name.log short if=$arg_wanted; return 200; }
        }
    }";
    let prefix = Prefix::new();
    // Started by root, they are made by the user who serves.
    fs::create_dir(prefix.join("named")).expect("own directory");
    fs::set_permissions(prefix.join("named"), fs::Permissions::from_mode(0o777)).expect("own directory");
    Server::start_in(prefix, template, &[("DIRECTIVES", directives)])
}

#[test]
fn a_request_is_logged_in_the_file_that_it_names_and_in_none_outside_of_the_directory() {
    let server = named("");
    for target in [
        "/one?name=a",
        "/two?name=b",
        "/three?name=a",
        "/four?name=",
        "/five?name=..%2fsix",
        "/up?name=../up",
        "/elsewhere?name=x",
        "/off?name=off",
        "/some?name=a",
        "/some/more?name=a&wanted=1",
    ] {
        assert_eq!(server.get(target).status, 200, "{target}");
    }
    let logs = server.prefix().join("named");
    for (name, expected) in [
        ("a.log", &["/one", "/some/more", "/three"][..]),
        ("b.log", &["/two"]),
        (".log", &["/four"]),
        ("elsewhere.log", &["/elsewhere"]),
    ] {
        // Two workers may write in another order than they were asked in.
        let lines = |text: String| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        wait::until(name, || fs::read_to_string(logs.join(name)).is_ok_and(|text| lines(text) == expected));
    }
    wait::until("the errors are told", || {
        let log = server.log();
        log.contains("/nowhere\" failed")
            && (is_nginx() || log.contains("../up.log\" points outside its directory"))
    });
    let mut names: Vec<_> = fs::read_dir(&logs)
        .expect("own directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("ASCII"))
        .collect();
    names.sort();
    assert_eq!(
        names.iter().filter(|name| !name.contains("..%2f")).collect::<Vec<_>>(),
        [".log", "a.log", "b.log", "elsewhere.log"]
    );
    assert!(is_nginx() || !server.prefix().join("up.log").exists());
}

#[test]
fn files_that_requests_name_stay_open_until_a_rotation_or_a_reload() {
    let server = named("open_log_file_cache max=10 valid=1h inactive=1h;");
    let logs = server.prefix().join("named");
    let has = |name: &str, expected: &str| {
        wait::until(name, || fs::read_to_string(logs.join(name)).is_ok_and(|text| text == expected));
    };
    server.get("/one?name=a");
    has("a.log", "/one\n");
    fs::rename(logs.join("a.log"), logs.join("a.1")).expect("own directory");
    server.get("/two?name=a");
    has("a.1", "/one\n/two\n");
    for (signal, told, target) in
        [(Signal::USR1, "reopening logs", "/three?name=a"), (Signal::HUP, "is in force", "/four?name=a")]
    {
        let before = server.log().matches(told).count();
        server.signal(signal);
        wait::until(told, || server.log().matches(told).count() > before);
        wait::until("the line is in a file of that name", || {
            server.get(target);
            logs.join("a.log").exists()
        });
        fs::rename(logs.join("a.log"), logs.join("a.2")).expect("own directory");
    }
}

const OBJECTS: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {} http {
    access_log @DIR@/access.log json;
    server {
        listen 127.0.0.1:@PORT@;
        location /closed { return 444; }
        location /passed { proxy_pass http://127.0.0.1:1; }
        location / { return 200 \"an answer\"; }
    }
}";

#[test]
fn the_format_json_is_an_object_a_line_whatever_comes() {
    skip_on_nginx!();
    let server = Server::start(OBJECTS, &[]);
    let agent = "a \"quoted\" \\ name\twith \u{e9}";
    assert_eq!(server.get_with("/a?b=\"c\"", &[("User-Agent", agent), ("Host", "site")]).status, 200);
    assert_eq!(server.get("/passed").status, 502);
    for request in ["GET /closed HTTP/1.1\r\nHost: a\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "\u{1}\u{2}\r\n\r\n"]
    {
        let mut client = server.client();
        client.send(request).expect("sent");
        // Some get an answer and some none.
        _ = client.answer();
    }
    wait::until("all are logged", || server.prefix().read("access.log").lines().count() == 5);
    let lines = server.prefix().read("access.log");
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let told: Vec<Value> = lines.lines().map(read).collect();
    let mut statuses: Vec<u64> = told.iter().map(|line| line["status"].as_u64().expect("a number")).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 444, 502]);
    let first = &told[0];
    let texts =
        ["method", "uri", "host", "user_agent", "cache"].map(|name| first[name].as_str().expect("a text"));
    assert_eq!(texts, ["GET", "/a?b=\"c\"", "site", agent, ""]);
    assert_eq!(first["body_bytes_sent"], 9);
    assert!(first["request_time"].is_number() && first["request_id"].as_str().map(str::len) == Some(32));
    assert_eq!(told[1]["upstream_addr"], "127.0.0.1:1");
}
