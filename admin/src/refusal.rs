//! A request of the API that is refused: its status, and the error in NGINX Plus's form.
//!
//! What is refused, and why, is decided by those that make one. Next: `api`, which sends it.

use millstream_server::client::Client;
use millstream_server::content::fixed;
use millstream_server::content::purge::Refusal;
use millstream_server::outcome::Outcome;
use millstream_server::request::Request;
use millstream_wire::Headers;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An error in NGINX Plus's form.
#[derive(Debug, Serialize, Deserialize)]
pub struct ApiError {
    pub error: ApiErrorText,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ApiErrorText {
    pub status: u16,
    pub text: String,
    pub code: String,
}

pub(crate) struct ApiRefusal {
    refusal: Refusal,
    code: &'static str,
    allow: String,
}

impl ApiRefusal {
    pub(crate) fn new(status: u16, code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        ApiRefusal { refusal: Refusal { status, text: text.into() }, code, allow: String::new() }
    }

    /// With the methods that the path supports, as `Allow` lists them.
    pub(crate) fn allowing(self, allow: String) -> Self {
        ApiRefusal { allow, ..self }
    }
}

impl From<Refusal> for ApiRefusal {
    fn from(refusal: Refusal) -> Self {
        ApiRefusal { refusal, code: "PurgeImpossible", allow: String::new() }
    }
}

pub(crate) async fn refuse(request: &mut Request, client: &mut Client, refusal: ApiRefusal) -> Outcome {
    let ApiRefusal { refusal: Refusal { status, text }, code, allow } = refusal;
    let error = ApiErrorText { status, text: text.into_owned(), code: code.to_owned() };
    let Ok(mut body) = serde_json::to_vec(&ApiError { error }) else { return Outcome::Status(500) };
    body.push(b'\n');
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"application/json");
    headers.push(b"Cache-Control", b"no-store");
    if !allow.is_empty() {
        headers.push(b"Allow", allow.as_bytes());
    }
    fixed::whole(request, client, status, &headers, &body).await
}
