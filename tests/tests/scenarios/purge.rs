//! Purging as clients do it that people have: their requests as they send them, who may, and what is gone afterwards.

use millstream_tests::client::Client;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::{self, Server};
use millstream_tests::wait;
use rustix::process::Signal;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

/// A cache with the usual kind of key; further directives in its location and beside it.
fn start(origin: &Origin, here: &str, beside: &str) -> Server {
    let template = site! {
        main "worker_processes 2;" log "info"
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=answers:1m;
            upstream api { server @ORIGIN@; keepalive 8; }"
        server "server_name localhost blog.example;
            proxy_cache_purge_allow local; api_allow local;
            location / {
                proxy_pass http://api;
                proxy_cache answers;
                @KEY@
                proxy_cache_valid 200 1h;
                proxy_cache_tag $upstream_http_x_cache_tags;
                add_header X-Cache-Status $upstream_cache_status;
                @HERE@
            }
            @BESIDE@"
    };
    let usual = "proxy_cache_key $scheme$request_method$host$request_uri;";
    let key = if here.contains("proxy_cache_key") { "" } else { usual };
    let address = origin.address();
    Server::start(template, &[("ORIGIN", &address), ("KEY", key), ("HERE", here), ("BESIDE", beside)])
}

/// Numbers its responses; `/tagged/…` has the tags `post-1` and the path's last word.
fn api() -> Origin {
    Origin::numbered(move |request, number| {
        let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
        let last = path.rsplit('/').next().unwrap_or_default();
        let tags = format!("post-1,{last}");
        let fields: &[(&str, &str)] =
            if path.starts_with("/tagged/") { &[("X-Cache-Tags", &tags)] } else { &[] };
        answer(200, fields, format!("{path} {number}").as_bytes())
    })
}

const PATHS: [&str; 6] = ["/", "/blog/", "/blog/one", "/blog/one?page=2", "/tagged/a", "/tagged/b"];

fn fill(server: &Server) {
    for expected in ["MISS", "HIT"] {
        for path in PATHS {
            let got = server.get_with(path, &[("Host", "blog.example")]);
            if expected == "HIT" {
                assert_eq!(got.cache_status(), expected, "{path}");
            }
        }
    }
}

fn gone(server: &Server) -> Vec<&'static str> {
    let asked = |path: &&str| server.get_with(path, &[("Host", "blog.example")]).cache_status() != "HIT";
    PATHS.into_iter().filter(asked).collect()
}

#[test]
fn what_purging_clients_send_does_what_they_mean_or_is_refused() {
    skip_on_nginx!("its free version purges nothing");
    let origin = api();
    let server = start(&origin, "", "");
    for case in include_str!("purge/clients.txt").split("\n\n").skip(1) {
        fill(&server);
        let (client, case) = case.split_once('\n').expect("who sends it");
        let (request, expected) = case.split_once("\n=> ").expect("what is to be gone");
        let expected = expected.trim_end();
        let answer = server.ask(format!("{}\r\n\r\n", request.replace('\n', "\r\n")));
        assert_eq!(
            answer.status,
            if expected == "refused" { 400 } else { 200 },
            "{client}: {}",
            answer.text()
        );
        let paths: Vec<&str> = match expected {
            "refused" => Vec::new(),
            "all" => PATHS.to_vec(),
            paths => paths.split(' ').collect(),
        };
        assert_eq!(gone(&server), paths, "{client}");
    }
}

fn purge(server: &Server, fields: &[(&str, &str)]) -> u16 {
    server.request("PURGE", "/blog/", fields).status
}

#[test]
fn strangers_may_not_purge_and_the_log_says_why() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "", "");
    fill(&server);
    for field in ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "Origin"] {
        assert_eq!(purge(&server, &[("Host", "blog.example"), (field, "127.0.0.1")]), 403, "{field}");
    }
    assert_eq!(gone(&server), [""; 0]);
    wait::until("the log says why", || {
        server.log().contains("purge refused: the request was forwarded by a proxy")
    });

    let server = start(&origin, "proxy_cache_purge_allow 192.0.2.0/24;", "");
    assert_eq!(purge(&server, &[]), 403);
    let server = start(
        &origin,
        "proxy_cache_purge_allow 192.0.2.0/24; proxy_cache_purge_token a-secret-that-is-long-enough-to-be-one;",
        "",
    );
    assert_eq!(purge(&server, &[]), 403);
    assert_eq!(purge(&server, &[("Authorization", "Bearer a-secret")]), 403);
    let shown = ("Authorization", "Bearer a-secret-that-is-long-enough-to-be-one");
    fill(&server);
    assert_eq!(purge(&server, &[shown, ("Host", "blog.example"), ("X-Forwarded-For", "192.0.2.1")]), 200);
}

#[test]
fn with_the_methods_off_purge_is_the_upstreams() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "proxy_cache_purge_methods off;", "");
    assert_eq!(purge(&server, &[]), 200);
    assert!(origin.requests()[0].head.starts_with("PURGE /blog/ "));
}

#[test]
fn a_condition_purges_with_204_as_in_nginx_plus() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "proxy_cache_purge $http_x_purge;", "");
    fill(&server);
    let ask = |path: &str, flag: &str| {
        let fields = [("Host", "blog.example"), ("X-Purge", flag)];
        server.get_with(path, &fields).status
    };
    assert_eq!(ask("/blog/one", "0"), 200);
    assert_eq!(ask("/blog/one", "1"), 204);
    assert_eq!(ask("/tagged/*", "1"), 204);
    assert_eq!(gone(&server), ["/blog/one", "/tagged/a", "/tagged/b"]);
}

#[test]
fn a_soft_purge_leaves_what_may_be_used_while_it_is_updated() {
    skip_on_nginx!();
    let origin = api();
    let stale =
        "proxy_cache_use_stale updating; proxy_cache_background_update on; proxy_cache_purge_soft on;";
    let server = start(&origin, stale, "");
    fill(&server);
    let before = server.get_with("/blog/", &[("Host", "blog.example")]).text();
    assert_eq!(purge(&server, &[("Host", "blog.example")]), 200);
    let after = server.get_with("/blog/", &[("Host", "blog.example")]);
    assert_eq!((after.cache_status(), after.text()), ("STALE", before.clone()));
    wait::until("it is updated", || {
        let now = server.get_with("/blog/", &[("Host", "blog.example")]);
        now.cache_status() == "HIT" && now.text() != before
    });
}

#[test]
fn a_change_whose_turn_has_not_come_is_seen_after_a_restart() {
    skip_on_nginx!();
    let origin = api();
    for signal in [Signal::QUIT, Signal::TERM] {
        let mut server = start(&origin, "proxy_cache_invalidation rate=1r/m;", "");
        change_twice(&server, "/blog/one");
        assert!(server.stop(signal).is_some_and(|status| status.success()));
        server.run().expect("it starts again");
        assert_eq!(server.client().get("/blog/one").expect("an answer").cache_status(), "MISS");
    }
}

fn rated(workers: usize, zone: &str, rate: &str) -> String {
    let cached = "proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_invalidation rate=@RATE@;";
    site! {
        main "worker_processes @WORKERS@;" log "notice"
        http "@ZONE@"
        server "location / { proxy_pass http://@ORIGIN@; add_header X-Cache-Status $upstream_cache_status; @CACHED@ }"
    }
    .replace("@WORKERS@", &workers.to_string())
    .replace("@ZONE@", zone)
    .replace("@CACHED@", if zone.is_empty() { "" } else { cached })
    .replace("@RATE@", rate)
}

/// Changes a resource twice: the first change invalidates, the second waits for its turn, from another
/// client's view.
fn change_twice(server: &Server, path: &str) {
    let mut other = Client::connect_from(Ipv4Addr::new(127, 0, 0, 7), server.port()).expect("it listens");
    other.get(path).expect("an answer");
    for expected in ["MISS", "HIT"] {
        assert_eq!(server.request("POST", path, &[]).status, 200);
        assert_eq!(other.get(path).expect("an answer").cache_status(), expected, "{path}");
    }
}

fn reload(server: &Server, template: &str, origin: &Origin) {
    server.rewrite(template, &[("ORIGIN", &origin.address())]);
    server.reload();
}

const ON_DISK: &str = "proxy_cache_path @DIR@/cache keys_zone=answers:1m;";

#[test]
fn a_change_whose_turn_has_not_come_is_seen_after_a_reload_that_takes_its_worker_away() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(&rated(8, ON_DISK, "20r/m"), &[("ORIGIN", &origin.address())]);
    // On connections of their own, and so on several workers.
    let paths: Vec<String> = (0..16).map(|number| format!("/page/{number}")).collect();
    paths.iter().for_each(|path| change_twice(&server, path));
    reload(&server, &rated(1, ON_DISK, "20r/m"), &origin);
    for path in &paths {
        wait::until("its turn has come", || server.get(path).cache_status() == "MISS");
    }
}

#[test]
fn a_change_whose_turn_has_not_come_is_seen_in_a_zone_that_was_away_meanwhile() {
    skip_on_nginx!();
    let origin = api();
    let with = rated(2, ON_DISK, "1r/m");
    let server = Server::start(&with, &[("ORIGIN", &origin.address())]);
    change_twice(&server, "/page");
    wait::until("it is on the disk", || server.prefix().count_files("cache") == 1);
    reload(&server, &rated(2, "", "1r/m"), &origin);
    assert_eq!(server.get("/page").cache_status(), "none");
    reload(&server, &with, &origin);
    assert_eq!(server.get("/page").cache_status(), "MISS");
}

#[test]
fn a_purge_holds_over_a_restart() {
    skip_on_nginx!();
    let origin = api();
    let mut server = start(&origin, "", "");
    fill(&server);
    wait::until("all are on the disk", || server.prefix().count_files("cache") == PATHS.len());
    let fields = [("Host", "blog.example"), ("X-Purge-Method", "regex")];
    let told = server.request("PURGE", "/blog/.*", &fields);
    assert_eq!(told.status, 200);
    assert!(server.stop(Signal::KILL).is_some());
    server.run().expect("it starts again");
    assert_eq!(gone(&server), ["/blog/", "/blog/one", "/blog/one?page=2"]);
}

fn run(server: &Server, arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(server::binary());
    command
        .args(arguments)
        .arg("-c")
        .arg(server.prefix().join("nginx.conf"))
        .arg("-p")
        .arg(server.prefix().path());
    command.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_command_purges_through_the_control_socket() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "", "");
    fill(&server);
    let url = |path: &str| format!("http://blog.example:{}{path}", server.port());
    let done = run(&server, &["purge", &url("/blog/one"), "--tag", "b"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("httpGETblog.example/blog/one\n"), "{}", text(&done.stdout));
    assert_eq!(gone(&server), ["/blog/one", "/tagged/b"]);

    let done = run(&server, &["purge", "--prefix", &url("/blog/")]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(gone(&server), ["/blog/", "/blog/one", "/blog/one?page=2"]);

    let done = run(&server, &["purge", "--zone", "answers", "--all"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(gone(&server), PATHS);

    for (arguments, expected) in [
        (
            &["purge", "--zone", "nowhere", "--all"][..],
            "cache zone \"nowhere\" not found; existing zones: answers",
        ),
        (&["purge"], "specify a URL"),
        (&["purge", "--all"], "need --zone"),
        (&["purge", "ftp://x/"], "invalid URL"),
    ] {
        let refused = run(&server, arguments);
        assert!(!refused.status.success());
        assert!(text(&refused.stderr).contains(expected), "{}", text(&refused.stderr));
    }
}

#[test]
fn the_control_socket_is_its_owners_lives_as_long_as_the_process_and_survives_a_reload() {
    skip_on_nginx!();
    let origin = api();
    let mut server = start(&origin, "", "");
    let socket = server.prefix().join("nginx.sock");
    let mode = std::fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    server.reload();
    let all = ["purge", "--zone", "answers", "--all"];
    assert!(run(&server, &all).status.success());
    assert!(server.stop(Signal::KILL).is_some());
    assert!(socket.exists(), "nobody could remove it");
    let refused = run(&server, &all);
    assert!(text(&refused.stderr).contains("start millstream with this configuration first"));
    server.run().expect("a socket that nobody listens on is replaced");
    assert!(run(&server, &all).status.success());
    assert!(server.stop(Signal::TERM).is_some());
    assert!(!socket.exists());
}

#[test]
fn the_api_purges_for_whom_it_admits_and_only_where_it_may_write() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "", "location /api/ { api write=on; } location /read/ { api; }");
    fill(&server);
    let ask = |path: &str, body: &str, field: (&str, &str)| {
        let (name, value) = field;
        let length = body.len();
        server.ask(format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{name}: {value}\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
        ))
    };
    let nothing = ("X-Nothing", "x");
    let body = r#"{"tags": ["a"], "url": "http://blog.example/blog/"}"#;
    assert_eq!(ask("/api/purge", body, ("X-Forwarded-For", "1.2.3.4")).status, 403);
    assert_eq!(ask("/read/purge", body, nothing).status, 405);
    assert_eq!(ask("/api/nowhere", body, nothing).status, 404);
    assert_eq!(ask("/api/purge", "{\"tag\": 1}", nothing).status, 400);
    assert_eq!(ask("/api/purge", &format!("\"{}\"", "x".repeat(70_000)), nothing).status, 413);
    assert_eq!(gone(&server), [""; 0]);
    let told = ask("/api/9/http/caches/answers/purge", body, nothing);
    assert_eq!(told.status, 200, "{}", told.text());
    assert_eq!(gone(&server), ["/blog/", "/tagged/a"]);
    let caches = server.get("/read/caches");
    let zones = caches.json();
    assert!(zones["answers"]["disk"]["files"].as_u64().is_some_and(|files| files > 0), "{zones}");
    assert_eq!(server.get("/read/caches/nowhere").status, 404);
}

#[test]
fn misses_are_counted_by_location_and_cause() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let never: &[(&str, &str)] = &[("Cache-Control", "no-store")];
        answer(200, if request.head.starts_with("GET /never") { never } else { &[] }, b"x")
    });
    let server = start(&origin, "proxy_cache_bypass $http_x_new;", "location /api/ { api; }");
    for path in ["/a", "/a", "/b", "/never", "/never"] {
        server.get(path);
    }
    server.get_with("/a", &[("X-New", "1")]);
    // A cause is counted before its request is answered.
    let told = server.get("/api/misses").json();
    let site = &told[0];
    assert_eq!(site["location"]["name"], "location /", "{told}");
    assert_eq!(site["requests"]["absent"]["count"], 2, "{told}");
    assert_eq!(site["requests"]["bypass"]["count"], 1, "{told}");
    assert_eq!(site["not_stored"]["no_store"]["count"], 2, "{told}");
    assert!(site["not_stored"]["no_store"]["last"].as_i64().is_some_and(|last| last > 0), "{told}");
    assert_eq!(site["not_stored"]["no_store"]["text"], "the response has no-store", "{told}");
}

#[test]
fn explain_names_the_key_the_place_and_what_decided() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "", "");
    let url = format!("http://blog.example:{}/blog/one", server.port());
    let before = run(&server, &["explain", &url]);
    assert!(before.status.success(), "{}", text(&before.stderr));
    assert!(text(&before.stdout).contains("MISS: nothing is stored"), "{}", text(&before.stdout));
    fill(&server);
    let told = text(&run(&server, &["explain", &url, "-H", "Accept: text/html"]).stdout);
    for part in [
        "HIT: the stored response is fresh",
        "key       httpGETblog.example/blog/one",
        "nginx.conf:",
        "$request_uri    /blog/one",
        "proxy_cache_valid",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(run(&server, &["purge", &url]).status.success());
    let json = run(&server, &["explain", &url, "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(told["now"]["status"], "MISS", "{told}");
    assert_eq!(told["zone"], "answers");
    assert_eq!(told["last_purge"]["by"], "key", "{told}");
    // Looking changed nothing.
    assert_eq!(gone(&server), ["/blog/one"]);
}

#[test]
fn the_free_modules_words_purge_as_nginx_helper_and_foshttpcache_have_them() {
    skip_on_nginx!();
    let origin = api();
    let here = "proxy_cache_purge PURGE from 127.0.0.1;";
    let beside =
        "location ~ /purge(/.*) { proxy_cache_purge answers $scheme$request_method$host$1$is_args$args; }";
    let server = start(&origin, here, beside);
    fill(&server);
    // nginx-helper 2.2, class-fastcgi-purger.php purge_url(), "get_request".
    for (path, expected) in
        [("/purge/blog/one", 200), ("/purge/blog/one?page=2", 200), ("/purge/blog/not-there", 404)]
    {
        let fields = [("Host", "blog.example"), ("User-Agent", "WordPress/6.7; http://blog.example")];
        let told = server.get_with(path, &fields);
        assert_eq!(told.status, expected, "{path}: {}", told.text());
    }
    // FOSHttpCache 3, ProxyClient/Nginx::purge() without a location of its own.
    assert_eq!(purge(&server, &[("Host", "blog.example"), ("Connection", "Close")]), 200);
    assert_eq!(gone(&server), ["/blog/", "/blog/one", "/blog/one?page=2"]);
    let stranger = [("Host", "blog.example"), ("X-Forwarded-For", "192.0.2.1")];
    assert_eq!(server.get_with("/purge/tagged/a", &stranger).status, 403);
    assert_eq!(gone(&server), [""; 0]);
}

#[test]
fn the_example_empties_its_cache_in_every_way_that_it_shows() {
    skip_on_nginx!();
    let origin = api();
    let example =
        std::fs::read_to_string(millstream_tests::workspace().join("examples/purging/millstream.conf"))
            .expect("the example is there");
    let other = millstream_tests::ports::free().to_string();
    let template = example
        .replace("127.0.0.1:8000", "@ORIGIN@")
        .replace("127.0.0.1:8080", "127.0.0.1:@PORT@")
        .replace("127.0.0.1:8081", "127.0.0.1:@OTHER@")
        .replace("events {}", "events {} pid @DIR@/nginx.pid; error_log @DIR@/error.log;");
    let server = Server::start(&template, &[("ORIGIN", &origin.address()), ("OTHER", &other)]);
    fill(&server);
    assert_eq!(purge(&server, &[("Host", "blog.example")]), 200);
    assert_eq!(purge(&server, &[("Host", "blog.example"), ("Cache-Tag", "b")]), 200);
    assert_eq!(server.get_with("/purge/blog/one", &[("Host", "blog.example")]).status, 200);
    let all = run(&server, &["purge", "--api", &format!("http://127.0.0.1:{other}/api/"), "--tag", "a"]);
    assert!(all.status.success(), "{}", text(&all.stderr));
    assert_eq!(gone(&server), ["/blog/", "/blog/one", "/tagged/a", "/tagged/b"]);
}

#[test]
fn serve_has_a_control_socket_that_its_port_finds() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=60")], b"served");
    let prefix = millstream_tests::prefix::Prefix::new();
    let port = millstream_tests::ports::free();
    let output = std::fs::File::create(prefix.join("output")).expect("own directory");
    let mut serving = millstream_tests::process::Running::start(
        std::process::Command::new(server::binary())
            .args(["serve", &format!("http://{}", origin.address()), "--listen", &port.to_string()])
            .args(["--dashboard", "off"])
            .env("XDG_RUNTIME_DIR", prefix.path())
            .env("TMPDIR", prefix.path())
            .stdin(std::process::Stdio::null())
            .stdout(output.try_clone().expect("an open file"))
            .stderr(output),
    )
    .expect("it starts");
    wait::until("it accepts", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert!(!prefix.read("output").contains(".sock"), "{}", prefix.read("output"));
    let url = format!("http://127.0.0.1:{port}/");
    let host = format!("127.0.0.1:{port}");
    let ask = || millstream_tests::client::get_with(port, "/", &[("Host", &host)]);
    assert_eq!((ask().cache_status(), ask().cache_status()), ("MISS", "HIT"));
    let command = |arguments: &[&str]| {
        std::process::Command::new(server::binary())
            .args(arguments)
            .args(["-p", prefix.path().to_str().expect("plain")])
            .env("XDG_RUNTIME_DIR", prefix.path())
            .env("TMPDIR", prefix.path())
            .output()
            .expect("it runs")
    };
    let told = command(&["explain", &url]);
    assert!(text(&told.stdout).contains("Cache-Control: max-age=60"), "{}", text(&told.stdout));
    assert!(command(&["purge", &url]).status.success());
    assert_eq!(ask().cache_status(), "MISS");
    serving.signal(Signal::INT);
    assert!(serving.wait(std::time::Duration::from_secs(15)).is_some());
    assert_eq!(std::fs::read_dir(prefix.join("millstream")).expect("it was made").count(), 0);
    assert!(
        text(&command(&["purge", &url]).stderr)
            .contains("no control socket of millstream serve was found in")
    );
}

/// A request waits at the API during a purge.
#[test]
fn what_is_learned_from_an_answer_that_began_before_a_purge_is_not_stored_after_it() {
    skip_on_nginx!();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let (begun, may_go_on) = (std::sync::Mutex::new(begun), std::sync::Mutex::new(may_go_on));
    let origin = Origin::start(move |request| {
        let fields = [("Content-Location", "/p"), ("Cache-Control", "max-age=60")];
        if request.head.starts_with("POST") {
            _ = begun.lock().expect("one at a time").send(());
            _ = may_go_on.lock().expect("one at a time").recv();
            return answer(200, &fields, b"old");
        }
        answer(200, &fields[1..], b"new")
    });
    let server = start(&origin, "", "");
    let mut client = server.client();
    let posted = std::thread::spawn(move || client.request("POST", "/p", &[("Content-Length", "0")]));
    has_begun.recv().expect("it has come");
    assert_eq!(server.request("PURGE", "/p", &[]).status, 404);
    go_on.send(()).expect("somebody waits");
    assert_eq!(posted.join().expect("no panic").expect("an answer").text(), "old");
    assert_eq!(server.get("/p").text(), "new");
}

/// Method, path and fields, and the status if something was stored.
type Form<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);

#[test]
fn a_purge_of_a_url_that_finds_nothing_is_no_success() {
    skip_on_nginx!();
    let origin = api();
    let helper = "location ~ /purge(/.*) { proxy_cache_purge answers $scheme$request_method$host$1; }";
    for (soft, zone) in
        [("", "@DIR@/cache levels=1:2"), ("proxy_cache_purge_soft on;", "@DIR@/cache"), ("", "memory")]
    {
        let template = site! {
            main "worker_processes 2;"
            http "proxy_cache_path @ZONE@ keys_zone=answers:1m;
                proxy_cache_purge_allow local; api_allow local; @SOFT@"
            server "server_name localhost blog.example;
                location / {
                    proxy_pass http://@ORIGIN@; proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_purge $http_x_purge;
                    proxy_cache_key $scheme$request_method$host$request_uri;
                    add_header X-Cache-Status $upstream_cache_status;
                }
                @HELPER@"
        }
        .replace("@ZONE@", zone)
        .replace("@SOFT@", soft)
        .replace("@HELPER@", helper);
        let server = Server::start(&template, &[("ORIGIN", &origin.address())]);
        let forms: [Form<'_>; 3] = [
            ("PURGE", "/blog/one", &[], 200),
            ("GET", "/blog/", &[("X-Purge", "1")], 204),
            ("GET", "/purge/tagged/a", &[], 200),
        ];
        let purge = |(method, path, fields, _): Form<'_>| {
            let fields = [&[("Host", "blog.example")], fields].concat();
            server.request(method, path, &fields)
        };
        for form in forms {
            let before = purge(form);
            assert_eq!(before.status, 404, "{zone} {form:?}: {}", before.text());
            if form.3 == 200 {
                assert!(before.text().contains("\"status\":\"not_found\""), "{}", before.text());
            }
        }
        fill(&server);
        for form in forms {
            assert_eq!(purge(form).status, form.3, "{zone} {form:?}");
            if soft.is_empty() {
                assert_eq!(purge(form).status, 404, "{zone} {form:?}: once more");
            }
        }
        // What is a rule goes for what there will be as well: nothing is looked for.
        let rule = server.request("PURGE", "/blog/*", &[("Host", "blog.example")]);
        assert_eq!(rule.status, 200);
        let url = |path: &str| format!("http://blog.example:{}{path}", server.port());
        let nothing = run(&server, &["purge", &url("/never")]);
        assert_eq!(nothing.status.code(), Some(1));
        assert!(
            text(&nothing.stdout).contains("no responses stored in zone answers"),
            "{}",
            text(&nothing.stdout)
        );
        assert_eq!(run(&server, &["purge", &url("/tagged/b")]).status.code(), Some(0));
    }
}

const SPELLED: [&str; 8] = [
    "/caf%C3%A9",
    "/caf%c3%a9/x",
    "/a%2Fb",
    "/a%20b",
    "/a+b?x=%20y&z=1",
    "/\u{20ac}/x",
    "/%e2%82%ac,(y);z='1'?%C3%A9",
    "/plain",
];

#[test]
fn a_location_of_its_own_purges_what_is_stored_however_the_path_is_written() {
    skip_on_nginx!();
    for (key, groups, own) in [
        ("$host$request_uri", "(/.*)", "$host$1$is_args$args"),
        ("$host$uri$is_args$args", "(/.*)", "$host$1$is_args$args"),
        ("$scheme$request_method$host$request_uri", "(/.*)", "$scheme$request_method$host$1$is_args$args"),
        ("$scheme$proxy_host$request_uri", "(/.*)", "httpapi$1$is_args$args"),
        ("$request_uri", "/(?<rest>.*)", "/$rest$is_args$args"),
    ] {
        let origin = api();
        let beside = format!("location ~ ^/purge{groups}$ {{ proxy_cache_purge answers {own}; }}");
        let server = start(&origin, &format!("proxy_cache_key {key};"), &beside);
        let ask = |path: &str| server.get_with(path, &[("Host", "blog.example")]);
        for path in SPELLED {
            let others = ["/a/b", "/other"];
            for path in others.iter().chain([&path]) {
                ask(path);
                assert_eq!(ask(path).cache_status(), "HIT", "{key} {path}");
            }
            let told = ask(&format!("/purge{path}"));
            assert_eq!(told.status, 200, "{key} {path}: {}", told.text());
            assert_eq!(ask(path).cache_status(), "MISS", "{key} {path}");
            let is_kept = |other: &&&str| key.contains("request_uri") || **other != "/a/b";
            for other in others.iter().filter(is_kept) {
                assert_eq!(ask(other).cache_status(), "HIT", "{key} {path} {other}");
            }
        }
        let told = ask("/purge/caf%C3%A9*");
        assert_eq!(told.status, 200, "{}", told.text());
        assert_eq!(ask("/caf%C3%A9").cache_status(), "MISS", "{key}");
    }
}

#[test]
fn a_url_is_purged_as_a_browser_shows_it() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "", "");
    for (sent, shown) in [
        ("/caf%C3%A9", "/caf\u{e9}"),
        ("/a%20b", "/a b"),
        ("/x?q=%C3%BC%20y", "/x?q=\u{fc} y"),
        ("/caf%C3%A9", "/caf%c3%a9"),
        ("/%22quoted%22", "/\"quoted\""),
    ] {
        let ask = || server.get_with(sent, &[("Host", "blog.example")]);
        ask();
        assert_eq!(ask().cache_status(), "HIT", "{sent}");
        let told = run(&server, &["purge", &format!("http://blog.example:{}{shown}", server.port())]);
        assert_eq!(told.status.code(), Some(0), "{shown}: {}{}", text(&told.stdout), text(&told.stderr));
        assert_eq!(ask().cache_status(), "MISS", "{shown}");
    }
}

/// Equivalent spellings (RFC 3986 §6.2.2), and another path.
const EQUIVALENT: [(&[&str], &str); 3] = [
    (&["/caf%C3%A9/1", "/caf%c3%a9/1", "/caf%C3%a9/1", "/caf\u{e9}/1", "/%63af%c3%A9/1"], "/cafe/1"),
    (&["/~user/1", "/%7Euser/1", "/%7euser/1", "/~%75ser/1"], "/%26user/1"),
    (&["/a%2Fb/1", "/a%2fb/1", "/%61%2fb/1"], "/a/b/1"),
];

#[test]
fn every_spelling_of_a_url_purges_every_other_by_itself_and_by_prefix() {
    skip_on_nginx!();
    let origin = api();
    let server = start(&origin, "", "");
    let host = ("Host", "blog.example");
    let ask = |path: &str| server.get_with(path, &[host]);
    let command = |url: &str| {
        let told = run(&server, &["purge", &format!("http://blog.example:{}{url}", server.port())]);
        (told.status.code(), text(&told.stdout))
    };
    for (spellings, other) in EQUIVALENT {
        for stored in spellings {
            for purged in spellings {
                let prefix = format!("{}*", purged.trim_end_matches('1'));
                for (what, by_command) in
                    [(*purged, false), (prefix.as_str(), false), (prefix.as_str(), true), (*purged, true)]
                {
                    for path in [*stored, other] {
                        ask(path);
                        assert_eq!(ask(path).cache_status(), "HIT", "{path}");
                    }
                    if by_command {
                        command(what);
                    } else {
                        server.ask(format!("PURGE {what} HTTP/1.1\r\nHost: blog.example\r\n\r\n"));
                    }
                    assert_eq!(
                        ask(stored).cache_status(),
                        "MISS",
                        "{stored} by {what}, command: {by_command}"
                    );
                    assert_eq!(ask(other).cache_status(), "HIT", "{other} by {what}, command: {by_command}");
                }
            }
        }
    }
    // What is usual is found, as the response says.
    for (stored, purged) in [
        ("/%e4%bd%a0", "/%E4%BD%A0"),
        ("/%E4%BD%A0", "/%e4%bd%a0"),
        ("/%E4%BD%A0", "/\u{4f60}"),
        ("/%7eu", "/%7Eu"),
        ("/~u", "/%7Eu"),
    ] {
        ask(stored);
        let (code, told) = command(purged);
        assert_eq!(code, Some(0), "{stored} by {purged}: {told}");
    }
}

#[test]
fn a_purge_by_another_spelling_holds_over_a_restart() {
    skip_on_nginx!();
    let origin = api();
    let mut server = start(&origin, "", "");
    let paths = ["/caf%c3%a9/1", "/%7Eu"];
    let ask = |server: &Server, path| server.get_with(path, &[("Host", "blog.example")]);
    for path in paths {
        ask(&server, path);
    }
    wait::until("both are on the disk", || server.prefix().count_files("cache") == paths.len());
    for purged in ["/caf%C3%A9/*", "/~u"] {
        run(&server, &["purge", &format!("http://blog.example:{}{purged}", server.port())]);
    }
    assert!(server.stop(Signal::KILL).is_some());
    server.run().expect("it starts again");
    for path in paths {
        assert_eq!(ask(&server, path).cache_status(), "MISS", "{path}");
    }
}

#[test]
fn a_key_that_names_the_method_has_what_each_method_stored_purged() {
    skip_on_nginx!();
    let origin = api();
    let stored = "proxy_cache_key $request_method$host$request_uri; proxy_cache_methods POST; proxy_cache_purge $http_x_purge;";
    let beside = "location ~ ^/purge(/.*)$ { proxy_cache_purge answers $request_method$host$1; }";
    let forms: [Form<'_>; 6] = [
        ("PURGE", "/blog/one", &[], 200),
        ("PURGE", "/blog/*", &[], 200),
        ("GET", "/blog/one", &[("X-Purge", "1")], 204),
        ("GET", "/purge/blog/one", &[], 200),
        ("PURGE", "/purge/blog/one", &[], 200),
        ("GET", "/purge/blog/*", &[], 200),
    ];
    for (method, path, fields, expected) in forms {
        let server = start(&origin, stored, beside);
        let host = [("Host", "blog.example")];
        let ask = |method: &str| {
            let answer = server.request(method, "/blog/one", &host);
            answer.field("X-Cache-Status").unwrap_or_default().to_owned()
        };
        // A change makes what others stored untrue: it is first.
        for method in ["POST", "GET", "HEAD"] {
            ask(method);
        }
        assert_eq!(["POST", "GET", "HEAD"].map(ask), ["HIT"; 3], "{method} {path}");
        let fields = [&host[..], fields].concat();
        let purged = server.request(method, path, &fields);
        assert_eq!(purged.status, expected, "{method} {path}: {}", purged.text());
        assert_eq!(["HEAD", "GET"].map(ask), ["MISS"; 2], "{method} {path}: {}", purged.text());
        if !path.starts_with("/purge/") {
            assert_eq!(ask("POST"), "MISS", "{method} {path}: {}", purged.text());
        }
    }
}
