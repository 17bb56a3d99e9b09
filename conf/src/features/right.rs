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

/// One word of `proxy_cache_purge_allow` or `api_allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// `local`: programs of this machine, for what no proxy passed on.
    Local,
    /// A network; `all` and `unix:` are some.
    Of(Network),
}

/// Who may purge or use the API: one of the addresses, or whoever shows the token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManageRight {
    /// `proxy_cache_purge_allow` / `api_allow`; `None` = not written: without a token nobody may change anything, and `local` may read.
    pub allow: Option<Vec<Allowed>>,
    /// `proxy_cache_purge_token` / `api_token`: `Authorization: Bearer TOKEN`.
    pub token: Option<String>,
}

without_templates!(ManageRight);

/// `write=`: whether the API changes anything, such as by purging, for those whom it admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Write {
    /// It only reads, as in NGINX Plus.
    #[default]
    Off,
    /// It does for a request that has the token, and for this machine's programs where `local` names them: an address alone reads.
    Token,
    /// It does.
    On,
}

level! {
    /// What one level says of who may.
    pub struct RightLevel {
        /// `…_allow`: each with its place.
        allow: Vec<(Allowed, Span)>,
        /// `…_token`.
        token: String,
    }
}

impl RightLevel {
    /// Who may.
    pub(super) fn right(&self) -> Arc<ManageRight> {
        let allowed = |list: &Vec<(Allowed, Span)>| list.iter().map(|(allowed, _)| *allowed).collect();
        Arc::new(ManageRight { allow: self.allow.as_ref().map(allowed), token: self.token.clone() })
    }

    /// Lets more addresses in.
    pub(super) fn allow(&mut self, words: &[Word], reading: &mut Reading<'_>) {
        let is_local = |word: &&Word| word.text == "local";
        let locals: Vec<_> = words.iter().filter(is_local).map(|word| (Allowed::Local, word.span)).collect();
        let others: Vec<Word> = words.iter().filter(|word| !is_local(word)).cloned().collect();
        let others = networks(&others, reading);
        let others = others.into_iter().map(|(network, span)| (Allowed::Of(network), span));
        self.allow.get_or_insert_default().extend(locals.into_iter().chain(others));
    }
}

/// Reads `write=`, of `api` and of `dashboard`; false for a word that is another.
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

/// Reads the words of a list of networks; wrong ones are reported, and let nobody in.
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
                .help("bits beyond the mask are not looked at; write the network's first address");
        }
        networks.push((network, word.span));
    }
    networks
}

/// Fewer characters than this can be tried one after the other.
const SHORT_TOKEN: usize = 16;

/// Reads a bearer token (RFC 6750 §2.1): what a client can send in a field, and not empty.
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
            .warning(word.span, format!("a token of {} characters can be guessed", word.text.len()))
            .help(format!("write at least {SHORT_TOKEN}, such as the output of: openssl rand -hex 32"));
    }
    Some(word.text.clone())
}
