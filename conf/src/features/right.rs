//! Who may manage the cache: lists of addresses, and tokens.
//!
//! Nobody is let in here that the configuration does not name. Next: `api` and `pass/purge`, which have a right each;
//! `forwarded`, another list of addresses.

use std::sync::Arc;

use super::level::level;
use super::templates::without_templates;
use crate::network::{self, Network};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::tree::Word;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// `local`: programs of this machine, unless a proxy passed the request on.
    Local,
    /// Includes `all` and `unix:`.
    Of(Network),
}

/// Who may purge or use the API: one of the addresses, or the bearer of the token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManageRight {
    /// `None` = not written: without a token no one may change anything, and `local` may read.
    pub allow: Option<Vec<Allowed>>,
    /// `Authorization: Bearer TOKEN`.
    pub token: Option<String>,
}

without_templates!(ManageRight);

/// `write=`: whether the API may change anything, such as by purging, for those it admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Write {
    /// Read-only, as in NGINX Plus.
    #[default]
    Off,
    /// With the token, and for this machine's programs if `local` admits them: an address alone may only
    /// read.
    Token,
    On,
}

level! {
    pub struct RightLevel {
        allow: Vec<(Allowed, Span)>,
        token: String,
    }
}

impl RightLevel {
    pub(super) fn right(&self) -> Arc<ManageRight> {
        let allowed = |list: &Vec<(Allowed, Span)>| list.iter().map(|(allowed, _)| *allowed).collect();
        Arc::new(ManageRight { allow: self.allow.as_ref().map(allowed), token: self.token.clone() })
    }

    pub(super) fn allow(&mut self, words: &[Word], reading: &mut Reading<'_>) {
        let is_local = |word: &&Word| word.text == "local";
        let locals: Vec<_> = words.iter().filter(is_local).map(|word| (Allowed::Local, word.span)).collect();
        let others: Vec<Word> = words.iter().filter(|word| !is_local(word)).cloned().collect();
        let others = networks(&others, reading);
        let others = others.into_iter().map(|(network, span)| (Allowed::Of(network), span));
        self.allow.get_or_insert_default().extend(locals.into_iter().chain(others));
    }
}

/// Of `api` and `dashboard`; false for any other word.
pub(super) fn write_parameter(word: &Word, write: &mut Write, reading: &mut Reading<'_>) -> bool {
    let Some(("write", value)) = parameter(word) else { return false };
    match value.text.as_str() {
        "on" => *write = Write::On,
        "token" => *write = Write::Token,
        "off" => *write = Write::Off,
        _ => reading.not_one_of(&value, &["on", "token", "off"]),
    }
    true
}

/// Wrong networks are reported, and admit no one.
pub(super) fn networks(words: &[Word], reading: &mut Reading<'_>) -> Vec<(Network, Span)> {
    let mut networks = Vec::with_capacity(words.len());
    for word in words {
        if !reading.without_variables(word, "a list of addresses") {
            continue;
        }
        let Some((network, has_more_bits)) = reading.value(word.span, network::parse(&word.text)) else {
            continue;
        };
        if has_more_bits {
            reading
                .diagnostics
                .warning(word.span, format!("low address bits of \"{}\" are meaningless", word.text))
                .help("bits outside the mask are ignored; write the network's first address");
        }
        networks.push((network, word.span));
    }
    networks
}

/// Tokens with fewer characters can be guessed.
const SHORT_TOKEN: usize = 16;

/// A bearer token (RFC 6750 §2.1): non-empty, and valid in a field.
pub(super) fn token(word: &Word, reading: &mut Reading<'_>) -> Option<String> {
    if !reading.without_variables(word, "a token") {
        return None;
    }
    let body = word.text.trim_end_matches('=');
    let may_be_sent = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    if body.is_empty() || !body.bytes().all(may_be_sent) {
        reading
            .error(word.span, "a token consists of letters, digits and - . _ ~ + /, and may end with =")
            .help("write one that cannot be guessed, such as the output of: openssl rand -hex 32");
        return None;
    }
    if body.len() < SHORT_TOKEN {
        reading
            .diagnostics
            .warning(word.span, format!("a token of {} characters is easy to guess", word.text.len()))
            .help(format!("write at least {SHORT_TOKEN}, such as the output of: openssl rand -hex 32"));
    }
    Some(word.text.clone())
}
