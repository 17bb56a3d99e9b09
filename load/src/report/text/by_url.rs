//! The lines of a report that say how each URL fared.

use super::{OTHER_URLS, latency_of, printable};
use crate::outcome::OfUrl;
use crate::report::quantity::count;
use std::fmt::Write as _;

/// The most URLs that have a line of figures.
const URL_LINES: usize = 10;

/// A line for each URL, where there are several.
pub(super) fn lines(text: &mut String, rows: &[OfUrl]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "  By URL, slowest in total first\n      answers    errors        50%        99%");
    for row in rows.iter().take(URL_LINES) {
        let url = row.url.as_deref().map_or_else(|| OTHER_URLS.to_owned(), printable);
        let (answers, errors) = (count(row.answers), count(row.errors));
        let _ = writeln!(
            text,
            "    {answers:>9} {errors:>9} {:>10} {:>10}   {url}",
            latency_of(row, row.p50),
            latency_of(row, row.p99)
        );
    }
    let left: &[OfUrl] = rows.get(URL_LINES..).unwrap_or_default();
    if !left.is_empty() {
        let (answers, errors) =
            (left.iter().map(|row| row.answers).sum(), left.iter().map(|row| row.errors).sum());
        let (answers, errors) = (count(answers), count(errors));
        let _ = writeln!(
            text,
            "    {answers:>9} {errors:>9} {:>24} {} more, see --json or --html",
            "",
            left.len()
        );
    }
}
