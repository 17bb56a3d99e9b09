//! `shadow --prove`: what caching the most valuable route gains, measured by `ladder` as a process of its own.

use crate::measure::end::{self, End};
use millstream_shadow::Report;
use std::env;
use std::process::Command;

/// Measures the first cacheable route whose path is known: of one with {id}, no URL was kept.
pub(super) fn measure(report: &Report, urls: &[String]) -> Result<(), End> {
    let exact = report.routes.iter().find(|route| route.keep_seconds.is_some() && !route.route.contains('{'));
    let (Some(route), Some(api)) = (exact, urls.first()) else {
        end::tell(
            "--prove: no cacheable route has a fixed path (without {id}, {uuid}, {hash} or {word}); nothing was measured",
        );
        return Ok(());
    };
    let url = format!("{}{}", api.trim_end_matches('/'), route.route);
    let lifetime = format!("{}s", route.keep_seconds.unwrap_or_default());
    let failed = |error| format!("--prove: ladder cannot be started: {error}");
    let itself = env::current_exe().map_err(failed)?;
    let status =
        Command::new(itself).args(["ladder", &url, "--valid", &lifetime]).status().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(format!("--prove: ladder {url} failed").into()) }
}
