//! Options of wrk, ab, hey, h2load and curl that `bench` has under another name, or does not need.
//!
//! A table alone: none of them is taken, each is explained where it is written.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// Options of other tools, and what to write here.
const OPTIONS: [(&[&str], &str); 12] = [
    (
        &["-s", "--script"],
        "scripts of wrk are not supported: use several URLs, or --data-file, --log, -m, -H and -b instead",
    ),
    (&["--latency", "-U", "--u_latency"], "every report contains the percentiles: omit the option"),
    (&["-X", "--request"], "write -m METHOD"),
    (
        &["-p", "-D", "--data", "--data-raw", "--data-binary"],
        "write -b TEXT, or -b @FILE with -m for the method",
    ),
    (&["-T", "--content-type"], "write -H 'Content-Type: …'"),
    (&["-A", "-a", "-u", "--user"], "write -H 'Authorization: Basic …'"),
    (&["-C", "--cookie"], "write -H 'Cookie: …'"),
    (&["-i", "--head"], "write -m HEAD"),
    (&["-z"], "write -d TIME"),
    (&["--vus"], "write -c N"),
    (&["--iterations"], "write -n N"),
    (&["-o", "-e", "-g", "-w"], "write --json, --html, --export-hdr or --export-prometheus with a file"),
];

/// Adds the equivalent here to an error about an unknown option.
pub(super) fn explain(error: &mut clap::Error) {
    let Some(ContextValue::String(written)) = error.get(ContextKind::InvalidArg) else { return };
    let name = written.split('=').next().unwrap_or_default();
    let found = OPTIONS.iter().find(|(names, _)| names.contains(&name));
    if let Some((_, words)) = found {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(*words)]));
    }
}
