//! What an authority is shown while it looks whose a name is: a text for each token (RFC 8555 §8.3), or a certificate for each name
//! (RFC 8737).
//!
//! Only what is open is here: whoever puts it in takes it out again by dropping the value that it got. Where nothing is open, which is
//! nearly always, looking costs the read of one number. Before: `issued`; next: `acceptor`, which answers handshakes.

use super::TlsError;
use super::pem::pair;
use millstream_conf::model::PemSource;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, NoServerSessionStorage};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The protocol of such a handshake (RFC 8737 §6.2).
const ACME_TLS: &[u8] = b"acme-tls/1";

/// Challenges that are open at a time, at the most; one more is refused.
const MOST: usize = 4096;

/// The challenges that are open, of all issuers.
#[derive(Default)]
pub struct Challenges {
    count: AtomicUsize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// What is answered, by token.
    texts: HashMap<Box<str>, Arc<str>>,
    /// With what hands are shaken, by name in lower case.
    certificates: HashMap<Box<str>, Arc<CertifiedKey>>,
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Challenges").field("count", &self.count).finish_non_exhaustive()
    }
}

/// A challenge that is open, until this is dropped.
#[derive(Debug)]
pub struct OpenChallenge {
    of: Arc<Challenges>,
    key: Box<str>,
    is_text: bool,
}

impl Drop for OpenChallenge {
    fn drop(&mut self) {
        let mut open = self.of.lock();
        match self.is_text {
            true => _ = open.texts.remove(&self.key),
            false => _ = open.certificates.remove(&self.key),
        }
        self.of.count(&open);
    }
}

impl Challenges {
    /// From now on a request for the token is answered with the text; nothing where too many are open, or this one is.
    pub fn open_text(self: &Arc<Self>, token: &str, text: &str) -> Option<OpenChallenge> {
        let mut open = self.lock();
        if open.count() >= MOST || open.texts.contains_key(token) {
            return None;
        }
        open.texts.insert(token.into(), text.into());
        self.count(&open);
        Some(OpenChallenge { of: self.clone(), key: token.into(), is_text: true })
    }

    /// From now on a handshake that asks for it has this certificate, which stands with its key in a PEM text; nothing where too many are open, or one
    /// of that name is.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn open_certificate(
        self: &Arc<Self>,
        name: &str,
        pem: &str,
    ) -> Result<Option<OpenChallenge>, TlsError> {
        let source = PemSource::Data(pem.into());
        let made = pair(&source, &source, &[], &aws_lc_rs::default_provider())?;
        let name: Box<str> = name.to_ascii_lowercase().into();
        let mut open = self.lock();
        if open.count() >= MOST || open.certificates.contains_key(&name) {
            return Ok(None);
        }
        open.certificates.insert(name.clone(), Arc::new(made));
        self.count(&open);
        Ok(Some(OpenChallenge { of: self.clone(), key: name, is_text: false }))
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// What a request for the token is answered with.
    pub fn text(&self, token: &str) -> Option<Arc<str>> {
        self.lock().texts.get(token).cloned()
    }

    /// What a handshake goes by that is the answer to a challenge: one that speaks of nothing else (RFC 8737 §3).
    pub(super) fn handshake(&self, hello: &ClientHello<'_>, name: Option<&str>) -> Option<Arc<ServerConfig>> {
        if self.is_empty() || !hello.alpn()?.eq([ACME_TLS]) {
            return None;
        }
        let certificate = self.lock().certificates.get(name?).cloned()?;
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .ok()?;
        let certificate = Arc::new(SingleCertAndKey::from((*certificate).clone()));
        let mut config = builder.with_no_client_auth().with_cert_resolver(certificate);
        config.alpn_protocols = vec![ACME_TLS.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Some(Arc::new(config))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, open: &Open) {
        self.count.store(open.count(), Ordering::Relaxed);
    }
}

impl Open {
    fn count(&self) -> usize {
        self.texts.len() + self.certificates.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_answered_for_as_long_as_it_is_open() {
        let challenges = Arc::new(Challenges::default());
        assert!(challenges.is_empty());
        let one = challenges.open_text("token", "token.thumbprint").expect("there is room");
        assert!(challenges.open_text("token", "another").is_none());
        assert_eq!(challenges.text("token").as_deref(), Some("token.thumbprint"));
        assert_eq!(challenges.text("Token"), None);
        drop(one);
        assert_eq!(challenges.text("token"), None);
        assert!(challenges.is_empty());
    }

    #[test]
    fn there_is_a_bound_on_those_that_are_open() {
        let challenges = Arc::new(Challenges::default());
        let open: Vec<_> =
            (0..=MOST).filter_map(|token| challenges.open_text(&token.to_string(), "")).collect();
        assert_eq!(open.len(), MOST);
    }
}
