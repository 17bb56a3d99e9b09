//! What `bench` is told to demand and how: bounds with an exit status, warm-up, stages, redirects, and files for other tools.

use crate::bench;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use serde_json::Value;

fn measured(arguments: &[&str]) -> (i32, Value, String) {
    let (status, told, complained) = bench(&[&["--json", "-"], arguments].concat());
    let outcome = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}{complained}"));
    (status, outcome, complained)
}

#[test]
fn a_bound_that_is_not_kept_has_an_exit_status_of_its_own_and_its_place_in_the_json() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let origin = Origin::start(move |_| {
        let is_wrong = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 4 == 3;
        answer(if is_wrong { 500 } else { 200 }, &[], b"ok")
    });
    let url = format!("http://{}/", origin.address());
    let (status, run, said) = measured(&[
        "-n",
        "40",
        "-c",
        "1",
        "--fail",
        "p99>30s",
        "--fail",
        "errors>1%",
        "--fail",
        "errors>10",
        &url,
    ]);
    assert_eq!(status, 6, "{said}");
    let verdicts: Vec<&str> = run["thresholds"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|judged| judged["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["passed", "failed", "passed"]);
    assert_eq!(
        (&run["thresholds"][1]["value"], &run["thresholds"][1]["limit"]),
        (&0.25.into(), &0.01.into())
    );
    assert!(said.contains("millstream: FAILED: errors were 25 % (--fail 'errors>1%')"), "{said}");
    let answer = said.lines().find(|line| line.contains(" requests/s, p50 ")).unwrap_or_default();
    assert!(
        answer.contains(". FAILED: errors were 25 % (--fail 'errors>1%')"),
        "the first line says it too: {said}"
    );
    // Of 30 right answers none lies beyond the 99th percentile.
    assert!(answer.contains(", max ") && !said.contains("    99%"), "{said}");
    assert!(
        said.contains("did not fail: p99 was ") && said.contains(", the longest of 30 (--fail 'p99>30s')"),
        "{said}"
    );
    let (status, told, complained) = bench(&["-n", "40", "-c", "1", "--fail", "errors>50%", &url]);
    assert_eq!((status, complained.as_str()), (0, ""));
    assert!(told.contains("did not fail: errors were 25 % (--fail 'errors>50%')"), "{told}");
    let (status, _, complained) = bench(&["--fail", "p99>soon", &url]);
    assert!(status == 1 && complained.contains("column 5: write a time such as 50ms"), "{complained}");
}

#[test]
fn a_warm_up_is_the_default_and_is_said() {
    let origin = Origin::fixed(200, &[], b"ok");
    let url = format!("http://{}/", origin.address());
    let (_, told, _) = bench(&["-d", "1s", "-c", "1", &url]);
    assert!(told.contains("the first 100ms are a warm-up and not counted"), "{told}");
    let (_, run, said) = measured(&["-d", "1s", "-c", "1", "--warm-up", "0", &url]);
    assert_eq!(run["warm_up_seconds"], 0.0);
    assert!(said.contains("no warm-up: "), "{said}");
    let before = origin.count();
    assert_eq!(measured(&["-n", "10", "-c", "1", &url]).1["warm_up_seconds"], 0.0);
    assert_eq!(origin.count() - before, 11, "a number of requests is one that somebody counts");
}

#[test]
fn stages_ramp_the_rate_of_an_open_loop() {
    let origin = Origin::fixed(200, &[], b"ok");
    let url = format!("http://{}/", origin.address());
    let (status, told, complained) = bench(&["--stages", "1s:200,0s:20,500ms:20", &url]);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
    let stages = "open loop in stages: 1s from 0 to 200/s, then a jump to 20/s, then 500ms at 20/s (73.3 requests/s on average";
    assert!(told.contains(stages), "{told}");
    let last = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let limit = "A run without --stages (a closed loop) shows the server's bottleneck.";
    assert!(last.ends_with(limit), "{told}");
    let (status, run, _) = measured(&["--stages", "1s:200,0s:20,500ms:20", &url]);
    assert_eq!(status, 0);
    // 0 to 200 in a second are 100; half a second at 20 are 10.
    let due = run["counts"]["answers"].as_u64().zip(run["counts"]["unfinished"].as_u64()).map(|(a, b)| a + b);
    assert!(due.is_some_and(|due| (108..=111).contains(&due)), "{run}");
    let stages = run["schedule"]["stages"].as_array().expect("stages");
    let answered = |stage: usize| stages[stage]["answered"].as_f64().expect("a rate");
    assert!((80.0..115.0).contains(&answered(0)) && (10.0..30.0).contains(&answered(2)), "{stages:?}");
    let (status, _, complained) = bench(&["--stages", "1s", &url]);
    assert!(status == 1 && complained.contains("write a time and a rate such as 30s:1k"), "{complained}");
}

#[test]
fn redirects_are_followed_on_request_within_a_bound() {
    let origin = Origin::start(|request| match request.target() {
        "/start" => answer(302, &[("Location", "/deeper/a")], b"moved"),
        "/deeper/a" => answer(307, &[("Location", "b?c"), ("Connection", "close")], b""),
        "/deeper/b?c" => answer(200, &[], b"here"),
        "/elsewhere" => answer(301, &[("Location", "http://127.0.0.1:1/")], b""),
        _ => answer(302, &[("Location", "/again")], b""),
    });
    let url = |path: &str| format!("http://{}{path}", origin.address());
    let (status, run, said) = measured(&["-n", "20", "-c", "2", "-L", &url("/start")]);
    let counts = &run["counts"];
    assert_eq!((status, &counts["answers"], &counts["redirects"]), (0, &20.into(), &40.into()), "{said}");
    assert_eq!(counts["statuses"], serde_json::json!({ "200": 20, "302": 20, "307": 20 }));
    assert_eq!((&counts["requests"], &counts["errors"]["redirect"]), (&60.into(), &0.into()));
    let (status, run, _) = measured(&["-n", "5", "-c", "1", &url("/start")]);
    assert_eq!(
        (status, &run["counts"]["statuses"]["302"]),
        (0, &5.into()),
        "without it a redirect is an answer"
    );
    let (status, run, _) = measured(&["-d", "500ms", "--rate", "40", "-L", &url("/start")]);
    assert_eq!((status, &run["counts"]["errors"]["redirect"]), (0, &0.into()));
    for (path, words) in [("/again", "redirects more than 3 times"), ("/elsewhere", "another server")] {
        let (status, _, complained) = bench(&["-n", "5", "-c", "1", "-L", "--max-redirs", "3", &url(path)]);
        assert!(status == 1 && complained.contains(words), "{complained}");
    }
}

#[test]
fn a_run_is_exported_for_hdrhistogram_and_prometheus() {
    let origin = Origin::fixed(200, &[], b"ok");
    let prefix = Prefix::new();
    let file = |name: &str| prefix.join(name).display().to_string();
    let (log, text) = (file("run.hlog"), file("run.prom"));
    let url = format!("http://{}/", origin.address());
    let (status, _, complained) =
        bench(&["-n", "50", "-c", "1", "--export-hdr", &log, "--export-prometheus", &text, &url]);
    assert_eq!((status, complained.as_str()), (0, ""));
    let log = prefix.read("run.hlog");
    assert!(log.lines().any(|line| line.contains(",HISTFAAA")), "{log}");
    let text = prefix.read("run.prom");
    assert!(text.contains("millstream_bench_responses_total{code=\"200\"} 50\n"), "{text}");
    assert!(text.contains("millstream_bench_request_duration_seconds_bucket{le=\"+Inf\"} 50\n"), "{text}");
    let (status, ..) = bench(&["-n", "50", "-c", "1", "--export-hdr", &file("run.hgrm"), &url]);
    assert_eq!(status, 0);
    assert!(prefix.read("run.hgrm").contains("1.000000         50\n"), "{}", prefix.read("run.hgrm"));
    let (status, _, complained) = bench(&["--export-hdr", "/no/such/folder/a", &url]);
    assert!(status == 1 && complained.contains("cannot be written"), "{complained}");
}
