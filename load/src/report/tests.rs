//! Pages as a whole: that no text becomes markup, that nothing is fetched.

use super::samples;
use super::steps::{MeasuredParty, Page, Row};
use super::{html, steps};
use crate::outcome::{Outcome, SearchOutcome};
use millstream_tests::browser::{Browser, Inspection};
use proptest::prop_assert_eq;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use std::time::Duration;

/// A ladder as one would be measured, with a wrong step, one that a peer cannot do, and a floor.
fn ladder() -> Page {
    let measure = |party: &str, rate: f64, times: f64| MeasuredParty {
        party: party.to_owned(),
        rate,
        low: rate * 0.94,
        high: rate * 1.03,
        factor: Some(times),
        p50: Duration::from_secs_f64(200.0 / rate),
        p99: Duration::from_secs_f64(500.0 / rate),
        origin_requests: Some(if times > 10.0 { 12 } else { 10_000 }),
        bytes: Some(12_345_678),
        cpu_proxy: (times > 1.0).then_some(Duration::from_nanos(11_230)),
        cpu_origin: Some(Duration::from_millis(1).div_f64(times)),
        cpu_generator: Some(Duration::from_nanos(7_500)),
        time_wait: Some(if times < 1.2 { 8_123 } else { 0 }),
        ..MeasuredParty::default()
    };
    let row = |name: &str, what: &str, ours: f64, theirs: f64| Row {
        name: name.to_owned(),
        what: what.to_owned(),
        expected: None,
        measures: vec![
            measure("Millstream", ours * 1_520.0, ours),
            measure("nginx", theirs * 1_520.0, theirs),
        ],
    };
    let mut rows = vec![
        row("the API alone", "No proxy: what the API does by itself.", 1.0, 1.0),
        row(
            "proxied, no keep-alive",
            "A new connection to the API for each request, as nginx did by default.",
            0.9,
            0.85,
        ),
        row("keep-alive", "Connections to the API are used again.", 1.3, 1.25),
        row("compression and log off", "Nothing is compressed and nothing is logged.", 1.34, 1.31),
        row("microcache 1 s", "Each answer is kept for one second.", 19.2, 17.9),
        row("lock and stale", "One request fills, the others wait or get what is stale.", 21.0, 18.8),
        row("as the API says", "Kept as long as the answers' own fields say.", 23.1, 20.1),
        row("in memory", "The zone has no directory.", 27.9, 21.3),
        row("buffered access log", "The log is written in blocks.", 27.0, 20.7),
        row("over TLS", "The same, with clients over TLS 1.3.", 17.4, 14.2),
    ];
    rows[4].measures[1].wrong = Some("3 of 1,000 answers had another body than the API's own".to_owned());
    rows[4].measures[1].factor = None;
    rows[5].measures[1].cannot = Some("it has no such directive".to_owned());
    rows[7].measures[0].floor = Some("the generator's busiest thread worked 98 % of the time".to_owned());
    Page {
        title: "The ladder on http://127.0.0.1:8000/api/items".to_owned(),
        subtitle: "10 steps, 3 rounds of 2s each, interleaved; 200 connections, closed loop; medians.".to_owned(),
        warnings: vec!["The origin is simulated: an embedded API with a pool of workers.".to_owned()],
        row: steps::RowName::Step,
        rows,
        verdict: vec![
            "The load generator is the limit at the top step: its busiest thread worked 98 % of the time, the proxy's 61 %."
                .to_owned(),
            "Caching is worth most: ×19 with one second alone. The buffered log is not worth its step here.".to_owned(),
        ],
        notes: vec!["Loopback, two cores shared by all parties.".to_owned()],
    }
}

/// Two servers alone and together, with what was to be expected.
fn capacity() -> Page {
    let row = |name: &str, rate: f64, expected: Option<f64>| Row {
        name: name.to_owned(),
        what: String::new(),
        expected,
        measures: vec![MeasuredParty {
            party: "Millstream".to_owned(),
            rate,
            low: rate,
            high: rate,
            ..MeasuredParty::default()
        }],
    };
    Page {
        title: "Two APIs behind one proxy".to_owned(),
        rows: vec![
            row("http://127.0.0.1:8001/", 99.0, None),
            row("http://127.0.0.1:8002/", 98.0, None),
            row("both behind the proxy", 190.0, Some(197.0)),
        ],
        verdict: vec!["A second server doubles the throughput.".to_owned()],
        ..Page::default()
    }
}

fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("closed", html::html(&samples::closed())),
        ("open", html::html(&samples::open())),
        ("searched", html::html(&samples::searched())),
        ("failing", html::html(&samples::failing())),
        ("nothing", html::html(&samples::nothing())),
        ("ladder", steps::html(&ladder())),
        ("capacity", steps::html(&capacity())),
        ("empty", steps::html(&Page::default())),
    ]
}

#[test]
fn a_page_is_whole_by_itself() {
    for (name, page) in pages() {
        for outside in ["<script", "<link", "<img", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{name}: {outside}");
        }
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn no_number_of_a_picture_is_no_number() {
    for (name, page) in pages() {
        assert!(!page.contains("NaN") && !page.contains("inf%") && !page.contains("inf\""), "{name}");
    }
}

/// The names of all elements and attributes of a page, read as a browser reads them.
fn markup(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut rest = page;
    while let Some(begin) = rest.find('<') {
        let mut inside = &rest[begin + 1..];
        let end = inside.find([' ', '>']).unwrap_or(inside.len());
        let element = &inside[..end];
        names.insert(element.to_owned());
        inside = &inside[end..];
        while let Some(attribute) = inside.strip_prefix(' ') {
            let name_end = attribute.find(['=', ' ', '>']).unwrap_or(attribute.len());
            names.insert(format!("{element} {}", &attribute[..name_end]));
            inside = &attribute[name_end..];
            if let Some(value) = inside.strip_prefix("=\"") {
                inside = value.split_once('"').map_or("", |(_, after)| after);
            }
        }
        rest = inside;
    }
    names
}

fn with_text(outcome: &Outcome, text: &str) -> Outcome {
    let mut outcome = outcome.clone();
    outcome.urls = vec![text.to_owned(), text.to_owned()];
    outcome.by_url[0].url = Some(text.to_owned());
    outcome.search =
        samples::searched().search.map(|search| SearchOutcome { found: text.to_owned(), ..search });
    outcome.generator.limits = Some(text.to_owned());
    outcome
}

fn ladder_of(text: &str) -> Page {
    let mut page = ladder();
    for place in
        [&mut page.title, &mut page.subtitle, &mut page.verdict[0], &mut page.notes[0], &mut page.warnings[0]]
    {
        *place = text.to_owned();
    }
    for row in &mut page.rows {
        row.name = text.to_owned();
        row.what = format!("what {text}");
        row.measures.truncate(1);
        row.measures[0].party = text.to_owned();
        let measure = &mut row.measures[0];
        for place in [&mut measure.floor, &mut measure.wrong, &mut measure.cannot] {
            *place = place.as_ref().map(|_| text.to_owned());
        }
    }
    page
}

#[test]
fn text_of_users_never_becomes_markup() {
    let outcome = samples::failing();
    let usual: BTreeSet<String> = ["x", "a longer text of several words"]
        .iter()
        .flat_map(|text| [html::html(&with_text(&outcome, text)), steps::html(&ladder_of(text))])
        .flat_map(|page| markup(&page))
        .collect();
    let texts = r#"[<>&"'/=a-z! \PC]{1,40}"#;
    TestRunner::new(Config::with_cases(30))
        .run(&texts, |text| {
            for page in [html::html(&with_text(&outcome, &text)), steps::html(&ladder_of(&text))] {
                let strange: Vec<String> = markup(&page).difference(&usual).cloned().collect();
                prop_assert_eq!(strange, Vec::<String>::new());
            }
            Ok(())
        })
        .expect("no text adds an element or an attribute");
}

#[test]
fn a_browser_lays_every_page_out_without_a_fault_wide_and_narrow() {
    let Some(browser) = Browser::find() else {
        eprintln!("SKIPPED: no Chromium here; apt-get install chromium");
        return;
    };
    let Inspection { findings, complaints } = browser.inspect(&pages(), &[390, 700, 1200]);
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(complaints, Vec::<String>::new());
}

/// Writes the pages where somebody can look at them.
#[test]
#[ignore = "for looking at: MILLSTREAM_PAGES names the folder"]
fn pages_are_written_for_looking_at() {
    let folder = std::env::var("MILLSTREAM_PAGES").expect("MILLSTREAM_PAGES names a folder");
    for (name, page) in pages() {
        std::fs::write(format!("{folder}/{name}.html"), page).expect("the folder is writable");
    }
}
