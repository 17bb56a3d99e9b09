//! Clients that others wrote, over TLS and without it: each gets what it asked for, and a judge finds no fault.

use std::collections::BTreeMap;

use millstream_tests::http2_clients::{h2spec, httpx, installed, net_http};
use millstream_tests::origin::Origin;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::webdriver::Window;
use millstream_tests::{ports, wait};
use serde_json::json;

use super::curl;

const SITE: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { worker_connections 4096; }
    http {
        access_log @DIR@/access.log; proxy_http_version 1.1; proxy_cache_path memory keys_zone=z:1m memory=64m;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key; client_max_body_size 20m;
        types { text/html html; image/svg+xml svg; }
        server { listen 127.0.0.1:@PORT@; listen 127.0.0.1:@TLS@ ssl; http2 on; root @DIR@/site;
            location / { proxy_pass http://@ORIGIN@; }
            location /cached { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid 200 1h; }
            location /site/ { alias @DIR@/site/; } }
    }";

const LENGTH: usize = 100_000;

struct Site {
    server: Server,
    origin: Origin,
    tls: u16,
}

impl Site {
    fn start() -> Site {
        let origin = Origin::fixed(200, &[("Content-Type", "text/plain")], &[b'x'; LENGTH]);
        let tls = ports::free();
        let values = [("ORIGIN", origin.address()), ("TLS", tls.to_string())];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        let server = Server::start_in(Prefix::with_certificate("localhost"), SITE, &values);
        Site { server, origin, tls }
    }

    fn urls(&self, path: &str) -> [String; 2] {
        [
            format!("https://127.0.0.1:{}{path}", self.tls),
            format!("http://127.0.0.1:{}{path}", self.server.port()),
        ]
    }
}

#[test]
fn h2spec_finds_no_fault_but_that_who_speaks_no_http2_is_answered_by_http1() {
    skip_on_nginx!();
    let site = Site::start();
    let Some(encrypted) = h2spec(site.tls, true) else { return };
    assert_eq!(encrypted.failed, [] as [&str; 0], "{}", encrypted.said);
    assert!(encrypted.tried > 140, "{}", encrypted.said);
    let plain = h2spec(site.server.port(), false).expect("it was there a moment ago");
    assert_eq!(plain.failed, ["http2/3.5: Sends invalid connection preface"], "{}", plain.said);
    assert_eq!(plain.tried, encrypted.tried);
    assert!(!site.server.log().contains("panicked"), "{}", site.server.log());
}

#[test]
fn curl_gets_and_sends_bodies_over_tls_and_with_prior_knowledge() {
    skip_on_nginx!();
    let site = Site::start();
    let body = site.server.prefix().join("upload");
    std::fs::write(&body, vec![b'u'; 5_000_000]).expect("own directory");
    let upload = format!("@{}", body.display());
    let what = "%{http_version} %{http_code} %{size_download} %{errormsg}";
    for (url, how) in site.urls("/up").iter().zip(["--http2", "--http2-prior-knowledge"]) {
        let told = curl(&[how, "-o", "/dev/null", "-w", what, url]);
        assert_eq!(told.trim(), format!("2 200 {LENGTH}"));
        let told = curl(&[how, "-o", "/dev/null", "-w", what, "--data-binary", &upload, url]);
        assert_eq!(told.trim(), format!("2 200 {LENGTH}"));
        assert_eq!(site.origin.requests().last().map(|request| request.body.len()), Some(5_000_000));
        let told = curl(&[how, "-o", "/dev/null", "-w", what, "-T", body.to_str().expect("text"), url]);
        assert_eq!(told.trim(), format!("2 200 {LENGTH}"));
        let told = curl(&[how, "-I", "-o", "/dev/null", "-w", what, url]);
        assert_eq!(told.trim(), "2 200 0");
        // Fifty at once over one connection.
        let all = format!("{url}?[1-50]");
        let told = curl(&[
            how,
            "-Z",
            "--parallel-immediate",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %{num_connects}\n",
            &all,
        ]);
        let statuses = told.lines().filter(|line| line.starts_with("200 ")).count();
        assert_eq!(statuses, 50, "{told}");
    }
}

#[test]
fn nghttp_and_h2load_get_all_that_they_ask_for() {
    skip_on_nginx!();
    let site = Site::start();
    for url in site.urls("/cached/a") {
        let Some(told) = installed("nghttp", "nghttp2-client", &["-nsv", "-m", "50", &url]) else { return };
        assert!(told.contains(":status: 200"), "{told}");
        assert!(!told.contains("RST_STREAM"), "{told}");
        let wanted = ["-n", "5000", "-c", "10", "-m", "50", "-t", "1", &url];
        let Some(told) = installed("h2load", "nghttp2-client", &wanted) else { return };
        let all =
            "requests: 5000 total, 5000 started, 5000 done, 5000 succeeded, 0 failed, 0 errored, 0 timeout";
        assert!(told.contains(all), "{told}");
        println!("{}", told.lines().find(|line| line.starts_with("finished")).unwrap_or_default());
        // More at once than there may be, through small windows.
        let wanted = ["-n", "1000", "-c", "2", "-m", "300", "-w", "14", "-W", "15", "-t", "1", &url];
        let told = installed("h2load", "nghttp2-client", &wanted).expect("it was there a moment ago");
        assert!(told.contains("1000 succeeded, 0 failed, 0 errored"), "{told}");
    }
}

#[test]
fn httpx_agrees_on_it_and_uploads_what_it_makes() {
    skip_on_nginx!();
    let site = Site::start();
    let script = "
import asyncio, httpx, json, sys

async def main():
    async with httpx.AsyncClient(http2=True, verify=False, timeout=30) as client:
        answers = await asyncio.gather(*(client.get(sys.argv[1]) for _ in range(40)))
        async def made():
            for _ in range(100):
                yield b'p' * 10000
        answers.append(await client.post(sys.argv[1], content=made()))
        print(json.dumps([[a.http_version, a.status_code, len(a.content)] for a in answers]))

asyncio.run(main())
";
    let [url, _] = site.urls("/by-python");
    let told: serde_json::Value = serde_json::from_str(&httpx(script, &[&url])).expect("JSON");
    let expected: Vec<_> = (0..41).map(|_| json!(["HTTP/2", 200, LENGTH])).collect();
    assert_eq!(told, json!(expected));
}

#[test]
fn net_http_of_go_gets_a_hundred_at_once_and_uploads_without_a_length() {
    skip_on_nginx!();
    let site = Site::start();
    let [url, _] = site.urls("/by-go");
    let Some(told) = net_http(&url, 300, 5_000_000) else { return };
    let expected = json!({
        "Statuses": { "200": 301 }, "Protocols": { "HTTP/2.0": 301 }, "Octets": 301 * LENGTH, "Failures": null
    });
    assert_eq!(told, expected);
}

#[test]
fn a_browser_loads_a_page_of_many_parts_over_it() {
    skip_on_nginx!();
    let site = Site::start();
    let folder = site.server.prefix().join("site");
    std::fs::create_dir(&folder).expect("own directory");
    let count = 150;
    let images: String = (0..count).map(|n| format!("<img src=\"{n}.svg\" alt=\"\">")).collect();
    for n in 0..count {
        let size = if n % 10 == 0 { 50_000 } else { 10 };
        let image = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><!--{}--></svg>",
            "x".repeat(size)
        );
        std::fs::write(folder.join(format!("{n}.svg")), image).expect("own directory");
    }
    let page = format!("<!DOCTYPE html><title>a page of many parts</title>{images}");
    std::fs::write(folder.join("index.html"), page).expect("own directory");
    let Some(window) = Window::open(800, 600) else {
        eprintln!("SKIPPED: no driver of Chromium here; apt-get install chromium-driver");
        return;
    };
    let [url, _] = site.urls("/site/index.html");
    window.go(&url);
    let seen = "return [[...document.images].filter(i => i.complete && i.naturalWidth == 9).length,
        new Set(performance.getEntries().map(e => e.nextHopProtocol).filter(p => p)).size,
        performance.getEntriesByType('navigation')[0].nextHopProtocol];";
    wait::until("all images are there", || window.run(seen)[0] == count);
    assert_eq!(window.run(seen), json!([count, 1, "h2"]));
    let log = site.server.prefix().read("access.log");
    let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(".svg HTTP/2.0\"")) {
        *statuses.entry(line.split("HTTP/2.0\" ").nth(1).map_or("", |rest| &rest[..3])).or_default() += 1;
    }
    assert_eq!(statuses, BTreeMap::from([("200", count)]), "{log}");
    assert!(!site.server.log().contains("panicked"), "{}", site.server.log());
}
