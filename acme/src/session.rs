//! A conversation with a server: its directory, nonces, and signed requests (RFC 8555 §6).
//!
//! A nonce that the server does not take is replaced, up to a bound (§6.5). Before: `jws`, `directory`; next: `account`, `order`.

use crate::directory::Directory;
use crate::failure::AcmeFailure;
use crate::jws::{Signer, signed};
use crate::key::SigningKey;
use crate::transport::{Question, Reply, Transport};
use millstream_wire::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Times that a request is signed again after `badNonce`.
const MOST_NONCES: usize = 20;
const LONGEST_NONCE: usize = 1024;

const JSON: &str = "application/json";

pub(crate) struct Session {
    transport: Transport,
    pub(crate) directory: Directory,
    pub(crate) key: SigningKey,
    pub(crate) account: Option<String>,
    nonce: Option<String>,
}

impl Session {
    pub(crate) async fn open(
        transport: Transport,
        uri: &str,
        key: SigningKey,
    ) -> Result<Session, AcmeFailure> {
        let question = Question { method: Method::Get, url: uri, body: None, accept: JSON };
        let directory = read(&transport.ask(&question).await?.accepted()?)?;
        Ok(Session { transport, directory, key, account: None, nonce: None })
    }

    pub(crate) async fn fetch(&self, url: &str) -> Result<Reply, AcmeFailure> {
        self.transport.ask(&Question { method: Method::Get, url, body: None, accept: JSON }).await?.accepted()
    }

    /// POST-as-GET.
    pub(crate) async fn look(&mut self, url: &str, accept: &'static str) -> Result<Reply, AcmeFailure> {
        self.ask(url, None, accept).await
    }

    pub(crate) async fn post(&mut self, url: &str, payload: &Value) -> Result<Reply, AcmeFailure> {
        self.ask(url, Some(payload), JSON).await
    }

    async fn ask(
        &mut self,
        url: &str,
        payload: Option<&Value>,
        accept: &'static str,
    ) -> Result<Reply, AcmeFailure> {
        let mut tries = 0;
        loop {
            let nonce = self.nonce().await?;
            let signer = self.account.as_deref().map_or(Signer::Key, Signer::Account);
            let body = signed(&self.key, &signer, (url, &nonce), payload)?;
            let question = Question { method: Method::Post, url, body: Some(&body), accept };
            let reply = self.transport.ask(&question).await?;
            self.nonce = nonce_of(&reply);
            tries += 1;
            match reply.accepted() {
                Err(failure) if failure.is("badNonce") && tries < MOST_NONCES => {}
                outcome => return outcome,
            }
        }
    }

    async fn nonce(&mut self) -> Result<String, AcmeFailure> {
        if let Some(nonce) = self.nonce.take() {
            return Ok(nonce);
        }
        let url = &self.directory.new_nonce;
        let question = Question { method: Method::Head, url, body: None, accept: JSON };
        let reply = self.transport.ask(&question).await?.accepted()?;
        nonce_of(&reply).ok_or(AcmeFailure::Answer("has no nonce"))
    }
}

fn nonce_of(reply: &Reply) -> Option<String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let nonce = reply.field("replay-nonce")?;
    (nonce.len() <= LONGEST_NONCE && nonce.bytes().all(fits)).then(|| nonce.to_owned())
}

pub(crate) fn read<T: DeserializeOwned>(reply: &Reply) -> Result<T, AcmeFailure> {
    serde_json::from_slice(&reply.body).map_err(|_| AcmeFailure::Answer("is not valid ACME JSON"))
}
