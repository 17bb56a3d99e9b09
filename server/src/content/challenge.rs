//! The answer to an authority that looks whose a name is (RFC 8555 §8.3), before anything else is asked of a request.
//!
//! Only what is open right now is answered, and only without TLS; any other path below is the configuration's. Next: `millstream-net`'s
//! `tls/challenges`, which keeps what is open.

use super::fixed;
use crate::client::Client;
use crate::outcome::Outcome;
use crate::request::Request;
use millstream_wire::{Headers, Method};
use std::sync::Arc;

const FOLDER: &[u8] = b"/.well-known/acme-challenge/";

pub fn open(request: &Request) -> Option<Arc<str>> {
    let challenges = &request.generation.shared.acme.challenges;
    if challenges.is_empty() || request.connection.tls.is_some() || request.method != Method::Get {
        return None;
    }
    let token = std::str::from_utf8(request.route.uri.strip_prefix(FOLDER)?).ok()?;
    challenges.text(token)
}

pub async fn answer(request: &mut Request, client: &mut Client, text: &str) -> Outcome {
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"text/plain");
    fixed::whole(request, client, 200, &headers, text.as_bytes()).await
}
