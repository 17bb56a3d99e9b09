//! `cargo xtask bench grpc`: calls and streams of gRPC passed on, beside nginx.
//!
//! Both have one worker and pass calls to one server in Go; the client is in Go too (`tests/grpc/`), and looks at every answer. Those two want more
//! CPU than the proxy between them, so calls a second say little of it. What its own CPU would carry does: that is where the bar is.

use std::fmt::Write as _;

use millstream_tests::judges::{self, JudgeServer};
use millstream_tests::process::cpu_time;

use crate::peers::{self, Started};
use crate::product::Product;
use crate::{Options, Programs, beside};

const FILE: &str = "bench/conf/grpc.conf";

/// A kind of call, and the bar: the fewest calls per second of CPU, as a multiple of nginx's.
struct Calling {
    about: &'static str,
    caller: Caller,
    flags: &'static [&'static str],
    counted: [&'static str; 2],
    bar: f64,
}

#[derive(Clone, Copy)]
enum Caller {
    /// The scenarios' own client, whose flags start with a subcommand. It checks every response.
    Judge,
    Ghz,
}

const ROWS: &[Calling] = &[
    Calling {
        about: "unary calls of 100 B, 50 connections, by ghz",
        caller: Caller::Ghz,
        flags: &["-c", "50", "--connections", "50"],
        counted: ["count", "rps"],
        bar: 1.5,
    },
    Calling {
        about: "unary calls of 100 B, 50 connections",
        caller: Caller::Judge,
        flags: &["load", "-c", "50", "-w", "1", "-size", "100"],
        counted: ["calls", "calls_per_second"],
        bar: 1.5,
    },
    Calling {
        about: "unary calls of 100 B, 5 connections with 10 at a time",
        caller: Caller::Judge,
        flags: &["load", "-c", "5", "-w", "10", "-size", "100"],
        counted: ["calls", "calls_per_second"],
        bar: 1.5,
    },
    Calling {
        about: "messages of 100 B both ways, 50 streams on 5 connections",
        caller: Caller::Judge,
        flags: &["bidi", "-c", "5", "-w", "10", "-size", "100", "-turns", "100"],
        counted: ["messages", "messages_per_second"],
        bar: 1.0,
    },
];

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let ours = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let nginx = programs.nginx.as_deref().ok_or("no nginx: --nginx PATH")?;
    let behind = JudgeServer::go(&[]).ok_or("no Go, or not its modules")?;
    let servers = [
        peers::on_nginx_file(Product::Millstream, ours, FILE, behind.port())?,
        peers::on_nginx_file(Product::Nginx, nginx, FILE, behind.port())?,
    ];
    let mut table = format!(
        "### gRPC passed on\n\n`cargo xtask bench grpc --rounds {} --duration {}`: medians.\n\n| what | Millstream, µs | nginx, µs | Millstream, \
         1/s | nginx, 1/s | on the same CPU | |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
        options.rounds, options.duration,
    );
    let mut holds = true;
    for row in ROWS {
        let [[own, own_rate], [other, other_rate]] =
            beside::medians(options, &servers, |server, seconds| turn(server, row, seconds))?;
        let ratio = other / own;
        let passes = ratio >= row.bar;
        holds &= passes;
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| {} | {own:.1} | {other:.1} | {own_rate:.0} | {other_rate:.0} | {ratio:.2}x (at least {}) | {} |",
            row.about,
            row.bar,
            if passes { "pass" } else { "**FAIL**" }
        );
    }
    if holds { Ok(table) } else { Err(table) }
}

/// Microseconds of CPU per call, and calls a second.
fn turn(server: &Started, row: &Calling, seconds: u32) -> Result<[f64; 2], String> {
    let before = cpu_time(server.id());
    let (duration, limit) = (format!("{seconds}s"), format!("{}s", seconds + 60));
    let address = format!("127.0.0.1:{}", server.port);
    let (told, is_right) = match row.caller {
        Caller::Judge => {
            let flags = [&["-wait", &limit], row.flags, &["-duration", &duration, &address]].concat();
            let told = judges::judged(&flags);
            let is_right = told["ok"] == true;
            (told, is_right)
        }
        Caller::Ghz => {
            let flags = [row.flags, &["-z", &duration, "--duration-stop", "wait", &address]].concat();
            let told = judges::asked_by_ghz(100, &flags).ok_or("Go cannot build ghz")?;
            let is_right = told["statusCodeDistribution"] == serde_json::json!({ "OK": told["count"] });
            (told, is_right)
        }
    };
    let spent = cpu_time(server.id()) - before;
    if !is_right {
        return Err(format!("{}: {told}\n{}", server.product.name(), server.log()));
    }
    let [count, rate] = row.counted.map(|name| told[name].as_f64().unwrap_or_default());
    Ok([spent.as_micros() as f64 / count.max(1.0), rate])
}
