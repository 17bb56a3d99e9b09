//! Advice is never harmful: each line that tells a user what to change is followed here, in front of an API with sessions.
//!
//! Following it must end no session, give no client the page of another, and send the API no more requests than before. The lines are
//! those of the dashboard, `top` and `explain` (`admin/src/explain/help.rs`) and of `-t` (`conf/src/advise`); a line without a
//! row here fails. `capacity` and the ladder have their tests beside their sentences (`load`).

use millstream_tests::client::{self, Client};
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::ports;
use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::server::{Server, command};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

const SITE: &str = site! {
    main "worker_processes 1;"
    http "dashboard 127.0.0.1:@DASHBOARD@; api_allow local;
        proxy_cache_path memory keys_zone=z:@ROOM@ memory=@ROOM@;"
    server "server_name a.example b.example localhost;
        location / { proxy_pass http://@ORIGIN@; proxy_set_header X-Real-IP $remote_addr; proxy_cache z; @LINES@ }"
};

/// A case of `advice/cases.txt`.
#[derive(Debug, Clone, Copy)]
struct Followed {
    advice: &'static str,
    rule: Option<&'static str>,
    /// Of the location, before and after.
    lines: [&'static str; 2],
    /// Before and after, by [`fields_of`].
    api: [&'static str; 2],
    clients: Clients,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Clients {
    All,
    Authorized,
    Forms,
}

impl Followed {
    fn read(advice: &'static str, lines: impl Iterator<Item = &'static str>) -> Followed {
        let mut row = Followed { advice, rule: None, lines: [""; 2], api: [""; 2], clients: Clients::All };
        for line in lines {
            match line.trim().split_once(": ").expect(line) {
                ("rule", rule) => row.rule = Some(rule),
                ("before", lines) => row.lines[0] = lines,
                ("after", lines) => row.lines[1] = lines,
                ("api before", says) => row.api[0] = says,
                ("api after", says) => row.api[1] = says,
                ("clients", "authorized") => row.clients = Clients::Authorized,
                ("clients", "forms") => row.clients = Clients::Forms,
                _ => panic!("{advice}: {line}"),
            }
        }
        row
    }
}

fn cases() -> Vec<Followed> {
    let text = include_str!("advice/cases.txt");
    let blocks = text.split("\n\n").map(|block| block.lines().filter(|line| !line.starts_with('#')));
    blocks.filter_map(|mut lines| Some(Followed::read(lines.next()?, lines))).collect()
}

/// Lines of the dashboard, `top` and `explain`.
fn shown() -> Vec<Followed> {
    cases().into_iter().filter(|row| row.rule.is_none()).collect()
}

/// Lines of `-t`.
fn checked() -> Vec<Followed> {
    cases().into_iter().filter(|row| row.rule.is_some()).collect()
}

const VERSION: &str = "\"1\"";

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 7), Ipv4Addr::new(127, 0, 0, 8)];

/// `path` is the same for every client if it is `/all`.
fn fields_of(kind: &str, request: &Request) -> Vec<(&'static str, String)> {
    let is_for_all = request.target().starts_with("/all");
    let mut fields = Vec::new();
    let mut add = |name, value: &str| fields.push((name, value.to_owned()));
    for word in kind.split(' ') {
        match word {
            "no-cache" => add("Cache-Control", "no-cache"),
            // Of a version, whoever asks.
            "etag" => add("ETag", VERSION),
            "shared" if is_for_all => add("Cache-Control", "max-age=60"),
            "shared-public" if is_for_all => add("Cache-Control", "public, max-age=60"),
            "vary-all" => {
                add("Cache-Control", "max-age=60");
                add("Vary", "*");
            }
            "vary-named" => {
                add("Cache-Control", "max-age=60");
                add("Vary", "Cookie, Authorization, Host, X-Real-IP");
            }
            "vary-form" => add("Vary", "RSC"),
            _ => {}
        }
    }
    fields
}

/// `/login` begins a session, `/here` depends on the client's address, and every other page but `/all` is
/// personal.
fn api(kind: &'static str) -> Origin {
    Origin::start(move |request| page(kind, request))
}

fn page(kind: &str, request: &Request) -> Vec<Step> {
    if request.target().starts_with("/login") {
        let user = request.field("x-user").unwrap_or_default();
        return answer(
            200,
            &[("Set-Cookie", &format!("session={user}"))],
            format!("welcome {user}").as_bytes(),
        );
    }
    let cookie = request.field("cookie").and_then(|cookie| cookie.strip_prefix("session="));
    let user = cookie.or(request.field("authorization")).unwrap_or("nobody");
    let (form, host) = (request.field("rsc").unwrap_or("html"), request.field("host").unwrap_or_default());
    let mut text = match request.target() {
        "/all" => format!("{form} for all"),
        "/here" => format!("for {}", request.field("x-real-ip").unwrap_or_default()),
        _ => format!("{form} of {user} at {host}"),
    };
    let fields = fields_of(kind, request);
    if request.field("if-none-match") == Some(VERSION) {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        return answer(304, &fields, b"");
    }
    if kind.contains("large") {
        text = format!("{text}{}", " ".repeat(4_000_000));
    }
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    answer(200, &fields, text.as_bytes())
}

#[derive(Debug, Default)]
struct Seen {
    harm: Vec<String>,
    of_others: Vec<String>,
    requests: usize,
    helps: BTreeSet<String>,
}

fn drive(lines: &str, kind: &'static str, clients: Clients) -> Seen {
    let origin = api(kind);
    let (room, lines) = match lines.strip_prefix("room=") {
        Some(room) => (room, ""),
        None => ("1m", lines),
    };
    let dashboard = ports::free();
    let values = [
        ("ORIGIN", &*origin.address()),
        ("DASHBOARD", &dashboard.to_string()),
        ("ROOM", room),
        ("LINES", lines),
    ];
    let server = Server::start(SITE, &values);
    let mut seen = Seen::default();
    let mut client = server.client();
    for round in 0..6 {
        if round > 0 && kind == "stale" {
            make_stale(dashboard);
        }
        visit(&mut client, clients, &mut seen.harm);
        for address in ADDRESSES {
            let mut client = Client::connect_from(address, server.port()).expect("it listens");
            let told = client.get("/here").expect("an answer").text();
            if told.trim_end() != format!("for {address}") {
                seen.of_others.push(format!("{address} gets the page {told:?}"));
            }
        }
    }
    seen.requests = origin.requests().len();
    let misses = client::get(dashboard, "/api/9/misses").json();
    for location in misses.as_array().into_iter().flatten() {
        for causes in ["requests", "not_stored"] {
            let causes = location[causes].as_object().into_iter().flatten();
            seen.helps.extend(causes.filter_map(|(_, cause)| Some(cause["help"].as_str()?.to_owned())));
        }
    }
    seen
}

fn make_stale(dashboard: u16) {
    let body = "{\"all\": true, \"soft\": true}";
    let mut client = Client::connect(dashboard).expect("it listens");
    let request = format!(
        "POST /api/9/http/caches/z/purge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(client.ask(request).status, 200);
}

fn visit(client: &mut Client, clients: Clients, harm: &mut Vec<String>) {
    let users = ["alice", "bob"];
    let mut expect = |path: &str, fields: &[(&str, &str)], expected: &str| {
        let answer = client.get_with(path, fields).expect("an answer");
        if answer.status != 200 || answer.text().trim_end() != expected {
            harm.push(format!(
                "{path} with {fields:?}: {} {:?}, not {expected:?}",
                answer.status,
                answer.text().trim_end()
            ));
        }
        if path == "/login" {
            let wanted = expected.replace("welcome ", "session=");
            if answer.field("set-cookie") != Some(&*wanted) {
                harm.push(format!("{fields:?} has no session but {:?}", answer.field("set-cookie")));
            }
        }
    };
    if clients == Clients::All {
        for user in users {
            expect("/login", &[("X-User", user)], &format!("welcome {user}"));
        }
    }
    for user in users {
        let cookie = format!("session={user}");
        if clients == Clients::All {
            expect("/all", &[("Cookie", &cookie)], "html for all");
        }
        if matches!(clients, Clients::All | Clients::Authorized) {
            expect("/all", &[("Authorization", user)], "html for all");
        }
    }
    let forms = ["1", "2"];
    for form in forms.iter().filter(|_| clients == Clients::Forms) {
        expect("/all", &[("RSC", form)], &format!("{form} for all"));
    }
    expect("/all", &[("Cache-Control", "no-cache")], "html for all");
    expect("/all", &[], "html for all");
    let mut own = |fields: &[(&str, &str)], user: &str| {
        let answer = client.get_with("/mine", fields).expect("an answer");
        let text = answer.text();
        if !text.contains(&format!(" of {user} at ")) {
            harm.push(format!("/mine with {fields:?}: {:?} is not the page of {user}", text.trim_end()));
        }
    };
    for user in users {
        if clients == Clients::All {
            own(&[("Cookie", &format!("session={user}"))], user);
        }
        if matches!(clients, Clients::All | Clients::Authorized) {
            own(&[("Authorization", user)], user);
        }
        if clients == Clients::Authorized {
            own(&[("Authorization", "staging"), ("Cookie", &format!("session={user}"))], user);
        }
    }
    own(&[], "nobody");
    // A page that names a host of the site names the one that was asked.
    for (host, other) in [("a.example", "b.example"), ("b.example", "a.example")] {
        let text = client.get_with("/mine", &[("Host", host)]).expect("an answer").text();
        if text.contains(other) {
            harm.push(format!("{host} gets the page of {other}"));
        }
    }
}

fn follow(row: &Followed) {
    let before = drive(row.lines[0], row.api[0], row.clients);
    let is_given = before.helps.iter().any(|help| help.starts_with(row.advice));
    assert!(is_given, "nobody is given {:?}, but {:#?}", row.advice, before.helps);
    let after = drive(row.lines[1], row.api[1], row.clients);
    assert_eq!(after.harm, Vec::<String>::new(), "{row:?}");
    // By the address alone a file may have shared pages already.
    assert!(after.of_others.is_empty() || !before.of_others.is_empty(), "{row:?}: {:?}", after.of_others);
    // What shared a page before asked the API less often than it may.
    let is_right = before.harm.is_empty() && before.of_others.is_empty();
    let is_more = is_right && after.requests > before.requests;
    assert!(!is_more, "{} requests, then {}: {row:?}", before.requests, after.requests);
}

#[test]
fn whoever_follows_the_advice_of_the_dashboard_loses_no_session_shares_no_page_and_asks_the_api_no_more() {
    skip_on_nginx!();
    shown().iter().for_each(follow);
}

const IMPERATIVES: [&str; 6] = ["write ", "have the API ", "put ", "give ", "remove ", "take "];

#[test]
fn every_line_of_the_dashboard_that_tells_what_to_change_is_followed() {
    let text = include_str!("../../../admin/src/explain/help.rs");
    let literals = text.split('"').skip(1).step_by(2);
    let changes = literals.filter(|text| IMPERATIVES.iter().any(|word| text.starts_with(word)));
    let mut count = 0;
    for text in changes {
        count += 1;
        let is_followed = shown().iter().any(|row| text.starts_with(row.advice));
        assert!(is_followed, "no row follows {text:?}");
    }
    assert!(count >= 9, "{count} lines were found");
    // What an API says against caching, errors and cookies are never to be overridden.
    for forbidden in
        ["proxy_ignore_headers", "proxy_hide_header", "take out", "200 404", "proxy_cache_valid any"]
    {
        assert!(!text.contains(forbidden), "{forbidden}");
    }
}

/// Rules whose help changes neither what is cached nor who gets it: rights, listeners, notes; and `members`,
/// whose help separates two locations (`conf/tests/conf/sharing.rs`). `unused_zones` and `unobeyed` name a
/// location "whose responses are the same for every client".
const OTHERS: [&str; 7] = [
    "strangers",
    "api_beside_pass",
    "other_family",
    "grpc_over_http1",
    "members",
    "unused_zones",
    "unobeyed",
];

fn check(lines: &str) -> String {
    let prefix = Prefix::new();
    let directory = prefix.path().to_str().unwrap_or_default().to_owned();
    prefix.write("users", "alice:{PLAIN}a\nbob:{PLAIN}b\n");
    let values = [
        ("ROOM", "1m"),
        ("DASHBOARD", "8081"),
        ("PORT", "8080"),
        ("ORIGIN", "127.0.0.1:1"),
        ("LINES", &lines.replace("@DIR@", &directory)),
    ];
    let text = fill(SITE, &[&values[..], &[("DIR", &directory)]].concat());
    let file = prefix.write("nginx.conf", &text);
    let output = command(prefix.path(), &file).arg("-t").output().expect("the binary runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn whoever_follows_the_warnings_of_a_check_loses_no_session_and_shares_no_page() {
    skip_on_nginx!();
    for Followed { advice, rule, lines, .. } in checked() {
        let rule = rule.unwrap_or_default();
        let [before, after] = lines.map(check);
        assert!(before.contains(advice), "{rule} does not say {advice:?}: {before}");
        assert!(!after.contains(advice), "{rule} still says {advice:?}: {after}");
        // Users of passwords have a test of their own.
        if rule != "passwords" {
            let [before, after] = lines.map(|lines| drive(lines, "", Clients::All));
            assert_eq!(after.harm, Vec::<String>::new(), "{rule}");
            assert!(
                after.of_others.is_empty() || !before.of_others.is_empty(),
                "{rule}: {:?}",
                after.of_others
            );
        }
    }
}

#[test]
fn each_rule_of_a_check_has_its_advice_followed() {
    let folder = millstream_tests::workspace().join("conf/src/advise");
    for entry in std::fs::read_dir(folder).expect("the rules are there") {
        let name = entry.expect("an entry").file_name().to_string_lossy().replace(".rs", "");
        let is_followed = checked().iter().any(|row| row.rule == Some(&name)) || OTHERS.contains(&&*name);
        assert!(is_followed || name == "mod", "no row follows the advice of {name}");
    }
}

#[test]
fn users_behind_passwords_keep_their_own_pages_once_the_key_names_the_credential() {
    skip_on_nginx!();
    let origin = api("");
    let prefix = Prefix::new();
    prefix.write("users", "alice:{PLAIN}a\nbob:{PLAIN}b\n");
    let lines = checked()
        .iter()
        .find(|row| row.rule == Some("passwords"))
        .map(|row| row.lines[1])
        .unwrap_or_default();
    let lines = lines.replace("@DIR@", &prefix.path().display().to_string());
    let dashboard = ports::free().to_string();
    let values =
        [("ROOM", "1m"), ("DASHBOARD", &*dashboard), ("ORIGIN", &origin.address()), ("LINES", &lines)];
    let server = Server::start(SITE, &values);
    for _ in 0..3 {
        for credential in ["Basic YWxpY2U6YQ==", "Basic Ym9iOmI="] {
            let answer = server.get_with("/mine", &[("Authorization", credential)]);
            assert!(answer.text().contains(credential), "{credential}: {}", answer.text());
        }
        assert_eq!(server.get("/mine").status, 401);
    }
    assert_eq!(origin.count(), 2, "each has a stored page");
}
