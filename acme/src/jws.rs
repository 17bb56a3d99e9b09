//! What is asked, signed (RFC 8555 §6.2): the protected part, the payload and the signature as one JSON object.
//!
//! Before: `key`; next: `session`, which sends them.

use crate::failure::AcmeFailure;
use crate::key::SigningKey;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use millstream_conf::model::ExternalAccount;
use serde_json::{Value, json};

pub(crate) enum Signer<'a> {
    Key,
    /// The account's URL.
    Account(&'a str),
}

/// A signed request; without a payload it is a POST-as-GET (§6.3).
pub(crate) fn signed(
    key: &SigningKey,
    signer: &Signer<'_>,
    (url, nonce): (&str, &str),
    payload: Option<&Value>,
) -> Result<String, AcmeFailure> {
    let mut protected = json!({ "alg": key.algorithm(), "nonce": nonce, "url": url });
    match signer {
        Signer::Key => protected["jwk"] = jwk(key),
        Signer::Account(account) => protected["kid"] = json!(account),
    }
    let payload = payload.map(Value::to_string).unwrap_or_default();
    assemble(&protected, &payload, |message| key.sign(message)).map(|signed| signed.to_string())
}

/// External account binding (§7.3.4).
pub(crate) fn bound(key: &SigningKey, account: &ExternalAccount, url: &str) -> Result<Value, AcmeFailure> {
    let secret = URL_SAFE_NO_PAD
        .decode(account.key.as_bytes())
        .map_err(|_| AcmeFailure::Key("the external account key is not base64url".to_owned()))?;
    let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    let protected = json!({ "alg": "HS256", "kid": account.id, "url": url });
    assemble(&protected, &key.jwk(), |message| Ok(hmac::sign(&secret, message).as_ref().to_vec()))
}

fn jwk(key: &SigningKey) -> Value {
    serde_json::from_str(&key.jwk()).unwrap_or_default()
}

fn assemble(
    protected: &Value,
    payload: &str,
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, AcmeFailure>,
) -> Result<Value, AcmeFailure> {
    let protected = URL_SAFE_NO_PAD.encode(protected.to_string());
    let payload = URL_SAFE_NO_PAD.encode(payload);
    let signature = sign(format!("{protected}.{payload}").as_bytes())?;
    Ok(json!({
        "protected": protected,
        "payload": payload,
        "signature": URL_SAFE_NO_PAD.encode(signature),
    }))
}
