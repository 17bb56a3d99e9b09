//! `cargo xtask`: the project's own tasks, one file each.
//!
//! `test` is what a stranger runs, `check` what has to pass beside it; everything else makes something or measures. Nothing here is in the product.

mod source_text;
mod tree;
mod map;
mod tools;
mod manuals;
mod tidy;
mod instructions;
mod dist;
mod conformance;
mod deny;
mod bill;
mod package;
mod archive;
mod chart;
mod checks;

use std::process::ExitCode;

const USAGE: &str = "cargo xtask COMMAND

Test and check
  test                  all unit tests and scenarios
  check [NAME…]         everything else that has to pass, or a part of it: fmt, clippy, tidy, contexts, docs, licences, chart, static,
                        fuzz, loom, cache-tests, measuring
  tidy                  floors, names, sizes, words, and that the generated manuals are up to date
  conformance [OPTIONS] the HTTP cache tests, nginx's tests, other people's configurations (conformance --help)

Write
  docs                  the pages of docs/ that come from tables and types
  map [FOLDER]          every source file with its purpose

Package
  dist                  the binary of packages, optimized with a profile of its own work
  package [OPTIONS]     the Debian package (package --help)
  package --static      a program that needs no library, and its archive

Measure
  bench [OPTIONS]       side by side with nginx, HAProxy and Varnish (bench --help)
  bench idle            memory of idle keep-alive connections
  bench memory          bytes per stored entry beyond its content, longest store and look-up
  bench eviction        hit ratios on Zipf traces, compared with other ways to evict
  bench warm            a restart on a million files: first hit, whole index, memory
  bench index           an index of ten million files: longest pause of a worker, memory
  bench stampede        2,000 clients at once on one cold entry, beside nginx and Varnish
  bench refresh         one client during a background refresh, beside nginx
  bench purge           a purge by tag among a million entries
  bench verdict         whether the bottleneck of systems built for the purpose is named right
  bench find-max        how close `bench --find-max` comes to a known ceiling
  bench stall           a stall of the server, seen by an open and a closed loop
  bench attack          what hostile clients cost all others, beside nginx
  bench handshakes      CPU time of TLS handshakes, beside nginx
  bench streams         1,000 clients of event streams that come and go
  bench soak            mixed traffic for minutes, and whether everything is back where it was
  bench wordpress       a blog through PHP-FPM with fastcgi_cache, beside nginx
  bench http2           hits over HTTP/2 beside nginx, plain and over TLS, by h2load
  bench grpc            gRPC calls passed on, beside nginx
  bench watched         hits while five people watch the dashboard
  bench generator       `millstream bench` beside wrk, oha and h2load on one server
  instructions [NAME…]  instructions per iteration of the hot leaves, against benches/baseline.json";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", &[][..]),
    };
    let result = match command {
        "test" => checks::test(),
        "check" => checks::check(rest),
        "conformance" => conformance::run(rest),
        "tidy" => tidy::run(),
        "docs" => manuals::write(),
        "map" => map::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        "dist" => dist::run(),
        "package" => match rest.split_first() {
            Some((option, rest)) if option == "--static" => archive::run(rest),
            _ => package::run(rest),
        },
        "bench" => millstream_bench::run(rest),
        "instructions" => instructions::run(rest),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
