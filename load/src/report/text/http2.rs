//! The lines of a report that HTTP/2 has to itself.

use super::printable;
use crate::outcome::Outcome;
use crate::report::quantity::count;
use std::fmt::Write as _;

/// What there is to say of HTTP/2.
pub(super) fn lines(text: &mut String, outcome: &Outcome) {
    let Some(http2) = &outcome.http2 else { return };
    if let Some(words) = fewer_streams(outcome) {
        let _ = writeln!(text, "  {words}");
    }
    if http2.going_away > 0 {
        let _ = writeln!(
            text,
            "  Connections that the server wanted to end (GOAWAY): {}",
            count(http2.going_away)
        );
    }
    if !http2.resets.is_empty() {
        let resets: Vec<String> = http2
            .resets
            .iter()
            .map(|(name, number)| format!("{}: {}", printable(name), count(*number)))
            .collect();
        let _ = writeln!(text, "  Streams that the server ended: {}", resets.join(", "));
    }
    if let Some(broken) = &http2.broken {
        let _ = writeln!(text, "  First broken rule of HTTP/2: the server sent {}", printable(broken));
    }
}

/// What is said where the server allows fewer streams than were asked for.
pub(in crate::report) fn fewer_streams(outcome: &Outcome) -> Option<String> {
    let allowed = outcome.http2.as_ref()?.allowed?;
    Some(format!(
        "Streams: the server allows {} of the {} asked for at once (SETTINGS_MAX_CONCURRENT_STREAMS)",
        count(u64::from(allowed)),
        count(u64::from(outcome.pipeline))
    ))
}
