//! The table and the texts that come of it.

use super::*;
use crate::peer::{CERTIFICATE, KEY, Party, launch};
use crate::target::Url;
use millstream_conf::diagnostics::Severity;
use std::path::Path;

fn setting() -> StepSetting<'static> {
    StepSetting { port: 8080, origin: "127.0.0.1:8000", secure: None, fallback: None, puts_aside: false }
}

fn text(step: Step, party: Party, setting: &StepSetting<'_>) -> Option<String> {
    launch(party, step, setting, Path::new("/")).ok().map(|launch| launch.text)
}

fn ours(step: Step) -> String {
    text(step, Party::Millstream, &setting()).expect("a proxy")
}

#[test]
fn every_step_stands_at_its_own_place_of_the_table() {
    for (place, step) in Step::ALL.into_iter().enumerate() {
        assert_eq!(step as usize, place, "{}", step.name());
        assert_eq!(find(step.name()), Ok(step));
        assert_eq!(find(&(place + 1).to_string()), Ok(step));
        let json = serde_json::to_string(&step).expect("a word");
        assert_eq!(json, format!("\"{}\"", step.name()));
    }
}

#[test]
fn steps_are_chosen_by_name_number_and_stretch_and_come_in_climbing_order() {
    let names =
        |text: &str| parse(text).map(|steps| steps.iter().map(|step| step.name()).collect::<Vec<_>>());
    assert_eq!(names("tls, alone"), Ok(vec!["alone", "tls"]));
    assert_eq!(names("1,5,5"), Ok(vec!["alone", "microcache"]));
    assert_eq!(names("quiet-headers"), Ok(vec!["quiet", "microcache", "lock", "headers"]));
    assert_eq!(names("1-3"), Ok(vec!["alone", "proxied", "keepalive"]));
    assert!(names("lock-quiet").is_err_and(|error| error.contains("comes after")));
    assert!(names("cache").is_err_and(|error| error.contains("microcache")));
    assert!(names("0").is_err());
    assert!(names("12").is_err());
    assert!(names("").is_err());
}

#[test]
fn each_step_says_what_is_new_in_it() {
    let has = |step: Step, words: &str| ours(step).contains(words);
    assert!(text(Step::Alone, Party::Millstream, &setting()).is_none());
    assert!(has(Step::Proxied, "proxy_http_version 1.0;") && !has(Step::Proxied, "keepalive 64;"));
    assert!(has(Step::KeepAlive, "keepalive 64;") && has(Step::KeepAlive, "gzip on;"));
    assert!(has(Step::Quiet, "access_log off;") && !has(Step::Quiet, "gzip on;"));
    assert!(
        has(Step::Microcache, "proxy_cache_valid 200 1s;") && has(Step::Microcache, "proxy_cache_lock off;")
    );
    assert!(has(Step::Lock, "proxy_cache_use_stale updating;"));
    assert!(!has(Step::Headers, "proxy_cache_valid") && has(Step::Headers, "proxy_cache_path cache"));
    assert!(has(Step::Memory, "proxy_cache_path memory") && has(Step::Memory, "access_log off;"));
    assert!(has(Step::Log, "buffer=256k"));
    assert!(has(Step::Tls, "listen 127.0.0.1:8080 ssl;") && !has(Step::Tls, "http2"));
    assert!(has(Step::Http2, "listen 127.0.0.1:8080 ssl;") && has(Step::Http2, "http2 on;"));
}

#[test]
fn an_api_that_says_nothing_gets_its_lifetime_from_the_setting() {
    let text = text(Step::Headers, Party::Millstream, &StepSetting { fallback: Some("1d"), ..setting() });
    let text = text.expect("a proxy");
    assert!(text.contains("proxy_cache_valid 200 1d;"));
    assert!(text.contains("proxy_no_cache $http_cookie;"), "a session's answer is nobody else's");
}

#[test]
fn nginx_gets_no_word_that_it_does_not_know() {
    for step in Step::ALL.into_iter().skip(1) {
        let text = text(step, Party::Nginx, &setting()).expect("a proxy");
        assert!(!text.contains("proxy_cache_path memory"), "{}", step.name());
        assert!(!text.contains("http2 on"), "{}: only from 1.25.1 on", step.name());
        assert_eq!(text.contains("listen 127.0.0.1:8080 ssl http2;"), step == Step::Http2);
        assert_eq!(text.matches('{').count(), text.matches('}').count(), "{}", step.name());
    }
}

#[test]
fn a_step_differs_from_the_one_before_only_in_what_it_adds() {
    // Lines that are there, or not, in one of the two; the comment at the head always differs.
    let changed = |lower: Step, upper: Step| {
        let (lower, upper) = (ours(lower), ours(upper));
        let rules = |text: &str| -> Vec<String> {
            text.lines().map(str::trim).filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        let (lower, upper) = (rules(&lower), rules(&upper));
        lower.iter().filter(|line| !upper.contains(line)).count()
            + upper.iter().filter(|line| !lower.contains(line)).count()
    };
    assert_eq!(changed(Step::Headers, Step::Memory), 2, "one path for the other");
    assert_eq!(changed(Step::Memory, Step::Log), 3, "one log for the other, named twice");
    assert_eq!(changed(Step::Proxied, Step::KeepAlive), 5);
    assert_eq!(changed(Step::Tls, Step::Http2), 1, "one directive");
    assert!(changed(Step::Microcache, Step::Lock) <= 3);
}

#[test]
fn a_configuration_has_the_steps_whose_news_it_has() {
    let of = |text: &str, url: &str| {
        let loaded = millstream_conf::load::load_text("nginx.conf", text, Path::new("."));
        let configuration = loaded.configuration.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        running::running("nginx.conf", &configuration, &Url::parse(url).expect("a URL"))
    };
    let names = |steps: &[Step]| steps.iter().map(|step| step.name()).collect::<Vec<_>>().join(" ");
    let api = "http://127.0.0.1:8000/page?x";
    for (step, at, has) in [
        (Step::Proxied, "proxied", "proxied"),
        (Step::KeepAlive, "keepalive", "proxied keepalive"),
        (Step::Quiet, "quiet", "proxied keepalive quiet"),
        (Step::Lock, "headers", "proxied keepalive microcache lock headers"),
        (Step::Memory, "memory", "proxied keepalive microcache lock headers memory"),
    ] {
        let found = of(&ours(step), api).expect("it passes requests on");
        assert_eq!((found.at.name(), names(&found.has).as_str()), (at, has), "{}", step.name());
    }
    // Of several locations the one that leads to the API, and of those the one with the longest path.
    let text = "events {} http { proxy_cache_path memory keys_zone=a:1m; access_log off; server { listen 127.0.0.1:80;
        location / { proxy_pass http://127.0.0.1:9; proxy_cache a; proxy_cache_valid 1s; }
        location /page { proxy_pass http://127.0.0.1:8000; proxy_http_version 1.0; proxy_set_header Connection close; }
        location /page/more { proxy_pass http://127.0.0.1:8000; proxy_cache a; } } }";
    assert_eq!(of(text, api).map(|found| found.at), Ok(Step::Quiet));
    let found = of(text, "http://127.0.0.1:9/").expect("it passes requests on");
    // One request fetches for all by default, and the others wait: no old answer is given meanwhile.
    assert_eq!((found.at, found.has.contains(&Step::Lock)), (Step::Memory, false));
    let none = of("events {} http { server { listen 127.0.0.1:80; return 204; } }", api);
    assert!(none.is_err_and(|why| why.contains("has no proxy_pass")));
}

#[test]
fn times_of_nginx_are_seconds() {
    let told = ["1s", "90", "1m", "2h", "1h30m"].map(seconds);
    assert_eq!(told, [Some(1), Some(90), Some(60), Some(7200), Some(5400)]);
    assert_eq!(["", "s", "1 s", "-1s"].map(seconds), [None; 4]);
}

#[test]
fn every_step_is_read_without_a_finding() {
    // The step over TLS names a certificate, which is looked for when the text is read.
    let folder = tempfile::tempdir().expect("a directory");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    for (name, text) in [(CERTIFICATE, made.cert.pem()), (KEY, made.signing_key.serialize_pem())] {
        std::fs::write(folder.path().join(name), text).expect("own directory");
    }
    for step in Step::ALL.into_iter().skip(1) {
        for (fallback, puts_aside) in [(None, false), (Some("1d"), false), (None, true)] {
            let setting = StepSetting { fallback, puts_aside, ..setting() };
            let text = text(step, Party::Millstream, &setting).expect("a proxy");
            let loaded = millstream_conf::load::load_text("ladder", &text, folder.path());
            assert!(loaded.configuration.is_some(), "{}: {:?}", step.name(), loaded.diagnostics);
            // What is idle is told with -t -v alone.
            let said = loaded.diagnostics.sorted();
            let said: Vec<_> = said.iter().filter(|found| found.severity != Severity::Idle).collect();
            assert!(said.is_empty(), "{}: {said:?}", step.name());
        }
    }
}
