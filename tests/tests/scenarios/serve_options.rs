//! `serve` in front of an API nobody described to it: how large, how slow, as whom, behind whom, and other protocols.

use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use millstream_tests::client::{self, Client};
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, binary, is_nginx};
use millstream_tests::{ports, wait};
use rustix::process::Signal;

struct Serving {
    port: u16,
    process: Running,
    prefix: Prefix,
}

impl Serving {
    fn start(origin: &Origin, arguments: &[&str]) -> Serving {
        Serving::start_in(Prefix::new(), origin, arguments)
    }

    fn start_in(prefix: Prefix, origin: &Origin, arguments: &[&str]) -> Serving {
        let port = ports::free();
        let output = std::fs::File::create(prefix.join("output")).expect("own directory");
        let process = Running::start(
            command(
                &prefix,
                &["serve", &origin.address(), "--listen", &port.to_string(), "--dashboard", "off"],
            )
            .args(arguments)
            .stderr(output),
        );
        let mut process = process.expect("the binary runs");
        // The port is open before it is who it will be.
        wait::until("it says that it serves", || {
            assert!(process.ended().is_none(), "it ended: {}", prefix.read("output"));
            prefix.read("output").contains("in front of")
        });
        Serving { port, process, prefix }
    }

    fn client(&self) -> Client {
        Client::connect(self.port).expect("it listens")
    }
}

fn command(prefix: &Prefix, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .env("XDG_RUNTIME_DIR", prefix.path())
        .env("TMPDIR", prefix.path())
        .stdin(Stdio::null());
    command
}

fn said(mut command: Command) -> (bool, String) {
    let output = command.output().expect("the binary runs");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn heads_of_32_kb_pass_both_ways_and_each_bound_can_be_set() {
    skip_on_nginx!();
    let large = "x".repeat(32 * 1024);
    let origin = Origin::start({
        let large = large.clone();
        move |_| answer(200, &[("X-Large", &large)], b"ok")
    });
    let serving = Serving::start(&origin, &[]);
    let got = serving.client().get_with("/", &[("X-Large", &large)]).expect("an answer");
    assert_eq!((got.status, got.field("x-large")), (200, Some(large.as_str())));
    assert_eq!(origin.requests()[0].field("x-large"), Some(large.as_str()));

    let bounded = ["--max-head", "8k", "--max-body", "1k", "--client-timeout", "1s", "--read-timeout", "1s"];
    let silent = Origin::start(|request| match request.target() {
        "/silent" => vec![Step::Pause(std::time::Duration::from_secs(60))],
        _ => answer(200, &[], b"ok"),
    });
    let serving = Serving::start(&silent, &bounded);
    assert_eq!(serving.client().get_with("/", &[("X-Large", &large)]).expect("an answer").status, 431);
    assert_eq!(
        serving.client().ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n").status,
        413
    );
    assert_eq!(serving.client().get("/silent").expect("an answer").status, 504);
    assert_eq!(serving.client().ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1").status, 408);
}

/// An API that accepts any other protocol, and then sends one thing for each "request".
fn echoing() -> Origin {
    Origin::start(|request| {
        match (request.field("upgrade"), request.field("connection")) {
        (Some(protocol), Some("upgrade")) => vec![Step::Send(
            format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\nConnection: Upgrade\r\n\r\nhello first")
                .into_bytes(),
        )],
        _ if request.target() == "/plain" => {
            answer(200, &[("Cache-Control", "max-age=60"), ("Content-Type", "text/plain")], b"plain")
        }
        _ => vec![Step::Send(b"echo of bytes".to_vec()), Step::Close],
    }
    })
}

fn talks(port: u16, path: &str) {
    let mut client = Client::connect(port).expect("it listens");
    client
        .send(format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n"
        ))
        .expect("sent");
    let head = client.head().expect("an answer");
    assert_eq!((head.status, head.field("upgrade")), (101, Some("websocket")));
    assert_eq!(client.exactly(11).expect("bytes"), b"hello first");
    client.send("raw bytes, no HTTP\r\n\r\n").expect("sent");
    assert_eq!(client.exactly(13).expect("bytes"), b"echo of bytes");
}

#[test]
fn a_websocket_passes_through_serve_and_through_a_cached_location_that_says_so() {
    skip_on_nginx!();
    let origin = echoing();
    let serving = Serving::start(&origin, &["--microcache", "10s"]);
    let site = site! {
        http "proxy_cache_path memory keys_zone=answers:1m memory=1m;"
        server "location / { proxy_pass http://@ORIGIN@; proxy_upgrade on; proxy_cache answers; proxy_cache_valid 10s;
            proxy_set_header Connection close; }"
    };
    let server = Server::start(site, &[("ORIGIN", &origin.address())]);
    for port in [serving.port, server.port()] {
        // One that is open holds up no other of its URL, and no plain request.
        let mut open = Client::connect(port).expect("it listens");
        open.send("GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            .expect("sent");
        assert_eq!(open.head().expect("an answer").status, 101);
        talks(port, "/socket");
        talks(port, "/plain");
        assert_eq!(client::get(port, "/plain").text(), "plain");
        talks(port, "/plain");
    }
}

#[test]
fn a_plain_request_asks_for_no_protocol_and_h2c_is_not_passed_on() {
    skip_on_nginx!();
    let origin = echoing();
    let serving = Serving::start(&origin, &[]);
    for fields in [
        &[("Upgrade", "h2c"), ("Connection", "Upgrade, HTTP2-Settings"), ("HTTP2-Settings", "AAMAAABk")][..],
        &[("Upgrade", "websocket, h2c"), ("Connection", "Upgrade")],
        &[("Upgrade", "websocket")],
        &[("Connection", "Upgrade")],
        &[],
    ] {
        let got = serving.client().get_with("/plain", fields).expect("an answer");
        assert_eq!((got.status, got.text().as_str()), (200, "plain"), "{fields:?}");
    }
    assert!(origin.requests().iter().all(|request| request.field("upgrade").is_none()));
}

const FORWARDED: &[(&str, &str)] = &[
    ("X-Forwarded-For", "203.0.113.9"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "shop.example"),
    ("X-Real-IP", "203.0.113.9"),
];

fn told(request: &Request) -> [Option<&str>; 4] {
    ["x-forwarded-for", "x-real-ip", "x-forwarded-proto", "x-forwarded-host"].map(|name| request.field(name))
}

#[test]
fn a_trusted_proxy_in_front_says_who_asked_and_how_and_nobody_else_does() {
    skip_on_nginx!();
    for (arguments, expected) in [
        (&[][..], [Some("127.0.0.1"), Some("127.0.0.1"), Some("http"), None]),
        (
            &["--trust-proxy", "10.0.0.0/8", "--trust-proxy", "192.0.2.1"],
            [Some("127.0.0.1"), Some("127.0.0.1"), Some("http"), Some("localhost")],
        ),
        (
            &["--trust-proxy", "10.0.0.0/8", "--trust-proxy", "127.0.0.1"],
            [Some("203.0.113.9, 127.0.0.1"), Some("203.0.113.9"), Some("https"), Some("shop.example")],
        ),
    ] {
        let origin = Origin::fixed(200, &[], b"ok");
        let serving = Serving::start(&origin, arguments);
        let mut client = serving.client();
        for (number, method) in ["GET", "POST"].into_iter().enumerate() {
            assert_eq!(client.request(method, "/", FORWARDED).expect("an answer").status, 200);
            assert_eq!(told(&origin.requests()[number]), expected, "{method} {arguments:?}");
        }
    }
}

#[test]
fn a_trusted_proxy_that_sets_x_real_ip_alone_says_who_asked_and_a_stranger_does_not() {
    skip_on_nginx!();
    for (proxy, is_trusted) in [("127.0.0.1", true), ("192.0.2.1", false)] {
        let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"ok");
        let serving = Serving::start(&origin, &["--trust-proxy", proxy]);
        for client in ["203.0.113.9", "203.0.113.8"] {
            let got = serving.client().get_with("/", &[("X-Real-IP", client)]).expect("an answer");
            assert_eq!(got.status, 200);
            let requests = origin.requests();
            let [chain, real, ..] = told(requests.last().expect("it was asked"));
            let through = format!("{client}, 127.0.0.1");
            // One client's answer is not the other's.
            let expected = if is_trusted { (through.as_str(), client) } else { ("127.0.0.1", "127.0.0.1") };
            assert_eq!((chain, real), (Some(expected.0), Some(expected.1)), "{proxy}");
        }
    }
}

#[test]
fn what_a_trusted_proxy_says_of_scheme_and_host_is_in_the_key() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let link = format!(
            "{}://{}/",
            request.field("x-forwarded-proto").unwrap_or_default(),
            request.field("x-forwarded-host").unwrap_or_default()
        );
        answer(200, &[("Cache-Control", "max-age=60")], link.as_bytes())
    });
    let serving = Serving::start(&origin, &["--trust-proxy", "127.0.0.1"]);
    for _ in 0..2 {
        for (proto, host) in [("https", "a.example"), ("http", "a.example"), ("https", "b.example")] {
            let fields = [("X-Forwarded-Proto", proto), ("X-Forwarded-Host", host)];
            let got = serving.client().get_with("/", &fields).expect("an answer").text();
            assert_eq!(got, format!("{proto}://{host}/"));
        }
    }
    assert_eq!(origin.count(), 3);
}

/// The user ids of a process, and whether any of its threads has another.
fn users(id: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs").flatten();
    let of = |path: std::path::PathBuf| std::fs::read_to_string(path.join("status")).unwrap_or_default();
    let line = |text: String| text.lines().find(|line| line.starts_with("Uid:")).map(str::to_owned);
    threads.filter_map(|thread| line(of(thread.path()))).collect()
}

#[test]
fn started_by_root_it_gives_its_rights_away_and_is_reached_as_before() {
    if is_nginx() || !rustix::process::geteuid().is_root() {
        return;
    }
    for (arguments, id) in [(&[][..], 65534), (&["--user", "www-data"], 33), (&["--user", "65432"], 65432)] {
        if arguments == ["--user", "www-data"] && !said_ok("id", "www-data") {
            continue;
        }
        let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"ok");
        let prefix = Prefix::new();
        let log = prefix.join("access.log");
        let mut all = vec!["--access-log", log.to_str().expect("a path")];
        all.extend_from_slice(arguments);
        let mut serving = Serving::start_in(prefix, &origin, &all);
        let expected = format!("Uid:\t{id}\t{id}\t{id}\t{id}");
        let found = users(millstream_tests::process::serving(serving.process.id()));
        assert!(!found.is_empty() && found.iter().all(|line| *line == expected), "{found:?}");
        assert_eq!(serving.client().get("/").expect("an answer").status, 200);
        let url = format!("http://127.0.0.1:{}/", serving.port);
        let (done, text) = said(command(&serving.prefix, &["explain", &url]));
        assert!(done && text.contains(&url[7..]), "{text}");
        serving.process.signal(Signal::HUP);
        serving.process.signal(Signal::USR1);
        assert_eq!(serving.client().get("/").expect("an answer").status, 200);
        serving.process.signal(Signal::QUIT);
        let ended = serving.process.wait(std::time::Duration::from_secs(20));
        assert!(ended.is_some_and(|status| status.success()), "{}", serving.prefix.read("output"));
        wait::until("the log is written", || serving.prefix.read("access.log").lines().count() == 2);
        let sockets = std::fs::read_dir(serving.prefix.join("millstream")).expect("it was there").count();
        assert_eq!(sockets, 0, "its socket goes with it");
    }
}

fn said_ok(program: &str, argument: &str) -> bool {
    let status = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn of_several_that_run_each_is_named_and_the_port_says_which_is_meant() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"ok");
    let first = Serving::start(&origin, &[]);
    let port = ports::free();
    let mut second = Running::start(
        command(
            &first.prefix,
            &["serve", &origin.address(), "--listen", &port.to_string(), "--dashboard", "off"],
        )
        .stderr(Stdio::null()),
    )
    .expect("the binary runs");
    wait::until("it accepts connections", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let host = format!("127.0.0.1:{port}");
    assert_eq!(client::get_with(port, "/a", &[("Host", &host)]).status, 200);
    for arguments in [&["purge", "--tag", "x"][..], &["explain", "http://localhost/a"]] {
        let (done, text) = said(command(&first.prefix, arguments));
        let names = [first.port, port].map(|port| format!("serve-{port}.sock"));
        assert!(!done && names.iter().all(|name| text.contains(name)), "{text}");
    }
    let (done, text) = said(command(&first.prefix, &["purge", &format!("http://127.0.0.1:{port}/a")]));
    assert!(done, "{text}");
    // A socket that nobody is behind any more names nobody.
    second.signal(Signal::KILL);
    assert!(second.wait(std::time::Duration::from_secs(20)).is_some());
    // What it had started notices its end a moment later.
    wait::until("the other one is found", || said(command(&first.prefix, &["purge", "--tag", "x"])).0);
}

#[test]
fn two_that_run_on_one_port_of_two_addresses_start_and_are_both_named() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"ok");
    let first = Serving::start(&origin, &[]);
    let (port, at) = (first.port, format!("127.0.0.2:{}", first.port));
    let output = std::fs::File::create(first.prefix.join("second")).expect("own directory");
    let mut second =
        command(&first.prefix, &["serve", &origin.address(), "--listen", &at, "--dashboard", "off"]);
    let mut second = Running::start(second.stderr(output)).expect("the binary runs");
    wait::until("it says that it serves", || {
        assert!(second.ended().is_none(), "it ended: {}", first.prefix.read("second"));
        first.prefix.read("second").contains("in front of")
    });
    for arguments in [&["purge", "--tag", "x"][..], &["purge", &format!("http://127.0.0.1:{port}/a")]] {
        let (done, text) = said(command(&first.prefix, arguments));
        let names = [format!("serve-{port}.sock"), format!("serve-{port}-{}.sock", second.id())];
        assert!(!done && names.iter().all(|name| text.contains(name)), "{text}");
    }
    second.signal(Signal::TERM);
    assert!(second.wait(Duration::from_secs(20)).is_some());
    let (done, text) = said(command(&first.prefix, &["purge", "--tag", "x"]));
    assert!(done, "{text}");
}

#[test]
fn without_a_directory_for_its_control_socket_it_serves_and_says_so_as_does_purge() {
    skip_on_nginx!();
    let (origin, prefix) = (Origin::fixed(200, &[], b"ok"), Prefix::new());
    let directory = prefix.join("millstream");
    std::fs::create_dir(&directory).expect("own directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&directory, open).expect("own directory");
    let mut reason = "is accessible to other users";
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&directory, Some(65_432), None).expect("root may");
        reason = "belongs to another user";
    }
    let serving = Serving::start_in(prefix, &origin, &[]);
    let told = serving.prefix.read("output");
    assert!(told.contains("no control socket: ") && told.contains(reason), "{told}");
    let (done, text) = said(command(&serving.prefix, &["purge", "--tag", "x"]));
    assert!(!done && text.contains(reason), "{text}");
    assert_eq!(serving.client().get("/").expect("an answer").status, 200);
}

#[test]
fn the_printed_configuration_has_every_option_and_does_the_same() {
    skip_on_nginx!();
    let origin = echoing();
    let port = ports::free().to_string();
    let options = ["--max-body", "3k", "--max-head", "9k", "--connect-timeout", "2s", "--read-timeout", "3s"];
    let more = [
        "--send-timeout",
        "4s",
        "--client-timeout",
        "5s",
        "--trust-proxy",
        "127.0.0.1",
        "--trust-proxy",
        "::1",
    ];
    let mut print = Command::new(binary());
    print
        .args(["serve", &origin.address(), "--listen", &port, "--dashboard", "off", "--print-config"])
        .args(options)
        .args(more);
    let (done, text) = said(print);
    for directive in [
        "client_max_body_size 3k;",
        "large_client_header_buffers 1 9k;",
        "proxy_buffer_size 9k;",
        "proxy_connect_timeout 2s;",
        "proxy_read_timeout 3s;",
        "proxy_send_timeout 4s;",
        "client_header_timeout 5s;",
        "client_body_timeout 5s;",
        "send_timeout 5s;",
        "trusted_proxy 127.0.0.1 ::1;",
        "proxy_upgrade on;",
    ] {
        assert!(done && text.contains(directive), "{directive} in {text}");
    }
    let text = format!("pid @DIR@/nginx.pid;\n{}", text.replace("daemon off;", "").replace(&port, "@PORT@"));
    let server = Server::start(&text, &[]);
    talks(server.port(), "/socket");
    assert_eq!(server.get_with("/plain", FORWARDED).status, 200);
    let request =
        origin.requests().into_iter().find(|request| request.target() == "/plain").expect("it came");
    assert_eq!(told(&request)[..3], [Some("203.0.113.9, 127.0.0.1"), Some("203.0.113.9"), Some("https")]);
}

fn wait_for(serving: &Serving, text: &str) {
    wait::until(text, || serving.prefix.read("output").contains(text));
}

fn nobody() -> String {
    format!("http://127.0.0.1:{}", ports::free())
}

#[test]
fn an_api_that_is_not_there_yet_is_a_warning_at_the_start() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"ok");
    let absent = nobody();
    let serving = Serving::start(&origin, &[&absent]);
    wait_for(&serving, &format!("no process is listening on {absent} yet"));
    assert!(
        !serving.prefix.read("output").contains(&format!("no process is listening on {}", origin.address()))
    );
}

#[test]
fn an_api_s_socket_that_the_user_may_not_use_is_a_warning_at_the_start() {
    if is_nginx() || !rustix::process::geteuid().is_root() {
        return; // Only root serves as somebody else.
    }
    let prefix = Prefix::new();
    let path = prefix.join("api.sock");
    let _listening = std::os::unix::net::UnixListener::bind(&path).expect("a free path");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
    let origin = Origin::fixed(200, &[], b"ok");
    let url = format!("unix:{}", path.display());
    let serving = Serving::start_in(prefix, &origin, &[&url]);
    wait_for(&serving, &format!("the user nobody cannot connect to {url}"));
    wait_for(&serving, "--user");
}

#[test]
fn an_api_at_the_address_that_is_listened_on_ends_the_start() {
    skip_on_nginx!();
    let port = ports::free();
    let url = format!("http://127.0.0.1:{port}");
    let (done, text) = said(command(&Prefix::new(), &["serve", &url, "--listen", &port.to_string()]));
    assert!(!done && text.contains(&url) && text.contains("--listen"), "{text}");
}

#[test]
fn servers_that_were_all_down_are_asked_again_after_a_second() {
    skip_on_nginx!();
    let gate = Arc::new(AtomicBool::new(false));
    let apis: Vec<Origin> = (0..2)
        .map(|_| {
            let is_up = Arc::clone(&gate);
            Origin::start(move |_| match is_up.load(Ordering::SeqCst) {
                true => answer(200, &[], b"ok"),
                false => vec![Step::Close],
            })
        })
        .collect();
    let serving = Serving::start(&apis[0], &[&apis[1].address()]);
    let mut client = serving.client();
    assert_eq!(client.get("/").expect("an answer").status, 502);
    gate.store(true, Ordering::SeqCst);
    let since = Instant::now();
    wait::until("they are asked again", || client.get("/").expect("an answer").status == 200);
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[test]
fn of_two_printed_configurations_the_second_is_told_whose_pid_file_it_has() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let printed = |name: &str| {
        let port = ports::free();
        let print =
            command(&prefix, &["serve", "127.0.0.1:9", "--listen", &port.to_string(), "--print-config"]);
        let (done, text) = said(print);
        assert!(done, "{text}");
        (port, prefix.write(name, &text))
    };
    let folder = prefix.path().to_str().expect("a path");
    let run = |file: &Path| command(&prefix, &["-p", folder, "-c", file.to_str().expect("a path")]);
    let (port, first) = printed("first.conf");
    let _first = Running::start(run(&first).stderr(Stdio::null())).expect("the binary runs");
    wait::until("it accepts connections", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let (_, second) = printed("second.conf");
    let (done, text) = said(run(&second));
    let pid = prefix.join("logs/nginx.pid");
    assert!(
        !done && text.contains(pid.to_str().expect("a path")) && text.contains("pid /another/file.pid;"),
        "{text}"
    );
}

#[test]
fn root_reaches_what_another_user_serves() {
    if is_nginx() || !rustix::process::geteuid().is_root() || !said_ok("setpriv", "--version") {
        return;
    }
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"ok");
    let (theirs, roots) = (Prefix::new(), Prefix::new());
    for path in [theirs.path(), roots.path()] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("ours");
    }
    let port = ports::free();
    let mut process = Command::new("setpriv");
    process.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary());
    process
        .args(["serve", &origin.address(), "--listen", &port.to_string(), "--dashboard", "off"])
        .stderr(Stdio::null());
    let _process = Running::start(process.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", theirs.path()));
    wait::until("it accepts connections", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("http://127.0.0.1:{port}/");
    let mut explain = command(&roots, &["explain", &url]);
    explain.env("TMPDIR", theirs.path());
    let (done, text) = said(explain);
    assert!(done && text.contains(&url[7..]), "{text}");
}

#[test]
fn the_dashboard_is_opened_to_other_machines_by_their_addresses_or_a_token() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let print = |arguments: &[&str]| {
        let mut print = command(&prefix, &["serve", "127.0.0.1:9", "--print-config"]);
        print.args(arguments);
        said(print)
    };
    let (is_good, text) = print(&["--dashboard", "0.0.0.0:8081"]);
    assert!(
        !is_good && text.contains("write --dashboard-allow") && text.contains("--dashboard-token"),
        "{text}"
    );
    let open = [
        "--dashboard",
        "0.0.0.0:8081",
        "--dashboard-allow",
        "172.16.0.0/12",
        "--dashboard-allow",
        "10.0.0.9",
    ];
    let (is_good, text) = print(&open);
    assert!(is_good && text.contains("api_allow 127.0.0.1 ::1 unix: 172.16.0.0/12 10.0.0.9;"), "{text}");
    let (is_good, text) = print(&["--dashboard", "0.0.0.0:8081", "--dashboard-allow", "not-an-address"]);
    assert!(!is_good && text.contains("--dashboard-allow not-an-address"), "{text}");
    let (is_good, text) = print(&["--dashboard-allow", "10.0.0.9", "--dashboard-token", "0123456789abcdef"]);
    assert!(is_good && text.contains("api_token 0123456789abcdef;"), "{text}");
}

#[test]
fn the_dashboards_token_is_asked_of_this_machine_too_and_who_is_allowed_only_reads() {
    skip_on_nginx!();
    const TOKEN: &str = "0123456789abcdef";
    let (allowed, token) = (["--dashboard-allow", "10.0.0.9"], ["--dashboard-token", TOKEN]);
    // For reading and for purging: without the token, and with it.
    let cases: [(Vec<&str>, [u16; 4]); 4] = [
        (vec![], [200, 403, 200, 403]),
        (token.to_vec(), [403, 403, 200, 200]),
        (allowed.to_vec(), [200, 403, 200, 403]),
        ([allowed, token].concat(), [200, 403, 200, 200]),
    ];
    for (options, expected) in cases {
        let (prefix, origin, dashboard) = (Prefix::new(), Origin::fixed(200, &[], b"page"), ports::free());
        let (port, address) = (ports::free().to_string(), format!("127.0.0.1:{dashboard}"));
        let mut serve =
            command(&prefix, &["serve", &origin.address(), "--listen", &port, "--dashboard", &address]);
        serve.args(&options);
        let _serving = Running::start(&mut serve).expect("the binary runs");
        let ask = |method: &str, path: &str, fields: &str, body: &str| {
            let mut client = Client::connect(dashboard).ok()?;
            let length = body.len();
            let head =
                format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}");
            client.send(format!("{head}\r\n\r\n{body}")).ok()?;
            client.answer_to(method).ok().map(|answer| answer.status)
        };
        wait::until("it is there", || ask("GET", "/readyz", "", "") == Some(200));
        let with = format!("Authorization: Bearer {TOKEN}\r\n");
        let got = ["", &with].map(|token| {
            let json = format!("{token}Content-Type: application/json\r\n");
            let purge = ask("POST", "/api/9/http/caches/serve/purge", &json, "{\"all\": true}");
            [ask("GET", "/metrics", token, ""), purge].map(|status| status.expect("an answer"))
        });
        assert_eq!(got.concat(), expected, "{options:?}");
    }
}

#[test]
fn a_redirect_to_the_address_of_the_api_leads_back_to_serve() {
    skip_on_nginx!();
    let itself: Arc<OnceLock<String>> = Arc::default();
    let own = itself.clone();
    let origin = Origin::start(move |_| {
        let target = format!("http://{}/there?a=1", own.get().map_or("", String::as_str));
        answer(302, &[("Location", &target)], b"")
    });
    itself.set(origin.address()).expect("it is set once");
    let serving = Serving::start(&origin, &[]);
    let answer = serving.client().get("/here").expect("an answer");
    // Whatever scheme, name and port a proxy in front has.
    assert_eq!(answer.field("Location"), Some("/there?a=1"));
}

#[test]
fn a_proxy_that_is_not_named_is_noticed_once() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"page");
    for (options, times) in [(&[][..], 1), (&["--trust-proxy", "127.0.0.1"], 0)] {
        let serving = Serving::start(&origin, options);
        for path in ["/a", "/b", "/c"] {
            let fields = [("X-Forwarded-For", "192.0.2.7")];
            serving.client().get_with(path, &fields).expect("an answer");
        }
        serving.client().get("/d").expect("an answer");
        let output = serving.prefix.read("output");
        assert_eq!(output.matches("add it to trusted_proxy").count(), times, "{output}");
    }
}

#[test]
fn a_port_that_a_connection_uses_is_reported_as_such() {
    skip_on_nginx!();
    let (origin, prefix) = (Origin::fixed(200, &[], b"ok"), Prefix::new());
    let connection = std::net::TcpStream::connect(origin.address()).expect("it listens");
    let taken = connection.local_addr().expect("connected").port().to_string();
    let (is_good, text) =
        said(command(&prefix, &["serve", &origin.address(), "--listen", &taken, "--dashboard", "off"]));
    assert!(!is_good && !text.contains("process that"), "{text}");
    for part in [
        "no process listens there, but a connection uses this port",
        "wait until the connection has ended, or choose another address with --listen",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_port_that_is_taken_is_reported_with_the_option_that_moves_it() {
    skip_on_nginx!();
    let (origin, prefix) = (Origin::fixed(200, &[], b"ok"), Prefix::new());
    let ((_one, taken), (_other, taken_too)) = (ports::listener(), ports::listener());
    let (taken, taken_too, free) = (taken.to_string(), taken_too.to_string(), ports::free().to_string());
    let (dashboard, listen) = ("--dashboard address:port", "choose another address with --listen");
    for (at, at_dashboard, needed, other) in [
        (&free, &taken, vec![dashboard, "--dashboard off"], Some("--listen")),
        (&taken, &free, vec![listen], Some("--dashboard")),
        (&taken, &taken_too, vec![listen, dashboard], None),
    ] {
        let arguments =
            ["serve", &origin.address(), "--listen", at, "--dashboard", &format!("127.0.0.1:{at_dashboard}")];
        let (is_good, text) = said(command(&prefix, &arguments));
        assert!(!is_good && text.contains("another process listens there already"), "{text}");
        assert!(needed.iter().all(|needed| text.contains(needed)), "{text}");
        assert!(other.is_none_or(|other| !text.contains(other)), "{text}");
    }
}

#[test]
fn sockets_that_killed_processes_left_behind_are_removed_at_the_next_start() {
    skip_on_nginx!();
    let (origin, prefix) = (Origin::fixed(200, &[], b"ok"), Prefix::new());
    let folder = prefix.join("millstream");
    std::fs::create_dir(&folder).expect("own directory");
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&folder, own).expect("own directory");
    let age = |path: &Path| {
        let hour_ago = rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: hour_ago, last_modification: hour_ago };
        rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::empty()).expect("own file");
    };
    let bind = |name: &str| {
        let socket = UnixListener::bind(folder.join(name)).expect("own directory");
        age(&folder.join(name));
        socket
    };
    for name in ["serve-9.sock", "serve-9-4711.sock", "serve-pid-4711.sock", "other.sock"] {
        drop(bind(name));
    }
    let _alive = bind("serve-10.sock");
    drop(UnixListener::bind(folder.join("serve-11.sock")).expect("own directory"));
    std::fs::write(folder.join("serve-12.sock"), "no socket").expect("own directory");
    age(&folder.join("serve-12.sock"));
    let serving = Serving::start_in(prefix, &origin, &[]);
    let mut left: Vec<String> = std::fs::read_dir(&folder)
        .expect("own directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    let own = format!("serve-{}.sock", serving.port);
    // What listens, what is not a socket of `serve`, and what is so young that it may be about to listen, stays.
    let mut expected = vec!["other.sock", "serve-10.sock", "serve-11.sock", "serve-12.sock", &own];
    expected.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn the_start_warns_of_purging_by_local_programs_where_it_is_allowed_and_names_no_token() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"ok");
    let token = Prefix::new();
    token.write("token", "0123456789abcdef\n");
    let by_token = format!("token={}", token.join("token").display());
    let warning = "programs on this machine may purge, and so may all clients of a local proxy that does not add X-Forwarded-For";
    for (arguments, warns, statuses) in [
        (&[][..], false, [403, 403]),
        (&["--purge", "off"], false, [403, 403]),
        (&["--purge", "local"], true, [404, 404]),
        (&["--purge", &by_token], false, [403, 404]),
    ] {
        let serving = Serving::start(&origin, arguments);
        let said = serving.prefix.read("output");
        assert_eq!(said.lines().any(|line| line == warning), warns, "{arguments:?}: {said}");
        assert!(!said.contains("0123456789abcdef"), "{said}");
        let purge = |fields: &[(&str, &str)]| {
            serving.client().request("PURGE", "/a", fields).expect("an answer").status
        };
        let bearer = [("Authorization", "Bearer 0123456789abcdef")];
        assert_eq!([purge(&[]), purge(&bearer)], statuses, "{arguments:?}");
    }
}
