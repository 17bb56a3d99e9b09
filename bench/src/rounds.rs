//! The measuring: start all of a case, check every answer, then take turns, round after round.

use millstream_tests::client::Client;
use millstream_tests::process::cpu_time;

use crate::cases::{self, Case};
use crate::peers::{self, Started};
use crate::product::{self, Product};
use crate::wrk::{self, Run};
use crate::{Options, Programs};

#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) run: Run,
    /// Microseconds of all the server's processes per response.
    pub(crate) cpu: f64,
    /// Requests that reached the origin during the turn.
    pub(crate) origin: u64,
}

pub(crate) struct Series {
    pub(crate) product: Product,
    pub(crate) turns: Vec<Turn>,
}

pub(crate) struct Outcome {
    pub(crate) case: &'static Case,
    pub(crate) series: Vec<Series>,
}

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<Vec<Outcome>, String> {
    let wanted: Vec<&'static Case> = cases::ALL
        .iter()
        .filter(|case| options.only.is_empty() || options.only.iter().any(|name| name == case.name))
        .collect();
    let products: Vec<Product> = wanted.iter().flat_map(|case| takes_part(case, options)).collect();
    // One that was named need not be installed.
    let installed: Vec<Product> = products
        .into_iter()
        .filter(|product| *product != Product::Nginx || options.nginx.is_none())
        .collect();
    let missing = product::missing(&installed);
    if !missing.is_empty() {
        return Err(missing.join("\n") + "\n(or --skip-peers)");
    }
    let origin = peers::origin(programs)?;
    wanted.into_iter().map(|case| measure(case, options, programs, &origin)).collect()
}

fn takes_part(case: &Case, options: &Options) -> Vec<Product> {
    let wanted = |product: &Product| {
        !(options.skip_peers && product.is_peer()) && (options.millstream || *product != Product::Millstream)
    };
    case.products.iter().copied().filter(wanted).collect()
}

fn measure(
    case: &'static Case,
    options: &Options,
    programs: &Programs,
    origin: &Started,
) -> Result<Outcome, String> {
    let mut servers = Vec::new();
    for product in takes_part(case, options) {
        let server = peers::for_case(product, case, origin.port, programs)?;
        check(case, &server)?;
        servers.push(server);
    }
    let mut series: Vec<Series> =
        servers.iter().map(|server| Series { product: server.product, turns: Vec::new() }).collect();
    for round in 0..=options.rounds {
        // Round 0 is warm-up: a second each, so that pools are full and caches hot.
        let seconds = if round == 0 { 1 } else { options.duration };
        for (server, series) in servers.iter().zip(&mut series) {
            let turn = turn(case, options, server, origin, seconds)?;
            eprintln!(
                "{} {}/{} {:<10} {:>9.0} requests/s {:>7.2} µs",
                case.name,
                round,
                options.rounds,
                server.product.name(),
                turn.run.requests_per_second,
                turn.cpu
            );
            if round > 0 {
                series.turns.push(turn);
            }
        }
    }
    Ok(Outcome { case, series })
}

fn target(case: &Case, product: Product) -> &'static str {
    if product == Product::Floor { "/floor" } else { case.target }
}

fn turn(
    case: &Case,
    options: &Options,
    server: &Started,
    origin: &Started,
    seconds: u32,
) -> Result<Turn, String> {
    let scheme = if case.tls { "https" } else { "http" };
    let url = format!("{scheme}://127.0.0.1:{}{}", server.port, target(case, server.product));
    let (count, cpu) = (origin.answered()?, cpu_time(server.id()));
    let run = wrk::run(&url, case.fields, case.connections.unwrap_or(options.connections), seconds)?;
    let used = cpu_time(server.id()) - cpu;
    let cpu = used.as_micros() as f64 / run.requests.max(1) as f64;
    Ok(Turn { run, cpu, origin: origin.answered()? - count })
}

/// Checks that the server does the work of the case: status, length, coding, and that a hit is one.
fn check(case: &Case, server: &Started) -> Result<(), String> {
    // The client of the tests speaks no TLS; the generator does, and counts what is no 200.
    if case.tls {
        return Ok(());
    }
    let fields: Vec<(&str, &str)> = case.fields.iter().filter_map(|field| field.split_once(": ")).collect();
    let wrong = |what: String| format!("{} on {}: {what}", server.product.name(), case.name);
    // Thrice: the first fills, and one more for a server that stores at the second request only.
    let mut last = None;
    for _ in 0..3 {
        let mut client = Client::connect(server.port).map_err(|error| wrong(error.to_string()))?;
        let answer = client
            .get_with(target(case, server.product), &fields)
            .map_err(|error| wrong(error.to_string()))?;
        last = Some(answer);
    }
    let answer = last.ok_or("three requests were made")?;
    let gzip = case.fields.iter().any(|field| field.contains("gzip"));
    let coding = answer.field("content-encoding").unwrap_or("none");
    match () {
        () if answer.status != 200 => Err(wrong(format!("status {}", answer.status))),
        () if gzip != (coding == "gzip") => Err(wrong(format!("Content-Encoding {coding}"))),
        () if !gzip && answer.body.len() != case.size => Err(wrong(format!("{} bytes", answer.body.len()))),
        () if gzip && answer.body.len() * 2 > case.size => {
            Err(wrong(format!("{} bytes gzipped", answer.body.len())))
        }
        () => {
            eprintln!("{} {}: {} bytes, {coding}", case.name, server.product.name(), answer.body.len());
            Ok(())
        }
    }
}
