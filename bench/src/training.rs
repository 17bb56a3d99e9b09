//! The work that the profile of `cargo xtask dist` is taken from: every case of the bench, and misses that are stored.
//!
//! What is never seen here counts as cold and is built to be small, so a path that matters wants a case. Millstream loads
//! itself with `millstream bench`, which trains the generator too; over HTTP/2 `h2load` does, where it is. Nothing here measures: an instrumented program is slow.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::origin::{Origin, Step};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;

use crate::canned::Canned;
use crate::cases::{self, Case};
use crate::peers::{self, Started};
use crate::product::Product;
use crate::{h2load, http2};

/// Bytes of bodies in each case; a case with large bodies has fewer requests.
const BYTES: usize = 1 << 30;
const REQUESTS: (usize, usize) = (50, 60_000);
const CONNECTIONS: u32 = 64;
/// Of each kind, each on a new URL.
const MISSES: u32 = 10_000;
const LIMIT: Duration = Duration::from_secs(120);

/// The case whose server is used, the rest of the URL's query, and a request field.
const MISSED: &[(&str, &str, &str)] = &[
    ("hit", "size=900&age=86400", "Accept: application/json"),
    ("page", "size=20480&kind=text&age=86400", "Accept-Encoding: gzip"),
];

/// Has a program do all of it. On return its processes have ended, so their profiles are written.
pub fn train(millstream: &Path) -> Result<(), String> {
    let api =
        Origin::start(|request| vec![Step::Send(Canned::of(request.target().as_bytes()).bytes.to_vec())]);
    for case in cases::ALL.iter().filter(|case| case.products.contains(&Product::Millstream)) {
        eprintln!("training: {}", case.name);
        hits(millstream, case, &api)?;
    }
    for (name, query, field) in MISSED {
        eprintln!("training: misses like {name}");
        let case = cases::named(name).ok_or("a case that is missed has no name")?;
        misses(millstream, case, (query, field), &api)?;
    }
    if h2load::is_here() {
        eprintln!("training: hits over HTTP/2");
        http2::train(millstream, api.port())
    } else {
        eprintln!("no h2load: HTTP/2 is not trained for (apt-get install nghttp2-client)");
        Ok(())
    }
}

fn hits(millstream: &Path, case: &Case, api: &Origin) -> Result<(), String> {
    let server = serving(millstream, case, api)?;
    let scheme = if case.tls { "https" } else { "http" };
    let url = format!("{scheme}://127.0.0.1:{}{}", server.port, case.target);
    let requests = (BYTES / case.size.max(1)).clamp(REQUESTS.0, REQUESTS.1).to_string();
    let connections = case.connections.unwrap_or(CONNECTIONS).to_string();
    let mut flags = vec!["-n", &requests, "-c", &connections];
    flags.extend(case.fields.iter().flat_map(|field| ["-H", field]));
    load(millstream, &flags, &url)
}

fn misses(millstream: &Path, case: &Case, (query, field): (&str, &str), api: &Origin) -> Result<(), String> {
    let server = serving(millstream, case, api)?;
    let prefix = Prefix::new();
    let mut log = String::new();
    for number in 0..MISSES {
        let line = format!("GET /missed?{query}&number={number} HTTP/1.1");
        let _ = writeln!(log, "127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] \"{line}\" 200 900 \"-\" \"-\"");
    }
    let log = prefix.write("log", &log);
    let (log, requests) = (log.to_str().unwrap_or_default(), MISSES.to_string());
    let flags = ["-n", &requests, "-c", &CONNECTIONS.to_string(), "-H", field, "--log", log];
    load(millstream, &flags, &format!("http://127.0.0.1:{}", server.port))
}

fn serving(millstream: &Path, case: &Case, api: &Origin) -> Result<Started, String> {
    peers::on_nginx_file(Product::Millstream, millstream, case.nginx, api.port())
}

fn load(millstream: &Path, flags: &[&str], url: &str) -> Result<(), String> {
    let prefix = Prefix::new();
    let errors = File::create(prefix.join("errors")).map_err(|error| error.to_string())?;
    let mut command = Command::new(millstream);
    // Nobody trusts the certificate of the cases.
    command.args(["bench", "--quiet", "--insecure", "--timeout", "60s"]).args(flags).arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    let mut run = Running::start(&mut command).map_err(|error| format!("{command:?}: {error}"))?;
    match run.wait(LIMIT) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("{command:?}: {status}: {}", prefix.read("errors"))),
        None => Err(format!("{command:?}: not done within {LIMIT:?}")),
    }
}
