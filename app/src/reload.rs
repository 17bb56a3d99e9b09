//! `HUP`: the configuration is read anew; on any error the old one goes on and the error log says why.

use crate::assemble::assemble;
use crate::clusters;
use crate::descriptors;
use crate::keeper::Keeper;
use millstream_conf::diagnostics::{Diagnostics, Severity};
use millstream_conf::load::Loaded;
use millstream_conf::model::Level;
use millstream_conf::source::Sources;
use millstream_net::listener::Listening;
use millstream_server::generation::Shared;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::Registry;
use std::sync::Arc;

pub struct Reloaded {
    pub shared: Arc<Shared>,
    pub listenings: Vec<Arc<Listening>>,
    pub has_left: bool,
}

/// Reads, checks and assembles; `None` after an error, which is in the log.
pub fn reload(
    keeper: &mut Keeper,
    log_writer: &Arc<LogWriter>,
    registry: &Arc<Registry>,
    old: &Shared,
) -> Option<Reloaded> {
    // Counted before any file is read, so that an edit that the reading misses is one more.
    let edits: Vec<u64> = old.groups.iter().map(|group| group.edits()).collect();
    let Loaded { configuration, sources, diagnostics, .. } = match keeper.load() {
        Ok(loaded) => loaded,
        Err(error) => {
            old.logs.main.write(Level::Alert, format_args!("the configuration cannot be read: {error}"));
            return None;
        }
    };
    log_findings(&diagnostics, &sources, &old.logs.main, Severity::Warning);
    let configuration = configuration?;
    let assembled = match assemble(configuration, old.edition.number + 1, log_writer, registry, Some(old)) {
        Ok(assembled) => assembled,
        Err(findings) => {
            log_findings(&findings, &sources, &old.logs.main, Severity::Warning);
            return None;
        }
    };
    match keeper.listen(assembled.configuration()) {
        Ok(opened) => {
            for error in &opened.missing {
                old.logs.main.write(Level::Warn, format_args!("{error}"));
            }
            // The last thing that could fail is done: from here on the new configuration is in force.
            descriptors::allow(assembled.configuration(), |complaint| {
                old.logs.main.write(Level::Warn, complaint)
            });
            let shared = assembled.commit(Some(old));
            clusters::start(&shared.clusters, &shared.logs.main);
            for (before, edits) in old.groups.iter().zip(edits) {
                if let Some(next) = shared.groups.iter().find(|next| next.name() == before.name()) {
                    next.succeed(before, edits);
                }
            }
            Some(Reloaded { shared, listenings: opened.listenings, has_left: opened.has_left })
        }
        Err(errors) => {
            for error in errors {
                old.logs.main.write(Level::Emerg, format_args!("{error}"));
            }
            None
        }
    }
}

pub fn log_findings(findings: &Diagnostics, sources: &Sources, log: &ErrorLogs, least: Severity) {
    for finding in findings.sorted() {
        let level = match finding.severity {
            Severity::Error => Level::Emerg,
            Severity::Warning => Level::Warn,
            Severity::Idle => Level::Notice,
        };
        if finding.severity >= least {
            let place = finding.span.map(|span| format!(" in {}", sources.locate(span))).unwrap_or_default();
            let elsewhere = match finding.elsewhere(sources) {
                none if none.is_empty() => none,
                others => format!(", also in {others}"),
            };
            log.write(level, format_args!("{}{place}{elsewhere}", finding.message));
        }
    }
}
