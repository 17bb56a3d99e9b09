//! `-t` and `-T`: every finding, then the verdict.
//!
//! Beyond reading the files it tries what a start would: names, certificates, log files, directories for caches and
//! temporary files.

use crate::account::{warn_of_idle_user, with_default_user};
use crate::assemble;
use crate::cli::TestOutput;
use crate::logs;
use millstream_conf::diagnostics::Severity;
use millstream_conf::dump;
use millstream_conf::load::{Loaded, Options, load};
use millstream_net::privileges;
use std::io::Write;
use std::process::ExitCode;

pub fn test(options: &Options, how: TestOutput) -> ExitCode {
    let mut loaded = with_default_user(load(options), privileges::may_change_user());
    warn_of_idle_user(&mut loaded, rustix::process::geteuid().is_root());
    logs::warn_of_folders(&mut loaded);
    if let Some(configuration) = &mut loaded.configuration {
        assemble::probe(configuration, &mut loaded.diagnostics);
    }
    report(&loaded, if how.verbose { Severity::Idle } else { Severity::Warning });
    let path = options.prefix.join(&options.main_file);
    let failed = loaded.diagnostics.has_errors();
    if !how.quiet || failed {
        if !failed {
            eprintln!("millstream: the configuration file {} syntax is ok", path.display());
        }
        let verdict = if failed { "failed" } else { "is successful" };
        eprintln!("millstream: configuration file {} test {verdict}", path.display());
    }
    if how.dump && !failed {
        // A closed pipe on standard output is the reader's wish.
        _ = dump::write(&loaded.sources, &mut std::io::stdout());
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

pub fn report(loaded: &Loaded, least: Severity) {
    let mut shown = String::new();
    for finding in loaded.diagnostics.sorted() {
        if finding.severity >= least {
            shown += &finding.render(&loaded.sources);
        }
    }
    // Standard error may be closed (a supervisor's choice); the findings go to the error log as well.
    _ = std::io::stderr().write_all(shown.as_bytes());
}
