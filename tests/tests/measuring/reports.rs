//! What `bench` leaves behind: a page that a browser shows without a fault, and JSON that two runs are compared by.

use std::path::Path;

use crate::{bench, compare};
use millstream_tests::browser::{Browser, Inspection};
use millstream_tests::origin::{Origin, answer};

fn measured(folder: &Path, name: &str) -> (String, String) {
    let api = Origin::start(|_| answer(200, &[("Content-Type", "text/plain")], b"hello"));
    let file = |ending: &str| folder.join(format!("{name}.{ending}")).display().to_string();
    let (json, html) = (file("json"), file("html"));
    let url = format!("http://127.0.0.1:{}/a?b=<c>", api.port());
    let (status, text, complained) =
        bench(&[&url, "-c", "4", "-t", "1", "-d", "1500ms", "--json", &json, "--html", &html]);
    assert_eq!(status, 0, "{complained}");
    assert!(text.contains("Latency Distribution") && text.contains("Requests/sec:"), "{text}");
    (json, html)
}

#[test]
fn the_page_of_a_run_is_shown_by_a_browser_without_a_fault() {
    skip_on_nginx!();
    let folder = tempfile::tempdir().expect("a folder for the files");
    let (_, html) = measured(folder.path(), "run");
    let page = std::fs::read_to_string(&html).expect("the page was written");
    assert!(page.contains("&lt;c&gt;") && !page.contains("<c>"));
    let Some(browser) = Browser::find() else {
        eprintln!("SKIPPED: no Chromium here; apt-get install chromium");
        return;
    };
    let Inspection { findings, complaints } = browser.inspect(&[("run", page)], &[390, 1200]);
    assert_eq!((findings, complaints), (Vec::new(), Vec::new()));
    let picture = browser.picture(Path::new(&html), 1200);
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{} bytes", picture.len());
}

#[test]
fn runs_are_compared_with_runs_and_the_exit_status_says_what_became_of_it() {
    skip_on_nginx!();
    let folder = tempfile::tempdir().expect("a folder for the files");
    let (json, html) = measured(folder.path(), "run");
    let run: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("a run")).expect("JSON");
    // Runs as this one was, but for their rates.
    let with_rates = |name: &str, rates: [u64; 4]| {
        rates.map(|rate| {
            let mut run = run.clone();
            let seconds = run["seconds"].as_f64().expect("a number");
            run["counts"]["answers"] = ((rate as f64 * seconds) as u64).into();
            let file = folder.path().join(format!("{name}-{rate}.json"));
            std::fs::write(&file, run.to_string()).expect("its own folder");
            file.display().to_string()
        })
    };
    let (slow, fast) =
        (with_rates("a", [1_000, 1_010, 1_020, 1_030]), with_rates("b", [1_100, 1_110, 1_120, 1_130]));
    let alike = with_rates("c", [1_005, 1_015, 1_025, 1_008]);
    for (a, b, expected, begins) in [
        (&slow, &alike, 0, "No difference beyond chance was found in requests per second"),
        (&slow, &slow, 5, "Whether they differ is unknown: "),
        (&slow, &fast, 3, "b is faster: it serves "),
        (&fast, &slow, 4, "b is slower: it serves "),
    ] {
        let (a, b) = (a.each_ref().map(String::as_str), b.each_ref().map(String::as_str));
        let words: [&[&str]; 3] = [&a, &["--with"], &b];
        let (status, text, _) = compare(&words.concat());
        assert_eq!(status, expected, "{text}");
        assert!(text.starts_with(begins), "{text}");
    }
    let told = folder.path().join("told.json").display().to_string();
    let (status, ..) = compare(&[&json, &json, "--by", "p99", "--json", &told]);
    assert_eq!(status, 5);
    let told: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(told).expect("it")).expect("JSON");
    assert_eq!((&told["schema"], &told["verdict"]), (&"millstream.compare/2".into(), &"unknown".into()));
    let (status, _, of_a_page) = compare(&[&json, &html]);
    assert_eq!(status, 1);
    assert!(of_a_page.contains("run.html: not JSON") && of_a_page.lines().count() == 1, "{of_a_page}");
    let (status, _, of_three) = compare(&[&json, &json, &json]);
    assert_eq!(status, 1);
    assert!(of_three.contains("specify the runs after the change with --with"), "{of_three}");
}
