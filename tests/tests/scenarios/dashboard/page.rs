//! The dashboard's page in a real browser: what it shows and does, how soon it is there, and that it stays as small as it was.

use super::Looked;
use millstream_tests::replay::Replay;
use millstream_tests::wait;
use millstream_tests::webdriver::{REBOUND, Window};
use rustix::process::Signal;
use serde_json::{Map, Value, json};
use std::time::Instant;

#[test]
fn the_page_shows_in_a_browser_what_happens_and_is_used_to_purge_and_explain() {
    skip_on_nginx!();
    let Some(window) = Window::open(1280, 1000) else {
        eprintln!("SKIPPED: no driver of Chromium here; apt-get install chromium-driver");
        return;
    };
    let looked = Looked::start("api_allow local;");
    let url = format!("http://127.0.0.1:{}/", looked.port);
    window.go(&url);
    wait::until("it follows", || window.text("#state") == "live");
    for _ in 0..20 {
        assert_eq!(looked.server.get("/a").status, 200);
    }
    assert_eq!(looked.server.get("/b").status, 200);
    wait::until("it is told", || window.text("#without") == "21");
    assert_eq!(window.text("#reached"), "2");
    wait::until("the tables are filled", || {
        let site = window.text("#locations-table tbody");
        site.contains("site") && window.text("#upstreams-table tbody").contains("backup")
    });
    assert_eq!(window.text("#caches-table tbody th"), "answers");
    wait::until("misses are told", || {
        window.text("#misses-table").contains("No matching response was stored")
    });
    // By the keyboard's way: a heading is a button, a filter is a field.
    window.click("#upstreams-table thead th:first-child button");
    let sorted = window.run("return document.querySelector('#upstreams-table th[aria-sort]')?.innerText;");
    assert_eq!(sorted.as_str().map(str::trim), Some("server"));
    window.write("#upstreams input[type=search]", "no such server");
    wait::until("nothing fits", || window.text("#upstreams-table").contains("no rows match the filter"));
    window.write("#upstreams input[type=search]", "api");
    wait::until("it fits again", || window.text("#upstreams-table tbody").contains("api"));
    let public = format!("http://127.0.0.1:{}/a", looked.server.port());
    window.write("#explain-url", &public);
    window.click("#explain button");
    wait::until("it is explained", || window.text("#told").contains("HIT"));
    window.write("#purge-text", &public);
    window.click("#purge button");
    wait::until("it is shown first", || window.text("#told").contains("This would be purged"));
    let before = looked.origin.count();
    assert_eq!(looked.server.get("/a").status, 200);
    assert_eq!(looked.origin.count(), before, "a preview purges nothing");
    window.picture("dashboard-light");
    window.click("#told button.bad");
    wait::until("it is purged", || window.text("#told").contains("Purged"));
    assert_eq!(looked.server.get("/a").status, 200);
    assert_eq!(looked.origin.count(), before + 1);
    assert_eq!(looked.status("/metrics", &[("Origin", "http://<b>evil</b>")]), 403);
    wait::until("the error is told", || window.text("#notes").contains("dashboard refused"));
    looked.server.signal(Signal::HUP);
    wait::until("the reload is told", || window.text("#notes").contains("configuration 2 is in force"));
    wait::until("it follows again", || window.text("#state") == "live");
    assert_eq!(window.complaints(), Vec::<String>::new());
    let axe = std::env::var_os("MILLSTREAM_AXE");
    let axe = axe.map(|path| {
        std::fs::read_to_string(path).expect("MILLSTREAM_AXE names axe.min.js of npm's axe-core")
    });
    for scheme in ["light", "dark"] {
        window.prefer(scheme);
        if let Some(axe) = &axe {
            assert_eq!(window.barriers(axe), Vec::<String>::new(), "{scheme}");
        }
    }
    window.picture("dashboard-dark");
}

/// A second of a day: names of zones, peers and causes come and go, and counts grow.
fn made_up(second: u64) -> String {
    let (hour, load) = (second / 3600, 100 + second % 60);
    let zone = json!({
        "requests": second, "responses": { "2xx": second, "3xx": 0, "4xx": 1, "5xx": second % 7 }, "discarded": 0, "sent": second,
        "latency": { "p50": 0.5, "p99": 80.5 }, "cache": { "hit": second, "miss": 3 },
        "origin": { "requests": 3, "time": 240, "saved_time": 80 * second },
    });
    let zones = |kind: &str, every: u64| -> Map<String, Value> {
        (0..5).map(|index| (format!("{kind} {}", second / every + index), zone.clone())).collect()
    };
    let peers: Vec<Value> = (0..3)
        .map(|index| {
            json!({
                "id": hour * 3 + index, "server": format!("10.0.{hour}.{index}:80"), "state": if second % 5 == index { "down" } else { "up" },
                "backup": index == 2, "active": 1, "requests": second, "responses": { "5xx": 0 }, "fails": 0, "unavail": 0,
                "header_time": 78, "response_time": 80, "health_checks": { "checks": 0, "fails": 0 }, "downtime": 0,
            })
        })
        .collect();
    let cause = json!({ "count": second, "text": format!("cause {hour}"), "help": "keep it for longer" });
    let tables = json!({
        "server_zones": zones("server", 600), "location_zones": zones("location", 60), "upstreams": { "api": { "peers": peers } },
        "caches": { format!("zone {hour}"): {
            "hit": { "responses": second }, "miss": { "responses": 3 }, "bypass": { "responses": 0 },
            "memory": { "entries": 3, "bytes": 3000, "max_bytes": 1_048_576, "evictions": 0 },
        } },
        "misses": [{ "location": { "name": "/", "at": format!("{hour}") }, "origin_time": 80, "requests": { "absent": cause }, "not_stored": {} }],
    });
    let notes: Vec<Value> = (0..20)
        .map(|index| json!({ "at": second * 1000, "well": index == 0, "text": format!("note {second} {index}") }))
        .collect();
    let row = [second, load, load, load, 3, load, 500, 80_000, 0, 1000 * load, 7];
    match second {
        0 => {
            let names = [
                "at", "requests", "cached", "hits", "reached", "without", "p50", "p99", "errors", "sent",
                "active",
            ];
            json!({ "names": names, "rows": [], "tables": tables, "notes": notes }).to_string()
        }
        _ => json!({ "second": row, "tables": tables, "notes": notes }).to_string(),
    }
}

#[test]
fn a_page_that_is_open_for_a_day_does_not_grow() {
    skip_on_nginx!();
    let Some(window) = Window::open(1280, 1000) else {
        eprintln!("SKIPPED: no driver of Chromium here; apt-get install chromium-driver");
        return;
    };
    let looked = Looked::start("api_allow local;");
    let replay = Replay::start(looked.port, made_up);
    window.go(&format!("http://127.0.0.1:{}/", replay.port()));
    let weight_after = |hours: u64| {
        let begun = Instant::now();
        // The last second comes alone: what many came in is kept until the next.
        for last in [hours * 3600 - 1, hours * 3600] {
            replay.until(last);
            wait::until_grown("the page's second", last, || {
                // Asked in the page: what each question of the driver's leaves behind would be weighed, too.
                let script = format!(
                    "const done = arguments[arguments.length - 1], end = Date.now() + 5000; \
                     const ask = () => {{ \
                         const at = rows.length ? figure(rows[rows.length - 1], 'at') : 0; \
                         if (at === {last} || Date.now() > end) done(at); else setTimeout(ask, 20); \
                     }}; ask();"
                );
                window.run_async(&script).as_u64().unwrap_or(0)
            });
        }
        wait::until("it is drawn, too, and not only taken", || window.run("return !redraw;") == true);
        let (heap, nodes) = window.weight();
        eprintln!("after hour {hours}: {} KiB of memory, {nodes} nodes, {:?}", heap / 1024, begun.elapsed());
        (heap, nodes)
    };
    let (heap, nodes) = weight_after(1);
    let (_, nodes_later) = weight_after(24);
    assert_eq!(window.run("return rows.length;"), 3600);
    // What has just come may still be in the browser's own hands; what the page keeps stays.
    wait::until("it has no more than an hour's memory", || window.weight().0 < heap + 256 * 1024);
    assert!(nodes_later < nodes + 100, "{nodes} nodes, then {nodes_later}");
    assert_eq!(window.complaints(), Vec::<String>::new());
}

#[test]
fn the_page_fits_a_phone_and_asks_for_the_token() {
    skip_on_nginx!();
    let Some(window) = Window::open(500, 900) else {
        eprintln!("SKIPPED: no driver of Chromium here; apt-get install chromium-driver");
        return;
    };
    let looked = Looked::start("api_token 0123456789abcdef;");
    window.go(&format!("http://127.0.0.1:{}/", looked.port));
    wait::until("it asks for the token", || window.text("#token").contains("A token is required"));
    window.write("#token-text", "0123456789abcdef");
    window.click("#token button");
    wait::until("it follows", || window.text("#state") == "live");
    assert_eq!(looked.server.get("/a").status, 200);
    wait::until("the tables are filled", || window.text("#locations-table tbody").contains("site"));
    let wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;";
    assert_eq!(window.run(wide), 0, "nothing is wider than the window");
    window.picture("dashboard-phone");
}

#[test]
fn a_page_of_another_origin_gets_nothing_out_of_a_browser() {
    skip_on_nginx!();
    let Some(window) = Window::open(800, 600) else {
        eprintln!("SKIPPED: no driver of Chromium here; apt-get install chromium-driver");
        return;
    };
    let looked = Looked::start("api_allow local;");
    assert_eq!(looked.server.get("/a").status, 200);
    // The public port serves the page of somebody else: another origin, on the same machine.
    window.go(&format!("http://localhost:{}/a", looked.server.port()));
    let asks = |method: &str, mode: &str| {
        let script = format!(
            "const done = arguments[arguments.length - 1]; \
             fetch('http://127.0.0.1:{}/api/9/http/caches/answers/purge', {{ method: '{method}', mode: '{mode}', \
             headers: {{ 'Content-Type': 'text/plain' }}, body: '{method}' === 'POST' ? '{{\"all\":true}}' : undefined }}) \
             .then((answer) => done(answer.type + answer.status), () => done('refused'));",
            looked.port
        );
        window.run_async(&script)
    };
    // Without CORS a page learns nothing of an answer, and what it sent had no effect.
    assert_eq!(asks("POST", "cors"), "refused");
    assert_eq!(asks("POST", "no-cors"), "opaque0");
    assert_eq!(asks("GET", "cors"), "refused");
    let count = looked.origin.count();
    assert_eq!(looked.server.get("/a").status, 200);
    assert_eq!(looked.origin.count(), count, "nothing was purged");
    looked.server.says("dashboard refused");
    // A name of somebody else that leads here once its page is loaded: what that asks for is of its own origin, and refused.
    window.go(&format!("http://{REBOUND}:{}/", looked.port));
    assert!(!window.text("body").contains("Millstream"), "no page is shown");
    for path in ["/", "/live", "/metrics", "/api/9/connections"] {
        let script = format!(
            "const done = arguments[arguments.length - 1]; fetch('{path}').then((answer) => done(answer.status), done);"
        );
        assert_eq!(window.run_async(&script), 403, "{path}");
    }
}
