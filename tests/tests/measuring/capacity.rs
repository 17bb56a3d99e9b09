//! `millstream capacity`: servers alone and behind the proxy, its sentence, and how it ends where there is nothing to say.

use std::process::{Output, Stdio};
use std::time::Duration;

use crate::{in_one_line, millstream};
use millstream_tests::host;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::{self, Running};
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use serde_json::Value;

const SHORT: [&str; 6] = ["--rounds", "4", "--duration", "1s", "--warm-up", "200ms"];

fn capacity(arguments: &[&str]) -> Output {
    let mut command = millstream();
    command.args(["capacity", "-v"]).args(arguments).args(SHORT).stdin(Stdio::null());
    command.output().expect("the binary runs")
}

fn measured(arguments: &[&str]) -> (Value, String) {
    let prefix = Prefix::new();
    let file = prefix.join("capacity.json");
    let output = capacity(&[arguments, &["--json", file.to_str().expect("a path in ASCII")]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let json = serde_json::from_str(&prefix.read("capacity.json")).expect("it writes JSON");
    (json, in_one_line(&text))
}

/// Whether it names the host as the reason for no verdict, and the host did take the cores.
fn blames_the_host(text: &str, stolen_before: u64) -> bool {
    text.contains("Unknown: the host of this virtual machine gave") && host::stolen() > stolen_before
}

/// Other load may change the rate of this machine, so the bounds are those that only a mistake exceeds.
fn assert_gains(text: &str) {
    let gains = ["A second server doubles the throughput", "A second server gains"];
    assert!(gains.iter().any(|says| text.starts_with(says)), "{text}");
}

fn slow() -> Origin {
    Origin::start(|_| {
        let mut steps = vec![Step::Pause(Duration::from_millis(30))];
        steps.extend(answer(200, &[], b"slow"));
        steps
    })
}

#[test]
fn a_second_server_that_waits_doubles_the_throughput_and_the_api_is_the_limit() {
    skip_on_nginx!();
    let stolen = host::stolen();
    let (json, text) = measured(&["--sleep", "40ms", "--at-once", "8", "-c", "16"]);
    let row = &json["rows"][0];
    assert_eq!(json["schema"], "millstream.capacity/2");
    assert_eq!((&json["is_simulated"], &row["name"]), (&Value::Bool(true), &Value::from("40ms")));
    assert_gains(&text);
    assert!(text.contains("Simulated: the servers are embedded and only sleep"), "{text}");
    let limit = if blames_the_host(&text, stolen) { "unknown" } else { "api" };
    assert_eq!(row["verdict"]["limit"], limit, "{text}");
    // Two servers, eight at once each, 25 times a second.
    let together = row["together"]["run"]["rate"].as_f64().expect("a rate");
    assert!(together <= 440.0, "{together}");
    // With one connection kept where 32 are in use, each lull closes some.
    assert!(row["below"]["opened_per_second"].as_f64().is_some_and(|opened| opened > 1.0), "{row}");
    assert!(text.contains("With keepalive 1, the proxy opened "), "{text}");
}

#[test]
fn a_quiet_one_shows_nothing_of_its_runs() {
    skip_on_nginx!();
    let folder = Prefix::new();
    let start = |flag: &[&str], name: &str| {
        let log = std::fs::File::create(folder.join(name)).expect("own directory");
        let mut command = millstream();
        command.args(["capacity", "--sleep", "20ms", "--duration", "60s", "-c", "2"]).args(flag);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let running = Running::start(&mut command).expect("the binary runs");
        wait::until("it has started its proxy", || running.tree().len() >= 3);
        running
    };
    let all = [start(&["-q"], "short"), start(&["--quiet"], "long"), start(&[], "shown")];
    // A line comes after so many seconds of a run, and the quiet ones were there first.
    wait::until("a line of its first run", || folder.read("shown").contains("1 of "));
    for mut running in all {
        running.signal(Signal::INT);
        assert_eq!(running.wait(Duration::from_secs(15)).and_then(|status| status.code()), Some(130));
    }
    let end = folder.read("shown").lines().last().unwrap_or_default().to_owned() + "\n";
    assert_eq!((folder.read("short"), folder.read("long")), (end.clone(), end));
}

#[test]
fn two_servers_of_the_users_are_measured_as_they_are() {
    skip_on_nginx!();
    let (one, two) = (slow(), slow());
    let urls = [&one, &two].map(|origin| format!("http://{}/page", origin.address()));
    let stolen = host::stolen();
    let (json, text) = measured(&[&urls[0], &urls[1], "-c", "4"]);
    let row = &json["rows"][0];
    assert_gains(&text);
    assert!(!text.contains("Simulated"), "{text}");
    assert_eq!(row["alone"].as_array().map(Vec::len), Some(2));
    // They take all comers, so that more would be answered.
    assert!(text.contains("Unknown: no bottleneck was reached") || blames_the_host(&text, stolen), "{text}");
    assert_eq!(row["verdict"]["limit"], "unknown", "{text}");
    // All are asked for the same by the same name, alone and behind the proxy.
    for origin in [&one, &two] {
        let requests = origin.requests();
        assert!(requests.iter().all(|request| request.target() == "/page"));
        assert!(requests.iter().any(|request| request.field("host") == Some(&one.address())));
    }
}

#[test]
fn what_cannot_be_measured_ends_with_one_sentence() {
    skip_on_nginx!();
    let origin = slow();
    let failing = Origin::fixed(500, &[], b"no");
    let (here, closed) = (origin.address(), ports::free());
    let refused = format!("http://127.0.0.1:{closed}/");
    for (urls, says) in [
        (vec![refused], "no process is listening there".to_owned()),
        (vec![format!("http://{here}/a"), format!("http://{here}/b")], "have different paths".to_owned()),
        (vec![format!("http://{here}/a"); 2], "are the same server".to_owned()),
        (vec![format!("https://{here}/")], "TLS to the servers behind the proxy is not supported".to_owned()),
        (vec![format!("http://{}/", failing.address())], "responds with 500".to_owned()),
        (vec!["http://192.0.2.1.invalid/".to_owned()], "no such host".to_owned()),
        (vec!["ftp://127.0.0.1/".to_owned()], "cannot be loaded".to_owned()),
    ] {
        let output = capacity(&urls.iter().map(String::as_str).collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{urls:?}: {said}");
        assert!(said.contains(&says) && said.trim_end().lines().count() == 1, "{urls:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    let nothing = capacity(&[]);
    assert_eq!(nothing.status.code(), Some(1));
}

#[test]
fn ctrl_c_ends_it_and_everything_that_it_started() {
    skip_on_nginx!();
    let mut command = millstream();
    command.args(["capacity", "--sleep", "20ms", "--duration", "60s"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running::start(&mut command).expect("the binary runs");
    wait::until("it has started its proxy", || running.tree().len() >= 3);
    let family = running.tree();
    running.signal(Signal::INT);
    assert_eq!(running.wait(Duration::from_secs(15)).and_then(|status| status.code()), Some(130));
    for id in family {
        assert!(!process::is_alive(id), "{id} of the proxies is left");
    }
}

#[test]
fn ctrl_c_after_the_first_row_tells_that_row() {
    skip_on_nginx!();
    let folder = Prefix::new();
    let output = std::fs::File::create(folder.join("output")).expect("own directory");
    let mut command = millstream();
    command.args(["capacity", "--sleep", "20ms,3h", "--at-once", "8", "-c", "8"]);
    command.args(["--rounds", "4", "--duration", "450ms", "--warm-up", "100ms"]);
    command.arg("--json").arg(folder.join("capacity.json")).stdin(Stdio::null()).stdout(output);
    let log = std::fs::File::create(folder.join("log")).expect("own directory");
    let mut running = Running::start(command.stderr(log)).expect("the binary runs");
    // The proxies of the first row end with it, and those of the second are not started before its servers have answered.
    wait::until("it has started its proxies", || running.tree().len() >= 3);
    wait::until("they have ended", || running.tree().len() == 1);
    running.signal(Signal::INT);
    let status = running.wait(Duration::from_secs(15)).and_then(|status| status.code());
    assert_eq!(status, Some(130), "{}", folder.read("log"));
    let json: Value = serde_json::from_str(&folder.read("capacity.json")).expect("it writes JSON");
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["cut_short"], serde_json::json!({ "measured": 21, "of": 42 }));
    assert!(folder.read("output").contains("Stopped after 21 of 42 measurements"));
}
