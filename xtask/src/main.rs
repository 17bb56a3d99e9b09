//! `cargo xtask`: the project's own tasks, one file each.
//!
//! `test` is what a stranger runs, `check` what has to pass beside it; everything else makes something or measures. Nothing here is in the product.

mod source_text;
mod tree;
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

  test                  all unit tests and scenarios
  check [NAME…]         everything else that has to pass, or some of it: fmt, clippy, tidy, contexts, docs, licences, chart, static,
                        fuzz, loom, cache-tests, measuring
  conformance [OPTIONS] the HTTP cache tests, an outside judge (conformance --help)
  tidy                  floors, names, sizes, and that the generated manuals are up to date
  docs                  writes the pages of docs/ that come from tables and types
  dist                  the binary that packages carry, optimised by a profile of its own work
  package [OPTIONS]     the Debian package, of that binary or with --profile of another (package --help)
  package --static      a program that needs no library, and an archive of it
  bench [OPTIONS]       side by side with nginx, HAProxy and Varnish (bench --help)
  bench idle            memory of idle keep-alive connections
  bench memory          bytes per stored entry beyond its content, longest store and look-up
  bench eviction        hit ratios on Zipf traces, plain and mixed with a scan, beside other ways to evict
  bench warm            a restart on a million files: first hit, whole index, its memory
  bench index           an index of ten million files: how long it ever holds a worker's loop, its memory
  bench stampede        2,000 clients at once on one cold entry, beside nginx and Varnish
  bench refresh         one client beside a refresh in the background, beside nginx
  bench purge           a purge by tag among a million entries
  bench verdict         whether the limit is named right in cases that are built for it
  bench find-max        how near `bench --find-max` comes to a ceiling that is known
  bench stall           a stall of the server, seen by an open and a closed loop
  bench attack          what hostile clients cost everybody else, beside nginx
  bench streams         1,000 clients of event streams that come and go
  bench soak            mixed traffic for minutes, and whether everything is back where it was
  bench wordpress       a blog through PHP-FPM with fastcgi_cache, beside nginx
  bench http2           hits over HTTP/2 beside nginx, in clear and over TLS, by h2load
  bench grpc            calls of gRPC passed on, beside nginx, by a server and a client in Go
  bench watched         a hit while five people look at the dashboard, beside one that is not counted, and nginx
  bench generator       `millstream bench` beside wrk and oha on one server, over HTTP/2 beside h2load
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
