//! `millstream top`: the dashboard in a terminal, as a person sees and uses it, and as plain text.

use millstream_tests::load::Load;
use millstream_tests::origin::Origin;
use millstream_tests::ports;
use millstream_tests::process::{self, Running};
use millstream_tests::replay::Replay;
use millstream_tests::server::{self, Server};
use millstream_tests::terminal::Terminal;
use millstream_tests::wait;
use rustix::process::Signal;
use serde_json::json;
use std::process::{Command, Output, Stdio};

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "info"
    http "@MORE@
        proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        upstream api { server @ORIGIN@; server 127.0.0.1:@CLOSED@ backup; }"
    server "status_zone shop;
        location / {
            status_zone goods;
            proxy_pass http://api; proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_key $uri;
        }"
};

struct Shop {
    server: Server,
    _origin: Origin,
    dashboard: u16,
}

impl Shop {
    fn start(more: &str) -> Shop {
        let (origin, dashboard, closed) = (Origin::fixed(200, &[], b"stored"), ports::free(), ports::free());
        let server = Server::start(
            TEMPLATE,
            &[
                ("ORIGIN", &origin.address()),
                ("CLOSED", &closed.to_string()),
                ("MORE", &format!("dashboard {dashboard}; {more}")),
            ],
        );
        Shop { server, _origin: origin, dashboard }
    }

    fn top(&self, arguments: &[&str]) -> Command {
        let mut command = top(arguments);
        command.arg(self.dashboard.to_string());
        command
    }

    fn top_by_configuration(&self, arguments: &[&str]) -> Command {
        let mut command = top(arguments);
        command.arg("-c").arg(self.server.prefix().join("nginx.conf"));
        command.arg("-p").arg(self.server.prefix().path());
        command
    }
}

fn top(arguments: &[&str]) -> Command {
    let mut command = Command::new(server::binary());
    command.arg("top").args(arguments).stdin(Stdio::null());
    command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    for name in ["NO_COLOR", "MILLSTREAM_API_TOKEN"] {
        command.env_remove(name);
    }
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn printed(command: &mut Command) -> Output {
    command.output().expect("it runs")
}

#[test]
fn a_person_sees_the_load_and_looks_through_the_tables_with_the_keys() {
    skip_on_nginx!();
    let shop = Shop::start("");
    let load = Load::start(shop.server.port(), "/goods", 2);
    let mut terminal = Terminal::start(&mut shop.top(&[]), 80, 24);
    terminal.until("it follows", |text| text.contains("● live"));
    terminal.until("the load is seen", |text| text.contains("From the cache 100 %") && text.contains('█'));
    terminal.until("misses are told", |text| {
        text.contains("location /") && text.contains("No matching response")
    });
    for (key, expected) in [
        ("2", "127.0.0.1:"),
        ("3", "responses/s"),
        ("4", "goods"),
        ("5", "shop"),
        ("6", "event"),
        ("\t", "API time"),
        ("\x1b[Z", "event"),
    ] {
        terminal.press(key);
        terminal.until(&format!("{key:?} leads to another table"), |text| text.contains(expected));
    }
    terminal.press("2");
    terminal.until("two servers", |text| text.contains("● up") && text.contains("backup"));
    terminal.press("/api-none");
    terminal.until("a filter is typed", |text| text.contains("no rows match the filter"));
    terminal.press("\x1b");
    terminal.until("it is taken away", |text| text.contains("● up"));
    terminal.press("t");
    terminal.until("charts go back another time", |text| text.contains("t 15 minutes"));
    terminal.resize(40, 8);
    terminal.until("a small screen has a table still", |text| {
        text.contains("server") && text.lines().last().is_some_and(|line| line.starts_with("q quit"))
    });
    terminal.resize(160, 50);
    terminal.until("a large one has room for all columns", |text| text.contains("checks failed"));
    assert!(terminal.has_colours());
    assert!(!terminal.is_as_before());
    terminal.press("q");
    assert!(terminal.ends().success());
    assert!(terminal.is_given_back());
    assert_eq!(terminal.complaints(), Vec::<String>::new());
    assert_eq!(load.finish().failures, Vec::<String>::new());
}

#[test]
fn the_terminal_is_given_back_whatever_ends_it() {
    skip_on_nginx!();
    let shop = Shop::start("");
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut terminal = Terminal::start(shop.top(&[]).env("NO_COLOR", "1").env("LC_ALL", "C"), 80, 24);
        terminal.until("it follows", |text| text.contains("* live"));
        assert!(!terminal.has_colours() && terminal.text().is_ascii(), "{}", terminal.text());
        terminal.signal(signal);
        assert_eq!(terminal.ends().code(), Some(status), "{signal:?}");
        assert!(terminal.is_given_back(), "{signal:?}");
    }
    let mut terminal = Terminal::start(&mut shop.top(&[]), 80, 24);
    terminal.until("it follows", |text| text.contains("live"));
    // Into the background and back.
    terminal.press("\x1a");
    wait::until("it stands still", || terminal.is_stopped());
    assert!(terminal.is_given_back());
    terminal.signal(Signal::CONT);
    terminal.until("it is there again", |text| text.contains("live"));
    assert!(!terminal.is_as_before());
    terminal.press("\x03");
    assert!(terminal.ends().success());
    assert!(terminal.is_given_back());
}

#[test]
fn it_says_that_the_server_is_away_and_goes_on_when_it_is_there_again() {
    skip_on_nginx!();
    let mut shop = Shop::start("");
    let mut terminal = Terminal::start(&mut shop.top(&[]), 100, 30);
    terminal.until("it follows", |text| text.contains("live") && text.contains("configuration 1"));
    shop.server.signal(Signal::HUP);
    terminal.until("it follows the new configuration", |text| text.contains("configuration 2"));
    assert!(shop.server.stop(Signal::QUIT).is_some_and(|status| status.success()), "it holds nobody up");
    terminal.until("that it is away", |text| {
        text.contains("disconnected, reconnecting: no process is listening on 127.0.0.1:")
            && !text.contains("live")
    });
    shop.server.run().expect("it starts again");
    terminal.until("it follows again", |text| text.contains("live") && text.contains("configuration 1"));
    terminal.press("q");
    assert!(terminal.ends().success());
}

#[test]
fn an_upgrade_is_noticed_by_the_number_of_the_process_alone() {
    skip_on_nginx!();
    let shop = Shop::start("");
    let old = shop.server.id();
    let mut terminal = Terminal::start(&mut shop.top_by_configuration(&[]), 120, 30);
    terminal.until("it follows", |text| text.contains(&format!("process {},", process::serving(old))));
    shop.server.signal(Signal::USR2);
    wait::until("the new process is there", || ![0, old].contains(&shop.server.current_id()));
    process::send(old, Signal::QUIT);
    let new = shop.server.current_id();
    terminal.until("it follows the new one", |text| {
        text.contains("● live") && text.contains(&format!("process {},", process::serving(new)))
    });
    terminal.press("q");
    assert!(terminal.ends().success());
}

#[test]
fn nothing_that_a_server_sends_drives_the_terminal() {
    skip_on_nginx!();
    let shop = Shop::start("");
    let name = "\u{1b}]0;mine\u{7}\u{9b}2J\u{1b}[?1049l\r\n\u{202e}x";
    let replay = Replay::start(shop.dashboard, move |second| {
        let zone = json!({ "requests": 1, "responses": {} });
        let tables = json!({
            "server_zones": { name: zone }, "location_zones": { name: zone }, "caches": { name: {} },
            "upstreams": { name: { "peers": [{ "id": 1, "server": name, "state": name, "requests": 1 }] } },
            "misses": [{ "location": { "name": name, "at": name }, "origin_time": 1, "requests": {
                name: { "count": 1, "text": name, "help": name } } }],
        });
        let notes = json!([{ "at": 0, "well": false, "text": name }]);
        let nginx = json!({ "version": name, "pid": 1, "generation": 1 });
        json!({ "names": [name], "rows": [], "nginx": nginx, "second": [second], "tables": tables, "notes": notes })
            .to_string()
    });
    replay.until(5);
    let mut terminal = Terminal::start(&mut top(&[&replay.port().to_string()]), 150, 30);
    for board in ["1", "2", "3", "4", "5", "6"] {
        terminal.press(board);
        let is_shown =
            |text: &str| text.lines().skip(12).any(|line| line.contains("\\x1b]0;mine\\x07\\x9b2J"));
        terminal.until("it is written out", is_shown);
    }
    terminal.press("q");
    assert!(terminal.ends().success());
    assert_eq!(terminal.complaints(), Vec::<String>::new());
    let told = printed(&mut top(&["--once", &replay.port().to_string()]));
    let told = text(&told.stdout);
    assert!(
        told.contains("mine") && !told.contains(|letter: char| letter.is_control() && letter != '\n'),
        "{told:?}"
    );
}

#[test]
fn without_a_terminal_it_prints_a_snapshot_and_ends() {
    skip_on_nginx!();
    let shop = Shop::start("");
    for _ in 0..5 {
        assert_eq!(shop.server.get("/a").status, 200);
    }
    assert_eq!(shop.server.get("/%1b%5b2J%c2%9b").status, 200);
    let piped = printed(&mut shop.top(&[]));
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    let told = text(&piped.stdout);
    for expected in
        ["To the API/s:", "without the cache", "goods", "answers", "No matching response was stored"]
    {
        assert!(told.contains(expected), "{expected} is missing in\n{told}");
    }
    assert!(!told.contains(|letter: char| letter.is_control() && letter != '\n'), "{told:?}");
    // By the control socket, which the configuration names; and by its path.
    let socket = shop.server.prefix().join("nginx.sock");
    let by_socket = socket.to_str().expect("plain");
    for command in
        [&mut shop.top_by_configuration(&["--once"]), &mut top(&["--once", "--control", by_socket])]
    {
        let done = printed(command);
        assert!(done.status.success() && text(&done.stdout).contains("goods"), "{}", text(&done.stderr));
    }
    // A terminal that knows lines alone.
    let mut terminal = Terminal::start(shop.top(&[]).env("TERM", "dumb"), 80, 60);
    assert!(terminal.ends().success());
    assert!(terminal.is_given_back());
    terminal.until("it is printed", |text| text.contains("Servers"));
}

#[test]
fn who_is_not_there_or_does_not_admit_is_told_in_a_sentence_and_an_exit_status() {
    skip_on_nginx!();
    let shop = Shop::start("api_token 0123456789abcdef;");
    let refused = printed(&mut shop.top(&["--once"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("api_allow and api_token"), "{}", text(&refused.stderr));
    let admitted = printed(shop.top(&["--once"]).env("MILLSTREAM_API_TOKEN", "0123456789abcdef"));
    assert!(admitted.status.success(), "{}", text(&admitted.stderr));
    assert!(printed(&mut shop.top(&["--once", "--token", "0123456789abcdef"])).status.success());
    let nobody = format!("http://127.0.0.1:{}", ports::free());
    let (mut over_https, mut twice) = (top(&["https://localhost/"]), top(&["8081", "--control", "/x.sock"]));
    for (command, expected) in [
        (&mut top(&[&nobody]), "no process is listening on 127.0.0.1:"),
        (&mut top(&["--control", "/nowhere.sock"]), "no process is listening on /nowhere.sock"),
        (&mut over_https, "https is not supported"),
        (&mut twice, "cannot be used with"),
    ] {
        let done = printed(command);
        assert_eq!(done.status.code(), Some(1), "{expected}");
        assert!(text(&done.stderr).contains(expected), "{}", text(&done.stderr));
    }
    // Where a configuration was named, nobody else's dashboard is shown.
    let mut stopped = Shop::start("");
    stopped.server.stop(Signal::QUIT);
    let done = printed(&mut stopped.top_by_configuration(&["--once"]));
    let told = text(&done.stderr);
    assert!(
        done.status.code() == Some(1) && told.contains("start millstream with this configuration"),
        "{told}"
    );
    // Even a person at a terminal reads it below the prompt.
    let mut terminal = Terminal::start(&mut top(&[&nobody]), 80, 24);
    assert_eq!(terminal.ends().code(), Some(1));
    terminal.until("why", |text| text.contains("no process is listening"));
    assert!(terminal.is_given_back());
}

#[test]
fn it_finds_the_only_serve_that_runs() {
    skip_on_nginx!();
    let (origin, port) = (Origin::fixed(200, &[], b"served"), ports::free());
    let prefix = millstream_tests::prefix::Prefix::new();
    let _serving = Running::start(
        Command::new(server::binary())
            .args(["serve", &format!("http://{}", origin.address()), "--listen", &port.to_string()])
            .args(["--dashboard", "off"])
            .env("XDG_RUNTIME_DIR", prefix.path())
            .env("TMPDIR", prefix.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
    .expect("it starts");
    wait::until("it accepts", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let mut command = top(&["-p", prefix.path().to_str().expect("plain")]);
    let mut terminal =
        Terminal::start(command.env("XDG_RUNTIME_DIR", prefix.path()).env("TMPDIR", prefix.path()), 80, 24);
    terminal.until("it follows", |text| text.contains("live") && text.contains("serve-"));
    terminal.press("q");
    assert!(terminal.ends().success());
}
