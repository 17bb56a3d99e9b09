//! What a server offers (RFC 8555 §7.1.1): where what is asked, and on which terms.
//!
//! Before: `transport`; next: `session`.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Directory {
    pub(crate) new_nonce: String,
    pub(crate) new_account: String,
    pub(crate) new_order: String,
    pub(crate) renewal_info: Option<String>,
    #[serde(default)]
    pub(crate) meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) terms_of_service: Option<String>,
    pub(crate) external_account_required: bool,
    pub(crate) profiles: BTreeMap<String, serde_json::Value>,
}
