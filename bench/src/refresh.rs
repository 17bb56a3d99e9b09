//! `cargo xtask bench refresh`: one keep-alive connection asks on while an entry is refreshed in the background.
//!
//! The entry is old after a second, the refresh takes one. A hundred requests, one after the other, go out from before the
//! entry is old until the refresh is through; the longest is what the refresh cost the client. Nothing else runs.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millstream_tests::client::Client;
use millstream_tests::origin::{Origin, Step, answer};

use crate::product::{Product, find};
use crate::{Options, Programs, peers};

/// Of one round.
const REQUESTS: usize = 100;
/// Pause before the next request; makes a round outlast entry and refresh together.
const PAUSE: Duration = Duration::from_millis(25);
const REFRESH: Duration = Duration::from_secs(1);
const FILES: (&str, &str) = ("bench/conf/refresh.conf", "");

struct RefreshOutcome {
    product: Product,
    /// Milliseconds of each request, in order.
    took: Vec<f64>,
    refreshes: usize,
}

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let ours = options.millstream.then_some(Product::Millstream);
    let peer = (!options.skip_peers && find("nginx").is_some()).then_some(Product::Nginx);
    let products: Vec<_> = ours.into_iter().chain(peer).collect();
    let mut outcomes = Vec::new();
    for _ in 0..options.rounds {
        for &product in &products {
            outcomes.push(round(product, programs)?);
        }
    }
    Ok(table(options, &products, &outcomes))
}

fn round(product: Product, programs: &Programs) -> Result<RefreshOutcome, String> {
    let count = AtomicUsize::new(0);
    let origin = Origin::start(move |_| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        let mut steps = vec![Step::Pause(if first { Duration::ZERO } else { REFRESH })];
        steps.extend(answer(200, &[("Cache-Control", "max-age=1")], &[b'x'; 900]));
        steps
    });
    let server = peers::on_files(product, FILES, origin.port(), programs)?;
    let failed = |error: std::io::Error| format!("{}: {error}", product.name());
    let mut client = Client::connect(server.port).map_err(failed)?;
    client.get("/").map_err(failed)?;
    let mut took = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        std::thread::sleep(PAUSE);
        let began = Instant::now();
        let answer = client.get("/").map_err(failed)?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
        if (answer.status, answer.body.len()) != (200, 900) {
            return Err(format!("{}: status {}, {} bytes", product.name(), answer.status, answer.body.len()));
        }
    }
    took.sort_by(f64::total_cmp);
    match origin.count() {
        0 | 1 => Err(format!("{}: no refresh was seen", product.name())),
        asked => Ok(RefreshOutcome { product, took, refreshes: asked - 1 }),
    }
}

fn table(options: &Options, products: &[Product], outcomes: &[RefreshOutcome]) -> String {
    let mut text = String::new();
    for version in products.iter().filter_map(|product| product.version()) {
        let _ = writeln!(text, "- {version}");
    }
    let _ = writeln!(
        text,
        "\n### refresh: {REQUESTS} requests on one connection beside a refresh that takes {} s\n\n\
         `cargo xtask bench refresh --rounds {}`: `proxy_cache_background_update on`, `proxy_cache_use_stale updating`. A row \
         per round.\n\n\
         | server | refreshes | p50 ms | longest ms |\n| --- | ---: | ---: | ---: |",
        REFRESH.as_secs(),
        options.rounds,
    );
    for &product in products {
        for outcome in outcomes.iter().filter(|outcome| outcome.product == product) {
            let longest = outcome.took.last().copied().unwrap_or(f64::NAN);
            let middle = outcome.took[outcome.took.len() / 2];
            let _ =
                writeln!(text, "| {} | {} | {middle:.2} | {longest:.2} |", product.name(), outcome.refreshes);
        }
    }
    text
}
