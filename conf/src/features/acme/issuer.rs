//! The block `acme_issuer`: what is written of an authority, and what holds where nothing is.
//!
//! Whether anybody is there is not asked. Before: `features/acme`, the rows; next: `declared/acme`.

use crate::declared::Kind;
use crate::declared::acme::{
    AccountKey, AcmeChallenge, AcmeIssuer, AcmeProfile, ExternalAccount, KEY_KINDS, KeyKind, WebUrl,
};
use crate::declared::resolver::{RESOLVER_TIMEOUT, ResolverId};
use crate::features::Level;
use crate::features::tls::pem_file;
use crate::files;
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::suggest;
use crate::tree::{Directive, Word};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MOST_CONTACTS: usize = 16;

#[derive(Debug, Default)]
pub struct IssuerDraft {
    uri: Option<WebUrl>,
    account_key: Option<AccountKey>,
    challenge: Option<AcmeChallenge>,
    pub(super) common_name_in_csr: Option<bool>,
    contacts: Vec<String>,
    external_account: Option<ExternalAccount>,
    pub(super) preferred_chain: Option<String>,
    profile: Option<AcmeProfile>,
    trusted: Option<PathBuf>,
    pub(super) verifies: Option<bool>,
    /// The inner `None` is `off`.
    state_path: Option<Option<PathBuf>>,
    pub(super) accepts_terms: bool,
    pub resolver: Option<ResolverId>,
    pub resolver_timeout: Option<Duration>,
}

pub fn declare(directive: &Directive, draft: IssuerDraft, reading: &mut Reading<'_>) {
    let (name, span) = (&directive.args[0], directive.span);
    // One that is wrong has its own error.
    if !directive.block.iter().flatten().any(|inside| inside.name.text == "uri") {
        reading
            .error(span, "acme_issuer: \"uri\" is missing")
            .help("write the server's directory, as in uri https://acme-v02.api.letsencrypt.org/directory;");
    }
    let message = format!("duplicate acme_issuer \"{}\"", name.text);
    if !reading.declare(Kind::AcmeIssuer, &name.text, span, message) {
        return;
    }
    // A name that is no name of a folder asks for one.
    let is_plain = !name.text.contains('/') && !name.text.is_empty();
    if draft.state_path.is_none() && !is_plain {
        reading
            .error(name.span, format!("acme_issuer \"{}\" cannot be the name of a directory", name.text))
            .help("write another name, or state_path with a directory");
    }
    let has_default_state = draft.state_path.is_none();
    let state_path = draft.state_path.unwrap_or_else(|| Some(reading.path(&format!("acme_{}", name.text))));
    // What is wrong has its error; without one its servers would have another.
    let nowhere = || WebUrl {
        text: String::new(),
        authority: String::new(),
        address: crate::address::PeerAddress::Unix(PathBuf::new()),
        target: String::new(),
    };
    reading.declared.acme_issuers.push(AcmeIssuer {
        name: name.text.clone(),
        span,
        uri: draft.uri.unwrap_or_else(nowhere),
        account_key: draft.account_key.unwrap_or(AccountKey::Made(KeyKind::default())),
        challenge: draft.challenge.unwrap_or_default(),
        common_name_in_csr: draft.common_name_in_csr.unwrap_or(false),
        contacts: draft.contacts,
        external_account: draft.external_account,
        preferred_chain: draft.preferred_chain,
        profile: draft.profile,
        trusted: draft.trusted,
        verifies: draft.verifies.unwrap_or(true),
        state_path,
        has_default_state,
        accepts_terms: draft.accepts_terms,
        resolver: draft.resolver,
        resolver_timeout: draft.resolver_timeout.unwrap_or(RESOLVER_TIMEOUT),
    });
}

/// An issuer without a resolver gets that of the `http` block, if any.
pub fn settle(http: &Level, reading: &mut Reading<'_>) {
    for issuer in &mut reading.declared.acme_issuers {
        issuer.resolver = issuer.resolver.or(http.resolver.servers.flatten());
        if let Some(timeout) = http.resolver.timeout.filter(|_| issuer.resolver_timeout == RESOLVER_TIMEOUT) {
            issuer.resolver_timeout = timeout;
        }
    }
    let issuers = &reading.declared.acme_issuers;
    let shared = issuers.iter().enumerate().find_map(|(at, issuer)| {
        let path = issuer.state_path.as_ref()?;
        let first = issuers[..at].iter().find(|other| other.state_path.as_ref() == Some(path))?;
        Some((issuer.span, first.name.clone()))
    });
    if let Some((span, first)) = shared {
        reading
            .error(span, format!("acme_issuer \"{first}\" has the same state_path"))
            .help("give each issuer a separate directory");
    }
}

pub(super) fn uri(issuer: &mut IssuerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if !reading.without_variables(word, "the URI of an acme_issuer") {
        return;
    }
    issuer.uri = WebUrl::parse(&word.text);
    if issuer.uri.is_none() {
        reading
            .error(word.span, format!("invalid uri \"{}\"", word.text))
            .help("write a URL such as https://acme-v02.api.letsencrypt.org/directory; ACME requires TLS");
    }
}

pub(super) fn account_key(issuer: &mut IssuerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    issuer.account_key = if names_algorithm(&word.text) {
        key_kind(word, reading).map(AccountKey::Made)
    } else {
        Some(AccountKey::File(pem_file(word, "account key", reading).0))
    };
}

fn names_algorithm(text: &str) -> bool {
    let algorithm = text.split(':').next().unwrap_or_default();
    ["ecdsa", "rsa"].iter().any(|known| known.eq_ignore_ascii_case(algorithm))
}

/// An algorithm alone stands for its first kind.
pub(super) fn key_kind(word: &Word, reading: &mut Reading<'_>) -> Option<KeyKind> {
    let is_it = |(text, _): &&(&str, KeyKind)| {
        text.eq_ignore_ascii_case(&word.text)
            || text.split(':').next().is_some_and(|algorithm| algorithm.eq_ignore_ascii_case(&word.text))
    };
    let found = KEY_KINDS.iter().find(is_it).map(|(_, kind)| *kind);
    if found.is_none() {
        let choices = KEY_KINDS.map(|(text, _)| text);
        let help = suggest::did_you_mean(&word.text, choices)
            .unwrap_or_else(|| format!("write one of: {}", choices.join(", ")));
        reading.error(word.span, format!("unsupported key \"{}\"", word.text)).help(help);
    }
    found
}

pub(super) fn challenge(issuer: &mut IssuerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    issuer.challenge = match word.text.as_str() {
        "http" | "http-01" => Some(AcmeChallenge::Http01),
        "tls-alpn" | "tls-alpn-01" => Some(AcmeChallenge::TlsAlpn01),
        other => {
            reading
                .error(word.span, format!("unsupported challenge \"{other}\""))
                .help("write http-01 or tls-alpn-01");
            None
        }
    };
}

pub(super) fn contact(issuer: &mut IssuerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if issuer.contacts.len() == MOST_CONTACTS {
        reading.error(directive.span, "too many contacts").help(format!("write at most {MOST_CONTACTS}"));
        return;
    }
    if word.text.is_empty() || !word.text.bytes().all(|byte| byte.is_ascii_graphic()) {
        reading
            .error(word.span, format!("invalid contact \"{}\"", word.text))
            .help("write an email address or a URL");
        return;
    }
    issuer.contacts.push(match has_scheme(&word.text) {
        true => word.text.clone(),
        false => format!("mailto:{}", word.text),
    });
}

/// Whether a text starts like a URL (RFC 3986 §3.1).
fn has_scheme(text: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_inside)
    })
}

pub(super) fn external_account_key(
    issuer: &mut IssuerDraft,
    directive: &Directive,
    reading: &mut Reading<'_>,
) {
    let [id, source] = &*directive.args else { return };
    let text = match source.text.strip_prefix("data:") {
        Some(data) => Some(data.to_owned()),
        None => key_text(source, reading),
    };
    let Some(text) = text else { return };
    let key = text.trim().trim_end_matches('=');
    if id.text.is_empty() || !is_base64url(key) {
        reading
            .error(directive.span, "\"external_account_key\" directive invalid base64url encoded value")
            .help("write the id and the key that the authority issued");
        return;
    }
    issuer.external_account = Some(ExternalAccount { id: id.text.clone(), key: key.into() });
}

/// Base64url without padding (RFC 4648 §5).
fn is_base64url(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() % 4 != 1 && text.bytes().all(fits)
}

/// Longest key file in bytes.
const MOST_KEY: u64 = 4096;

fn key_text(word: &Word, reading: &mut Reading<'_>) -> Option<String> {
    if !reading.without_variables(word, "the name of a key") {
        return None;
    }
    let path = reading.path_beside_main(word, PathUse::Certificate);
    read_short(&path)
        .map_err(|why| {
            reading
                .error(word.span, format!("cannot load external account key \"{}\": {why}", path.display()))
                .help(
                    "write the name of a file with the key that the authority issued, or data: and the key",
                );
        })
        .ok()
}

fn read_short(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = files::open(path).map_err(|error| error.to_string())?;
    file.take(MOST_KEY + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MOST_KEY {
        return Err("it is too long".to_owned());
    }
    Ok(text)
}

pub(super) fn profile(issuer: &mut IssuerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let required = match directive.args.get(1) {
        None => false,
        Some(word) => reading.one_of(word, &["require"]).is_some(),
    };
    issuer.profile = Some(AcmeProfile { name: directive.args[0].text.clone(), required });
}

pub(super) fn trusted(issuer: &mut IssuerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    issuer.trusted = Some(pem_file(&directive.args[0], "certificate", reading).0);
}

pub(super) fn state_path(issuer: &mut IssuerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    issuer.state_path = match word.text.as_str() {
        "off" => Some(None),
        _ if !reading.without_variables(word, "state_path") => None,
        text => Some(Some(reading.named_path(word, text, PathUse::State))),
    };
}
