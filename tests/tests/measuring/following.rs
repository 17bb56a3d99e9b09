//! What `ladder` prints to set up its recommendation is done, word by word, in front of an API with sessions.
//!
//! Afterwards each session and each address has its own pages, and fewer requests reach the API. The lines of the dashboard and of `-t` are
//! followed by the scenario `advice`.

use crate::ladder::of_rounds;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, binary};
use millstream_tests::{ports, wait};
use rustix::process::Signal;

const SITE: &str = site! {
    server "location / { proxy_pass http://@ORIGIN@; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }"
};

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 7), Ipv4Addr::new(127, 0, 0, 8)];

/// `/page` is the same for every client, `/here` depends on the address, `/login` begins a session, and other
/// pages are personal. With `lifetimes`, the first two have a lifetime.
fn api(lifetimes: bool) -> Origin {
    Origin::start(move |request: &Request| {
        let user = request.field("cookie").or(request.field("authorization")).unwrap_or("nobody");
        let (caching, text) = match request.target() {
            "/page" => (Some("public, max-age=60"), "the same for everybody".to_owned()),
            "/here" => {
                (Some("max-age=60"), format!("at {}", request.field("x-forwarded-for").unwrap_or("-")))
            }
            _ => (None, format!("of {user}")),
        };
        let user = request.field("x-user").filter(|_| request.target() == "/login");
        let session = user.map(|user| format!("session={user}"));
        let mut fields = Vec::new();
        fields.extend(caching.filter(|_| lifetimes).map(|caching| ("Cache-Control", caching)));
        fields.extend(session.as_deref().map(|session| ("Set-Cookie", session)));
        let mut steps = vec![Step::Pause(Duration::from_millis(2))];
        steps.extend(answer(200, &fields, text.as_bytes()));
        steps
    })
}

/// Returns what clients were wrongly given, and how many requests reached the API.
fn visit(port: u16, origin: &Origin) -> (Vec<String>, usize) {
    let (before, mut harm) = (origin.count(), Vec::new());
    let mut ask = |from: Ipv4Addr, path: &str, fields: &[(&str, &str)], expected: &str| {
        let mut client = Client::connect_from(from, port).expect("it listens");
        let answer = client.get_with(path, fields).expect("an answer");
        if answer.status != 200 || answer.text() != expected {
            harm.push(format!("{from} {path} {fields:?}: {} {:?}", answer.status, answer.text()));
        }
        answer.field("set-cookie").map(str::to_owned)
    };
    for _ in 0..4 {
        for user in ["alice", "bob"] {
            let session = ask(Ipv4Addr::LOCALHOST, "/login", &[("X-User", user)], "of nobody");
            assert_eq!(session, Some(format!("session={user}")), "the session of {user}");
            let cookie = format!("session={user}");
            ask(Ipv4Addr::LOCALHOST, "/mine", &[("Cookie", &cookie)], &format!("of {cookie}"));
            ask(Ipv4Addr::LOCALHOST, "/mine", &[("Authorization", user)], &format!("of {user}"));
        }
        for from in ADDRESSES {
            ask(from, "/here", &[], &format!("at {from}"));
            ask(from, "/page", &[], "the same for everybody");
            ask(from, "/page", &[], "the same for everybody");
        }
    }
    (harm, origin.count() - before)
}

fn commands(origin: &Origin, steps: &str) -> Vec<String> {
    let told = of_rounds("4", origin, &["--steps", steps]);
    let text = told.text();
    let lines = text
        .lines()
        .skip_while(|line| *line != "To set it up:")
        .skip(2)
        .map_while(|line| line.strip_prefix("    "));
    let commands: Vec<String> = lines.filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    assert_eq!(commands.len(), 2, "{text}");
    commands
}

fn shell(folder: &Prefix, line: &str) -> Command {
    let program = folder.join("millstream");
    if !program.exists() {
        std::os::unix::fs::symlink(binary(), &program).expect("own directory is writable");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder.path()).stdin(Stdio::null()).stderr(Stdio::null());
    shell.env("PATH", format!("{}:{path}", folder.path().display()));
    shell
}

#[test]
fn whoever_does_what_the_ladder_prints_loses_no_session_shares_no_page_and_spares_the_api() {
    skip_on_nginx!();
    for (lifetimes, steps) in [(false, "alone,keepalive,microcache"), (true, "alone,keepalive,memory")] {
        let origin = api(lifetimes);
        let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
        let (harm, plain) = visit(server.port(), &origin);
        assert_eq!(harm, Vec::<String>::new());
        for command in commands(&origin, steps) {
            let folder = Prefix::new();
            let (port, _serving) = if command.starts_with("millstream serve ") {
                let port = ports::free();
                let line = format!("exec {command} --listen 127.0.0.1:{port} --dashboard off");
                let serving = Running::start(&mut shell(&folder, &line)).expect("a shell");
                wait::until("it accepts connections", || TcpStream::connect(("127.0.0.1", port)).is_ok());
                (port, Some(serving))
            } else {
                let status = shell(&folder, &command).status().expect("a shell");
                assert!(status.success(), "{command}");
                // Its place and its pid file stay as they are.
                let own = format!("127.0.0.1:{}", server.port());
                let text = folder.read("ladder.conf").replace("127.0.0.1:8080", &own);
                let text = text.replace("daemon off;", "").replace("pid ladder.pid;", "pid nginx.pid;");
                server.prefix().write("nginx.conf", &text);
                server.signal(Signal::HUP);
                let is_there = || server.get("/page").field("x-cache-status").is_some();
                wait::until("the new configuration is in force", is_there);
                (server.port(), None)
            };
            let (harm, requests) = visit(port, &origin);
            assert_eq!(harm, Vec::<String>::new(), "{command}");
            assert!(requests < plain, "{requests} requests reached the API, {plain} before: {command}");
        }
    }
}
