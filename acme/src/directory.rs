//! What a server offers (RFC 8555 §7.1.1): where what is asked, and on which terms.
//!
//! Before: `transport`; next: `session`.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The directory of a server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Directory {
    pub(crate) new_nonce: String,
    pub(crate) new_account: String,
    pub(crate) new_order: String,
    /// Where it says when to renew (RFC 9773).
    pub(crate) renewal_info: Option<String>,
    #[serde(default)]
    pub(crate) meta: Meta,
}

/// What it says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) terms_of_service: Option<String>,
    pub(crate) external_account_required: bool,
    /// Profiles by name, with what is said of them.
    pub(crate) profiles: BTreeMap<String, serde_json::Value>,
}
