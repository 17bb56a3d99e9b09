//! When a server wants a certificate to be renewed (RFC 9773).
//!
//! Before: `session`; next: `schedule`, which weighs it.

use crate::failure::AcmeFailure;
use crate::rfc3339;
use crate::session::{Session, read};
use serde::Deserialize;
use std::time::Duration;

/// Shortest pause between two questions.
const LEAST_REST: Duration = Duration::from_secs(60);
const REST: Duration = Duration::from_secs(6 * 60 * 60);
const MOST_REST: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Suggestion {
    /// First and last second to renew, since 1970.
    pub(crate) window: (i64, i64),
    pub(crate) rest: Duration,
}

#[derive(Deserialize)]
struct RenewalInfo {
    #[serde(rename = "suggestedWindow")]
    window: Window,
}

#[derive(Deserialize)]
struct Window {
    start: String,
    end: String,
}

/// `None` if the server offers no renewal information.
pub(crate) async fn ask(session: &Session, renewal_id: &str) -> Result<Option<Suggestion>, AcmeFailure> {
    let Some(base) = &session.directory.renewal_info else { return Ok(None) };
    let reply = session.fetch(&format!("{}/{renewal_id}", base.trim_end_matches('/'))).await?;
    let info: RenewalInfo = read(&reply)?;
    let rest = reply.retry_after().unwrap_or(REST).clamp(LEAST_REST, MOST_REST);
    let moments = rfc3339::seconds(&info.window.start).zip(rfc3339::seconds(&info.window.end));
    let window = moments.ok_or(AcmeFailure::Answer("contains an invalid time"))?;
    Ok(Some(Suggestion { window, rest }))
}
