//! What `bench` leaves behind: a page that a browser shows without a fault, and JSON that two runs are compared by.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use millstream_tests::browser::{Browser, Inspection};
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::{binary, is_nginx};

fn bench(arguments: &[&str]) -> Output {
    let output = Command::new(binary()).arg("bench").args(arguments).stdin(Stdio::null()).output();
    output.expect("the binary runs")
}

/// A second of load on a small API; JSON and page stand in the folder.
fn measured(folder: &Path, name: &str) -> (String, String) {
    let api = Origin::start(|_| answer(200, &[("Content-Type", "text/plain")], b"hello"));
    let file = |ending: &str| folder.join(format!("{name}.{ending}")).display().to_string();
    let (json, html) = (file("json"), file("html"));
    let url = format!("http://127.0.0.1:{}/a?b=<c>", api.port());
    let output = bench(&[&url, "-c", "4", "-t", "1", "-d", "1500ms", "--json", &json, "--html", &html]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Latency Distribution") && text.contains("Requests/sec:"), "{text}");
    (json, html)
}

#[test]
fn the_page_of_a_run_is_shown_by_a_browser_without_a_fault() {
    if is_nginx() {
        return;
    }
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
fn a_run_differs_from_itself_by_no_more_than_noise() {
    if is_nginx() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder for the files");
    let (json, html) = measured(folder.path(), "run");
    let output = bench(&["compare", &json, &json]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("within noise") && text.contains("Welch"), "{text}");
    assert!(!text.contains("differs by more than noise\n"), "{text}");
    let output = bench(&["compare", &json, &html]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("run.html: not JSON") && said.lines().count() == 1,
        "{said}"
    );
}
