//! `millstream bench`: what it measures, and that every wrong use ends in one sentence and its exit status.

use crate::{bench, compare, in_one_line, millstream};
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, binary};
use millstream_tests::wait;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Nothing is measured, and standard error has one sentence with these words.
fn check_refused(arguments: &[&str], words: &str) {
    let (status, told, complained) = bench(arguments);
    assert_eq!(status, 1, "{arguments:?}: {complained}");
    assert_eq!(told, "", "{arguments:?}");
    let lines: Vec<&str> = complained.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains(words), "{arguments:?}: {complained}");
}

#[test]
fn a_run_is_told_as_text_json_and_a_page_and_compared_with_another() {
    let origin = Origin::fixed(200, &[], b"hello");
    let prefix = Prefix::new();
    let url = format!("http://{}/x", origin.address());
    let file = |name: &str| prefix.join(name).display().to_string();
    let (before, after, page) = (file("a.json"), file("b.json"), file("a.html"));
    let run =
        |json: &str| bench(&["-c", "4", "-t", "2", "-d", "2500ms", "--json", json, "--html", &page, &url]);
    for json in [&before, &after] {
        let (status, told, complained) = run(json);
        assert_eq!((status, complained.as_str()), (0, ""), "{told}");
        assert!(told.contains("Requests/sec") && told.contains("closed loop"), "{told}");
    }
    let outcome: serde_json::Value = serde_json::from_str(&prefix.read("a.json")).expect("it is JSON");
    let answers = outcome["counts"]["answers"].as_u64().expect("a count");
    assert!(answers > 100 && answers <= origin.count() as u64, "{answers} of {}", origin.count());
    assert!(prefix.read("a.html").contains("<svg"));
    let (status, told, _) = compare(&[&before, &after]);
    assert_eq!(status, 5, "one run of each tells nothing: {told}");
    assert!(
        told.starts_with(
            "Whether they differ is unknown: the difference between 1 run and 1 run may be chance"
        ),
        "{told}"
    );
    let (status, _, complained) = compare(&[&before, &page]);
    assert_eq!((status, complained.lines().count()), (1, 1), "{complained}");
}

#[test]
fn the_letters_of_ab_and_wrk_make_the_request() {
    let origin = Origin::fixed(201, &[], b"");
    let url = format!("http://{}/x", origin.address());
    let (status, told, complained) =
        bench(&["-n", "50", "-c", "5", "-m", "PUT", "-H", "X-A: 1", "-b", "hello", &url]);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
    let requests = origin.requests();
    assert_eq!(requests.len(), 50, "none asks whether all is well: each changes something");
    let last = requests.last().expect("there are 50");
    assert!(last.field("x-a") == Some("1") && last.field("content-length") == Some("5"));
    assert!(origin.connections() <= 6);
}

fn log_line(request: &str, status: u16) -> String {
    format!("127.0.0.1 - - [21/Nov/2026:10:00:00 +0000] \"{request}\" {status} 2 \"-\" \"-\"\n")
}

#[test]
fn what_failed_in_a_log_may_fail_again_and_nothing_else() {
    let origin = Origin::fixed(404, &[], b"");
    let prefix = Prefix::new();
    let log = log_line("GET /gone HTTP/1.1", 404) + &log_line("GET /there HTTP/1.1", 200);
    let log = prefix.write("access.log", &log).display().to_string();
    let url = format!("http://{}", origin.address());
    let (status, told, complained) = bench(&["-n", "100", "-c", "1", "--log", &log, &url]);
    assert_eq!(status, 0, "{complained}");
    assert!(told.contains("Errors: 50 (50 %)"), "{told}");
    assert!(complained.contains("1 of the distinct requests failed in the log too"), "{complained}");
    let (_, told, complained) = bench(&["-n", "100", "-c", "1", "--status", "200", "--log", &log, &url]);
    assert!(told.contains("Errors: 100 (100 %)") && !complained.contains("in the log too"), "{complained}");
}

#[test]
fn a_log_is_replayed_with_its_popularity() {
    let origin = Origin::fixed(200, &[], b"ok");
    let prefix = Prefix::new();
    let line = |request: &str| log_line(request, 200);
    let popular = line("GET /popular HTTP/1.1").repeat(9);
    let log =
        prefix.write("access.log", &(popular + &line("GET /rare HTTP/1.1") + &line("POST /never HTTP/1.1")));
    let log = log.display().to_string();
    let url = format!("http://{}", origin.address());
    let (status, _, complained) = bench(&["-n", "100", "-c", "1", "--log", &log, &url]);
    assert_eq!(status, 0, "{complained}");
    let requests = origin.requests();
    let asked = |path: &str| requests.iter().skip(1).filter(|request| request.target() == path).count();
    assert_eq!((asked("/popular"), asked("/rare"), asked("/never")), (90, 10, 0));
}

#[test]
fn every_answer_an_error_has_a_status_of_its_own() {
    let origin = Origin::fixed(500, &[], b"");
    let url = format!("http://{}/", origin.address());
    let (status, told, complained) = bench(&["-n", "20", "-c", "2", &url]);
    assert_eq!(status, 2, "{complained}");
    assert!(
        told.contains("No response as expected in ") && told.contains("20 responses with status 500, "),
        "{told}"
    );
    assert!(told.contains("--status 500") && !told.contains("UNFINISHED"), "{told}");
    let rate = told.lines().find_map(|line| line.strip_prefix("Requests/sec:")).expect("a rate").trim();
    let (all, expected) = rate.split_once(' ').expect("both rates");
    assert!(all.parse::<f64>().is_ok_and(|all| all > 1.0) && expected == "(0.00 as expected)", "{rate}");
    let last = complained.lines().last().unwrap_or_default();
    assert!(last.contains("all responses were errors: status 500 20 times"), "{complained}");
    let (status, _, complained) = bench(&["-n", "20", "-c", "2", "--status", "500", &url]);
    assert_eq!((status, complained.as_str()), (0, ""), "it is what was asked for");
}

#[test]
fn what_cannot_be_loaded_is_told_in_one_sentence() {
    let nobody = format!("http://127.0.0.1:{}/", ports::free());
    check_refused(&["-d", "1s", &nobody], "refuses connections: no process is listening there");
    check_refused(&["-d", "1s", "http://no-such-host.invalid/"], "no such host: \"no-such-host.invalid\"");
    check_refused(&["-d", "1s", "http://192.0.2.1/"], "--yes");
    check_refused(&["-d", "1s", "/page"], "begins with http://");
    check_refused(&["-c", "2", "-t", "3", &nobody], "3 threads need at least as many connections");
    check_refused(&["-c", "10", "-n", "5", &nobody], "5 requests cannot keep 10 connections busy");
    check_refused(&["--http2", "-m", "0", &nobody], "-m 0: write a number of at least 1");
    check_refused(&["--poisson", &nobody], "need an open loop: specify --rate or --find-max");
    check_refused(&["--log", "/nowhere/access.log", &nobody], "cannot be read");
    check_refused(&["-b", "@/nowhere/body", &nobody], "cannot be read");
    let plain = Origin::fixed(200, &[], b"");
    check_refused(
        &["-d", "1s", &format!("https://{}/", plain.address())],
        "write http:// instead of https://",
    );
    for (wrong, words) in [
        (&["-c", "0", &nobody][..], "'--connections <N>': write a number of at least 1"),
        (&["-d", "soon", &nobody], "write a time such as"),
        (&["--status", "20", &nobody], "write a whole number from 100 to 999"),
        (&["--log", "-", "--speed", "0", &nobody], "write a factor such as 1, 10 or 0.5"),
        (&["-t", "0", &nobody], "'--threads <N>': write a number of at least 1"),
        (&["-n", "0", &nobody], "'--requests <N>': write a number of at least 1"),
        (&["-d", "0", &nobody], "'--duration <TIME>': write a time above zero"),
        (&["-L", "--max-redirs", "x", &nobody], "write a whole number from 0 to 4294967295"),
        (&["--rate", "-1", &nobody], ""),
        (&[], ""),
    ] {
        let (status, told, complained) = bench(wrong);
        let is_error = complained.starts_with("error: ") && complained.contains(words);
        assert!(status == 1 && told.is_empty() && is_error, "{wrong:?}: {complained}");
    }
}

#[test]
fn a_body_without_an_end_and_silence_end_the_command() {
    let (listener, port) = ports::listener();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = [0; 1024];
                _ = stream.read(&mut head);
                _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                while stream.write_all(&[b'x'; 65536]).is_ok() {}
            });
        }
    });
    check_refused(&["-d", "1s", &format!("http://127.0.0.1:{port}/")], "an endless body");
    let (silent, port) = ports::listener();
    check_refused(
        &["-d", "1s", "--timeout", "300ms", &format!("http://127.0.0.1:{port}/")],
        "did not respond within",
    );
    drop::<TcpListener>(silent);
}

#[test]
fn who_waits_for_the_first_response_is_told_so() {
    // A response that goes on: a stream of events, as a client would follow it for hours.
    let origin = Origin::start(|_| {
        let mut steps = vec![Step::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())];
        (0..60).for_each(|_| {
            steps.extend([Step::Pause(Duration::from_millis(500)), Step::Send(b"data: x\n\n".to_vec())])
        });
        steps
    });
    let url = format!("http://{}/", origin.address());
    let (status, told, complained) = bench(&["-d", "1s", "--timeout", "3s", &url]);
    assert_eq!((status, told.as_str()), (1, ""), "{complained}");
    let waiting = complained.lines().next().unwrap_or_default();
    assert!(waiting.contains("waiting for the end of the first response, up to 3s"), "{complained}");
    assert_eq!(complained.lines().count(), 2, "then why there is none: {complained}");
}

#[test]
fn a_report_is_as_wide_as_the_terminal() {
    let origin = Origin::fixed(404, &[], b"");
    let url = format!("http://{}/", origin.address());
    for (columns, most) in [(Some("60"), 60), (None, 80), (Some("200"), 200)] {
        let mut command = millstream();
        command.args(["bench", "-n", "20", "-c", "2", &url]).env_remove("COLUMNS");
        command.envs(columns.map(|columns| ("COLUMNS", columns)));
        let output = command.stdin(Stdio::null()).output().expect("the binary runs");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let longest = told.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(
            longest <= most && (columns != Some("200") || longest > 100),
            "{columns:?}: {longest}\n{told}"
        );
    }
}

#[test]
fn plain_http_to_a_tls_port_is_told_as_such() {
    let prefix = Prefix::with_certificate("localhost");
    let site = "error_log @DIR@/error.log; pid @DIR@/nginx.pid; events {} http { access_log off;
        server { listen 127.0.0.1:@PORT@; listen 127.0.0.1:@TLSPORT@ ssl; ssl_certificate @DIR@/server.pem;
        ssl_certificate_key @DIR@/server.key; location / { return 200 over-tls; } } }";
    let port = ports::free();
    let server = Server::start_in(prefix, site, &[("TLSPORT", &port.to_string())]);
    assert_eq!(server.get("/").text(), "over-tls");
    check_refused(&["-d", "1s", &format!("http://127.0.0.1:{port}/")], "write https:// instead of http://");
    let url = format!("https://127.0.0.1:{port}/");
    check_refused(&["-d", "1s", &url], "is not trusted: it is self-signed");
    check_refused(&["-d", "1s", &url], "use --insecure (-k)");
    let (status, told, complained) = bench(&["-n", "100", "-c", "4", "-k", &url]);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
}

#[test]
fn an_open_loop_says_that_it_is_one() {
    let origin = Origin::start(|_| answer(200, &[], b"ok"));
    let url = format!("http://{}/", origin.address());
    let (status, told, complained) = bench(&["-d", "1s", "--rate", "200", "--poisson", &url]);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
    assert!(told.contains("open loop") && told.contains("200"), "{told}");
}

#[test]
fn with_same_body_another_body_than_the_first_is_an_error() {
    let count = AtomicUsize::new(0);
    let origin = Origin::start(move |request| {
        // Right when asked alone, another of the same length to every fourth of the load.
        let number = count.fetch_add(1, Ordering::Relaxed);
        let is_wrong = request.target() == "/changing" && number % 4 == 3;
        answer(200, &[], if is_wrong { b"oops!" } else { b"hello" })
    });
    let (good, changing) =
        (format!("http://{}/good", origin.address()), format!("http://{}/changing", origin.address()));
    let (status, told, complained) = bench(&["-n", "40", "-c", "1", "--same-body", &good]);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
    assert!(told.contains("Errors: none"), "{told}");
    let (status, told, _) = bench(&["-n", "40", "-c", "1", "--same-body", &changing]);
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("Errors: 10 (25 %)") && told.contains("unexpected body"), "{told}");
    let (_, told, _) = bench(&["-n", "40", "-c", "1", &changing]);
    assert!(told.contains("Errors: none"), "nobody asked for it: {told}");
}

#[test]
fn what_a_server_did_not_answer_in_time_is_told_and_so_is_an_early_end() {
    // Only the question before the load is answered.
    let count = AtomicUsize::new(0);
    let origin = Origin::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0..=20 => answer(200, &[], b"hello"),
        _ => vec![Step::Pause(Duration::from_secs(60))],
    });
    let prefix = Prefix::new();
    let json = prefix.join("run.json");
    let mut running = Running::start(
        millstream()
            .args([
                "bench",
                "-q",
                "-d",
                "60s",
                "--timeout",
                "60s",
                "--rate",
                "200",
                "-c",
                "4",
                "--warm-up",
                "0",
                "--json",
            ])
            .arg(&json)
            .arg(format!("http://{}/", origin.address()))
            .stdout(std::fs::File::create(prefix.join("told")).expect("its folder is there")),
    )
    .expect("the binary runs");
    wait::until("the server stands still", || origin.count() > 22);
    running.signal(Signal::INT);
    let status = running.wait(Duration::from_secs(30)).expect("it ends");
    assert_eq!(status.code(), Some(130), "it was stopped");
    let told = prefix.read("told");
    for words in ["INTERRUPTED", "NOT REACHED: 200 requests/s were requested", "Unfinished: ", "Errors: none"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    let run: serde_json::Value = serde_json::from_str(&prefix.read("run.json")).expect("it is JSON");
    assert_eq!((&run["interrupted"], &run["counts"]["answers"]), (&true.into(), &20.into()));
    let unfinished = run["counts"]["unfinished"].as_f64().expect("a count");
    let lost = run["lost_share"].as_f64().expect("a share");
    assert!(
        (lost - unfinished / (unfinished + 20.0)).abs() < 1e-9 && unfinished >= 4.0,
        "{lost} {unfinished}"
    );
}

#[test]
fn a_search_that_ctrl_c_ends_tells_what_had_held_until_then() {
    let origin = Origin::fixed(200, &[], b"ok");
    let prefix = Prefix::new();
    let json = prefix.join("run.json");
    // Twenty errors of a hundred are allowed for, so that a busy machine has a rate that holds.
    let mut running = Running::start(
        millstream()
            .args(["bench", "--find-max", "-d", "300ms", "--errors", "20%", "--json"])
            .arg(&json)
            .arg(format!("http://{}/", origin.address()))
            .stdout(std::fs::File::create(prefix.join("told")).expect("its folder is there"))
            .stderr(std::fs::File::create(prefix.join("progress")).expect("its folder is there")),
    )
    .expect("the binary runs");
    wait::until("a rate held", || prefix.read("progress").contains("  held  "));
    running.signal(Signal::INT);
    let status = running.wait(Duration::from_secs(30)).expect("it ends");
    let told = prefix.read("told");
    assert_eq!(status.code(), Some(130), "{told}");
    let first = told.lines().next().unwrap_or_default();
    assert!(first.contains(" requests/s held in "), "the result comes first: {told}");
    assert!(told.lines().count() < 60, "{told}");
    assert!(told.contains("which is not confirmed: the search was stopped"), "{told}");
    assert!(told.contains("Requests/sec"), "the best trial's figures: {told}");
    let run: serde_json::Value = serde_json::from_str(&prefix.read("run.json")).expect("it is JSON");
    assert!(run["search"]["confirmed"].is_null(), "{run}");
    let trials = run["search"]["trials"].as_array().expect("a list");
    assert!(trials.iter().any(|trial| trial["miss"].is_null()), "{trials:?}");
}

#[test]
fn a_request_before_the_load_that_may_have_changed_something_is_told() {
    let origin = Origin::fixed(200, &[], b"ok");
    let url = format!("http://{}/", origin.address());
    for (method, length, is_told) in
        [("GET", ["-d", "500ms"], false), ("POST", ["-d", "500ms"], true), ("POST", ["-n", "5"], false)]
    {
        let before = origin.count();
        let (status, told, complained) = bench(&["-c", "1", "-m", method, length[0], length[1], &url]);
        assert_eq!((status, complained.as_str()), (0, ""), "{method}: {told}");
        let words = in_one_line(&told);
        let says = "Before the load, 1 request checked for a response";
        assert_eq!(words.contains(says), is_told, "{method} {length:?}: {told}");
        assert!(length[0] == "-d" || origin.count() - before == 5, "{}", origin.count() - before);
    }
}

#[test]
fn of_many_urls_each_has_its_figures_and_those_with_errors_a_line() {
    let origin = Origin::start(|request| match request.target() {
        "/71" => answer(500, &[], b""),
        _ => answer(200, &[], b"ok"),
    });
    let prefix = Prefix::new();
    let json = prefix.join("run.json").display().to_string();
    let urls: Vec<String> = (0..72).map(|number| format!("http://{}/{number}", origin.address())).collect();
    let mut arguments = vec!["-n", "144", "-c", "1", "-t", "1", "--json", &json];
    arguments.extend(urls.iter().map(String::as_str));
    let (status, told, complained) = bench(&arguments);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
    assert!(told.contains("61 more without errors, see --json or --html"), "{told}");
    let line = told.lines().find(|line| line.trim_start().starts_with(&urls[71])).unwrap_or(&told);
    assert_eq!(line.split_whitespace().skip(1).collect::<Vec<_>>(), ["0", "2", "-", "-", "-"]);
    let run: serde_json::Value = serde_json::from_str(&prefix.read("run.json")).expect("it is JSON");
    assert_eq!(run["by_url"].as_array().map(Vec::len), Some(72));
}

#[test]
fn a_rate_that_needs_more_connections_than_ten_gets_them_and_an_unreached_one_names_its_cause() {
    let origin = Origin::start(|_| {
        let mut steps = vec![Step::Pause(Duration::from_millis(400))];
        steps.extend(answer(200, &[], b"late"));
        steps
    });
    let url = format!("http://{}/", origin.address());
    // 80 a second that take 400 ms each are 32 on their way.
    let (status, told, complained) = bench(&["--rate", "80", "-d", "2s", &url]);
    assert_eq!(status, 0, "{complained}");
    assert!(!told.contains("NOT REACHED"), "{told}");
    assert!(told.contains("as many connections as needed, up to "), "{told}");
    let (status, told, complained) = bench(&["--rate", "80", "-d", "2s", "-c", "4", &url]);
    assert_eq!(status, 0, "{complained}");
    assert!(told.contains("NOT REACHED: 80 requests/s were requested"), "{told}");
    assert!(told.contains("all 4 connections were busy") && told.contains("(-c)"), "{told}");
}

#[test]
fn what_a_load_left_with_the_server_is_not_taken_for_a_single_request() {
    // The first request stands behind a queue, as after a run just before.
    let is_behind = AtomicBool::new(true);
    let origin = Origin::start(move |_| {
        let pause = if is_behind.swap(false, Ordering::Relaxed) { 1_000 } else { 30 };
        let mut steps = vec![Step::Pause(Duration::from_millis(pause))];
        steps.extend(answer(200, &[], b"done"));
        steps
    });
    let url = format!("http://{}/", origin.address());
    let (status, told, complained) = bench(&["-c", "4", "-d", "2500ms", &url]);
    // That request takes so long that whoever waits hears of it.
    assert_eq!((status, complained.lines().count()), (0, 1), "{complained}");
    assert!(complained.contains("waiting for the end of the first response"), "{complained}");
    let words = in_one_line(&told);
    assert!(words.contains("The first single request took 1"), "{told}");
    assert!(words.contains("the server was still busy with earlier work"), "{told}");
    let single = words.split("ms under load and ").nth(1).and_then(|rest| rest.split("ms").next());
    let is_short = single.and_then(|number| number.parse::<f64>().ok()).is_none_or(|number| number < 300.0);
    assert!(is_short, "{told}");
}

#[test]
fn an_api_whose_answers_end_late_under_load_is_not_named_as_the_limit() {
    // Like head and body in two packets: at once for single requests on new connections, 40 ms apart on kept ones.
    let asked = AtomicUsize::new(0);
    let origin = Origin::start(move |_| {
        let is_alone = asked.fetch_add(1, Ordering::Relaxed) < 15;
        let between = Duration::from_millis(if is_alone { 0 } else { 40 });
        vec![
            Step::Pause(Duration::from_millis(20)),
            Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".to_vec()),
            Step::Pause(between),
            Step::Send(b"done".to_vec()),
        ]
    });
    let (status, told, complained) =
        bench(&["-c", "8", "-d", "2500ms", &format!("http://{}/", origin.address())]);
    assert_eq!((status, complained.as_str()), (0, ""));
    let words = in_one_line(&told);
    assert!(words.contains("arrives 4") && words.contains("after their first byte"), "{told}");
    assert!(words.contains("Nagle's algorithm") && !words.contains("requests are queued"), "{told}");
}

#[test]
fn a_log_may_come_from_a_pipe_and_nothing_is_read_for_ever() {
    let origin = Origin::fixed(200, &[], b"ok");
    let url = format!("http://{}", origin.address());
    let mut zcat = millstream()
        .args(["bench", "-q", "-n", "10", "-c", "1", "--log", "-", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let line = "127.0.0.1 - - [21/Nov/2026:10:00:00 +0000] \"GET /piped HTTP/1.1\" 200 2\n";
    zcat.stdin.take().expect("it is piped").write_all(line.as_bytes()).expect("it is read");
    assert!(zcat.wait().expect("it ends").success());
    assert!(origin.requests().iter().skip(1).all(|request| request.target() == "/piped"));
    check_refused(&["--log", "/dev/zero", &url], "/dev/zero cannot be read: it has an endless line");
    check_refused(&["--log", "/dev/null", &format!("{url}/prefix")], "a log has its own paths");
    check_refused(&["-b", "@/dev/zero", &url], "/dev/zero is larger than 256 MB");
    check_refused(&["-b", "@", &url], "has no file name");
    let few = Command::new("sh")
        .args(["-c", "ulimit -n 200; exec \"$0\" bench -q -d 1s -c 1000 \"$1\""])
        .arg(binary())
        .arg(&url)
        .output()
        .expect("the binary runs");
    let complained = String::from_utf8_lossy(&few.stderr).into_owned();
    assert!(few.stdout.is_empty() && complained.contains("open files"), "{complained}");
}

#[test]
fn few_requests_need_no_more_connections_and_each_url_has_its_line() {
    let origin = Origin::fixed(200, &[], b"ok");
    let url = |path: &str| format!("http://{}/{path}", origin.address());
    let (status, told, complained) = bench(&["-n", "4", &url("one"), &url("two")]);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
    for path in ["one", "two"] {
        let line = told.lines().find_map(|line| line.strip_prefix("    ")?.strip_prefix(&url(path)));
        let figures: Vec<&str> = line.unwrap_or_default().split_ascii_whitespace().take(2).collect();
        assert_eq!(figures, ["2", "0"], "{told}");
    }
}

#[test]
fn figures_that_nobody_could_read_are_an_error() {
    let origin = Origin::fixed(200, &[], b"ok");
    let url = format!("http://{}/", origin.address());
    for json in [&["--json", "-"][..], &[]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let mut command = millstream();
        command.args(["bench", "-q", "-n", "4", &url]).args(json).stdout(full).stderr(Stdio::piped());
        let output = command.output().expect("the binary runs");
        let complained = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{complained}");
        assert!(complained.contains("standard output cannot be written"), "{complained}");
    }
}

#[test]
fn the_highest_rate_of_a_server_with_a_limit_is_found_and_confirmed() {
    let prefix = Prefix::new();
    let site = "error_log @DIR@/error.log; pid @DIR@/nginx.pid; events {} http { access_log off;
        limit_req_zone $server_port zone=all:1m rate=400r/s;
        server { listen 127.0.0.1:@PORT@; location / { root @DIR@; limit_req zone=all burst=1000; } } }";
    prefix.write("within", "within the limit");
    let server = Server::start_in(prefix, site, &[]);
    let json = server.prefix().join("found.json");
    let url = format!("http://127.0.0.1:{}/within", server.port());
    let file = json.display().to_string();
    let mut all = String::new();
    // A machine that has no core for a generator confirms less than there is, or nothing; then it is tried again.
    for _ in 0..3 {
        let (status, told, complained) =
            bench(&["--find-max", "-d", "800ms", "-c", "50", "-t", "1", "--json", &file, &url]);
        assert_eq!(status, 0, "{told}{complained}");
        let run: serde_json::Value =
            serde_json::from_str(&server.prefix().read("found.json")).expect("it is JSON");
        let rate = run["mode"]["open"]["rate"].as_f64().expect("a rate");
        let confirmed = &run["search"]["confirmed"];
        if confirmed.is_null() {
            assert!(told.contains("which is not confirmed"), "{told}");
        } else {
            assert!(confirmed["of"] == 15 && confirmed["held"].as_u64() >= Some(14), "{confirmed}");
            assert!(told.contains(" of 15 further trials"), "{told}");
            assert!(rate <= 420.0, "nothing makes a ceiling higher: {told}");
            if rate >= 380.0 {
                return;
            }
        }
        all.push_str(&told);
    }
    panic!("{all}");
}
