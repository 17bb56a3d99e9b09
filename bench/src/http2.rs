//! `cargo xtask bench http2`: hits over HTTP/2 beside nginx, in clear and over TLS, by the streams of a connection.
//!
//! Both read one file and are loaded by `h2load` in turns. The bars are the product's own.

use std::fmt::Write as _;
use std::path::Path;

use millstream_tests::prefix::Prefix;
use millstream_tests::process::cpu_time;
use millstream_tests::workspace;

use crate::peers::{self, Started};
use crate::product::Product;
use crate::{Options, Programs, beside, h2load};

pub(crate) const FILE: &str = "bench/conf/http2.conf";
const CONNECTIONS: u32 = 50;

/// A kind of load, and the bars relative to nginx: most CPU per request, fewest requests a second.
struct Asked {
    about: &'static str,
    tls: bool,
    target: &'static str,
    streams: u32,
    cost: f64,
    rate: f64,
}

const ROWS: &[Asked] = &[
    Asked {
        about: "900 B",
        tls: false,
        target: "/api?size=900&age=86400",
        streams: 1,
        cost: 0.45,
        rate: 1.0,
    },
    Asked {
        about: "900 B",
        tls: false,
        target: "/api?size=900&age=86400",
        streams: 20,
        cost: 0.15,
        rate: 4.0,
    },
    Asked {
        about: "900 B",
        tls: false,
        target: "/api?size=900&age=86400",
        streams: 100,
        cost: 0.15,
        rate: 4.0,
    },
    Asked {
        about: "900 B over TLS",
        tls: true,
        target: "/api?size=900&age=86400",
        streams: 1,
        cost: 0.55,
        rate: 1.0,
    },
    Asked {
        about: "900 B over TLS",
        tls: true,
        target: "/api?size=900&age=86400",
        streams: 20,
        cost: 0.5,
        rate: 1.0,
    },
    Asked {
        about: "60 KB",
        tls: false,
        target: "/api?size=61440&kind=text&age=86400",
        streams: 10,
        cost: 0.5,
        rate: 1.5,
    },
];

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let origin = peers::origin(programs)?;
    let ours = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let nginx = programs.nginx.as_deref().ok_or("no nginx: --nginx PATH")?;
    let files = Prefix::new();
    let secured = secured(&files)?;
    let mut table = format!(
        "### Hits over HTTP/2, {CONNECTIONS} connections\n\n`cargo xtask bench http2 --rounds {} --duration {}`: medians.\n\n| answer | \
         streams | Millstream, µs | nginx, µs | CPU | requests/s | |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
        options.rounds, options.duration,
    );
    let mut holds = true;
    for row in ROWS {
        let file = if row.tls { &secured } else { FILE };
        let servers = [
            peers::on_nginx_file(Product::Millstream, ours, file, origin.port)?,
            peers::on_nginx_file(Product::Nginx, nginx, file, origin.port)?,
        ];
        let [[own, own_rate], [other, other_rate]] =
            beside::medians(options, &servers, |server, seconds| turn(server, row, seconds))?;
        let (cost, rate) = (own / other, own_rate / other_rate);
        let passes = cost <= row.cost && rate >= row.rate;
        holds &= passes;
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| {} | {} | {own:.2} | {other:.2} | {cost:.2} (at most {}) | {rate:.1}x (at least {}) | {} |",
            row.about,
            row.streams,
            row.cost,
            row.rate,
            if passes { "pass" } else { "**FAIL**" }
        );
    }
    if holds { Ok(table) } else { Err(table) }
}

/// Lets a program serve what the rows ask for, so that its profile covers it.
pub(crate) fn train(millstream: &Path, origin_port: u16) -> Result<(), String> {
    let files = Prefix::new();
    let secured = secured(&files)?;
    for row in ROWS {
        let file = if row.tls { &secured } else { FILE };
        let server = peers::on_nginx_file(Product::Millstream, millstream, file, origin_port)?;
        turn(&server, row, 2)?;
    }
    Ok(())
}

fn secured(files: &Prefix) -> Result<String, String> {
    let text = std::fs::read_to_string(workspace().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let path = files.write("tls.conf", text.replace("@PORT@;", "@PORT@ ssl;"));
    Ok(path.to_str().unwrap_or_default().to_owned())
}

/// Microseconds of CPU per response, and responses a second.
fn turn(server: &Started, row: &Asked, seconds: u32) -> Result<[f64; 2], String> {
    let before = cpu_time(server.id());
    let scheme = if row.tls { "https" } else { "http" };
    let url = format!("{scheme}://127.0.0.1:{}{}", server.port, row.target);
    let run = h2load::run(&url, CONNECTIONS, row.streams, seconds)?;
    if run.failed > 0 {
        return Err(format!("{}: {} requests failed\n{}", server.product.name(), run.failed, server.log()));
    }
    let cost = (cpu_time(server.id()) - before).as_micros() as f64 / run.requests.max(1) as f64;
    Ok([cost, run.requests_per_second])
}
