//! `cargo xtask bench stampede`: a crowd asks for one cold entry of 1 MiB at the same moment, from an origin that dribbles
//! it over two seconds.
//!
//! What counts: how many requests reached the origin (one is right), whether every client got the whole body, and how long
//! after the origin's first byte each had its own first byte. Every server is asked in every round, one after the other,
//! each round started anew on an empty cache. A client that got no whole answer is counted, never left out.

use std::fmt::Write;
use std::time::{Duration, Instant};

use millstream_tests::process::allow_open_files;
use millstream_tests::stampede::{self, Dribble};

use crate::product::{Product, find};
use crate::{Options, Programs, peers};

const LENGTH: usize = 1 << 20;
/// Pieces in which the origin sends it: one about every 32 ms.
const PIECES: usize = 64;
/// The origin's time to first byte: by then every client has sent its request.
const THINKING: Duration = Duration::from_millis(1000);
const OVER: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(40);
const FILES: (&str, &str) = ("bench/conf/stampede.conf", "bench/conf/plain.vcl");

/// One round on one server. Times are milliseconds after the origin's first byte.
struct StampedeOutcome {
    product: Product,
    at_origin: usize,
    whole: usize,
    failure: Option<String>,
    /// First byte of each client, in order.
    first: Vec<f64>,
    /// Last byte of each, less the origin's own time.
    behind: Vec<f64>,
}

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let files = options.clients as u64 * 4 + 1_000;
    if !allow_open_files(files) {
        return Err(format!(
            "{} clients and the servers need {files} open files each: raise `ulimit -n` (and its hard bound, `ulimit -Hn`), \
             or ask for fewer with --clients",
            options.clients
        ));
    }
    let products = products(options);
    let mut outcomes = Vec::new();
    for _ in 0..options.rounds {
        for &product in &products {
            outcomes.push(round(product, options.clients, programs)?);
        }
    }
    Ok(table(options, &products, &outcomes))
}

fn products(options: &Options) -> Vec<Product> {
    let ours = options.millstream.then_some(Product::Millstream);
    let peers = [(Product::Nginx, "nginx"), (Product::Varnish, "varnishd")];
    let peers = peers.into_iter().filter(|(_, program)| !options.skip_peers && find(program).is_some());
    ours.into_iter().chain(peers.map(|(product, _)| product)).collect()
}

fn round(product: Product, clients: usize, programs: &Programs) -> Result<StampedeOutcome, String> {
    let dribble = Dribble::start(LENGTH, PIECES, THINKING, OVER);
    let server = peers::on_files(product, FILES, dribble.origin.port(), programs)?;
    let visits = stampede::ask(server.port, "/stampede", clients, LIMIT)
        .map_err(|error| format!("{}: {clients} clients: {error}", product.name()))?;
    let (began, ended) = dribble.moments().ok_or_else(|| format!("{} asked nobody", product.name()))?;
    let since = |later: Instant, earlier: Instant| {
        let early = earlier.saturating_duration_since(later).as_secs_f64();
        (later.saturating_duration_since(earlier).as_secs_f64() - early) * 1000.0
    };
    let mut outcome = StampedeOutcome {
        product,
        at_origin: dribble.origin.count(),
        whole: 0,
        failure: None,
        first: Vec::with_capacity(clients),
        behind: Vec::with_capacity(clients),
    };
    for visit in visits {
        match visit {
            Ok(visit)
                if (visit.status, visit.length, visit.checksum)
                    == (200, dribble.length, dribble.checksum) =>
            {
                outcome.whole += 1;
                outcome.first.push(since(visit.first, began.max(visit.asked)));
                outcome.behind.push(since(visit.last, ended));
            }
            Ok(visit) => outcome.failure = Some(format!("status {}, {} bytes", visit.status, visit.length)),
            Err(error) => outcome.failure = Some(error),
        }
    }
    outcome.first.sort_by(f64::total_cmp);
    outcome.behind.sort_by(f64::total_cmp);
    Ok(outcome)
}

fn table(options: &Options, products: &[Product], outcomes: &[StampedeOutcome]) -> String {
    let mut text = String::new();
    for version in products.iter().filter_map(|product| product.version()) {
        let _ = writeln!(text, "- {version}");
    }
    let _ = writeln!(
        text,
        "\n### stampede: {} clients at once on one cold entry of 1 MiB\n\n\
         `cargo xtask bench stampede --clients {} --rounds {}`: the origin thinks for {} ms and sends the body over {} s in \
         {PIECES} pieces. First byte: of the body, after the origin's, or after its own request where that came later. \
         Last byte: after the origin's. A row per round.\n\n\
         | server | requests at the origin | whole and identical | first byte ms: p50 | p99 | max | last byte ms: p50 | max | |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        options.clients,
        options.clients,
        options.rounds,
        THINKING.as_millis(),
        OVER.as_secs(),
    );
    for &product in products {
        for outcome in outcomes.iter().filter(|outcome| outcome.product == product) {
            let (first, behind) = (&outcome.first, &outcome.behind);
            let _ = writeln!(
                text,
                "| {} | {} | {} of {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {} |",
                product.name(),
                outcome.at_origin,
                outcome.whole,
                options.clients,
                percentile(first, 50),
                percentile(first, 99),
                percentile(first, 100),
                percentile(behind, 50),
                percentile(behind, 100),
                outcome.failure.as_deref().unwrap_or(""),
            );
        }
    }
    text
}

/// `values` are sorted; NaN if empty.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn a_percentile_is_the_value_that_so_many_do_not_pass() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!([1, 50, 99, 100].map(|percent| percentile(&values, percent)), [2.0, 100.0, 198.0, 200.0]);
        assert_eq!(percentile(&[7.0], 50), 7.0);
        assert!(percentile(&[], 50).is_nan());
    }
}
