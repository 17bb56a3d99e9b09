//! The report on the locations with `shadow on`.
//!
//! Before: `millstream-server`'s `shadow_zone`, which observes; `millstream-shadow`, which judges.

use crate::refusal::ApiRefusal;
use crate::resource;
use millstream_conf::value;
use millstream_net::blocking;
use millstream_server::request::Request;
use millstream_shadow::Report;

/// Fails without such a location, and for a budget that is none.
pub(crate) async fn report(request: &Request) -> Result<Report, ApiRefusal> {
    let arguments = resource::arguments(request.query().unwrap_or_default());
    let budget = match arguments.iter().find(|(name, _)| name == "stale_budget") {
        None => None,
        Some((_, text)) => Some(share(text).ok_or_else(|| {
            ApiRefusal::new(
                400,
                "BadStaleBudget",
                "invalid stale_budget: write a share above 0 such as 0.1% or 0.001",
            )
        })?),
    };
    let shadows = &request.generation.shared.zones.shadows;
    let zone = shadows.zone().cloned().ok_or_else(|| {
        ApiRefusal::new(
            404,
            "ShadowOff",
            "no location is observed: write \"shadow on;\" in a location that passes requests on and has no cache",
        )
    })?;
    // It takes a while, which no worker has.
    Ok(blocking::run(move || zone.report(budget)).await)
}

/// Above zero and at most one.
fn share(text: &[u8]) -> Option<f64> {
    value::share(std::str::from_utf8(text).ok()?).filter(|share| *share > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_share_above_zero() {
        for (text, expected) in [
            ("0.1%", Some(0.001)),
            ("0.001", Some(0.001)),
            ("1", Some(1.0)),
            ("0", None),
            ("2", None),
            ("-1%", None),
            ("", None),
            ("1e-3", None),
        ] {
            assert_eq!(share(text.as_bytes()), expected, "{text}");
        }
    }
}
