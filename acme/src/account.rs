//! The account at a server (RFC 8555 §7.3): found by its key, or made.
//!
//! Asking for one that is there already gives that, so nothing has to be remembered for it to be found. Before: `session`; next: `order`.

use crate::failure::AcmeFailure;
use crate::jws::bound;
use crate::session::Session;
use millstream_conf::model::AcmeIssuer;
use serde_json::json;

/// Creates or finds the account; returns its URL and whether it is new.
pub(crate) async fn register(
    session: &mut Session,
    issuer: &AcmeIssuer,
) -> Result<(String, bool), AcmeFailure> {
    let meta = &session.directory.meta;
    if let Some(terms) = meta.terms_of_service.as_ref().filter(|_| !issuer.accepts_terms) {
        return Err(AcmeFailure::Terms(terms.clone()));
    }
    if meta.external_account_required && issuer.external_account.is_none() {
        return Err(AcmeFailure::NeedsExternalAccount);
    }
    let url = session.directory.new_account.clone();
    let mut payload = json!({ "contact": issuer.contacts });
    if issuer.accepts_terms {
        payload["termsOfServiceAgreed"] = json!(true);
    }
    if let Some(external) = &issuer.external_account {
        payload["externalAccountBinding"] = bound(&session.key, external, &url)?;
    }
    session.account = None;
    let reply = session.post(&url, &payload).await?;
    let account = reply.field("location").ok_or(AcmeFailure::Answer("contains no account URL"))?.to_owned();
    session.account = Some(account.clone());
    Ok((account, reply.status == 201))
}
