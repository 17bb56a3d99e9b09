//! `ssl_ecdh_curve`: OpenSSL's names of groups for key exchange.
//!
//! Next: `millstream-net`'s `tls`, which offers them.

use crate::reading::Reading;
use crate::tree::Word;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsGroup {
    X25519,
    P256,
    P384,
    X25519MlKem768,
}

/// OpenSSL's names in any case; several for some groups.
const NAMES: [(&str, TlsGroup); 8] = [
    ("X25519", TlsGroup::X25519),
    ("prime256v1", TlsGroup::P256),
    ("secp256r1", TlsGroup::P256),
    ("P-256", TlsGroup::P256),
    ("secp384r1", TlsGroup::P384),
    ("P-384", TlsGroup::P384),
    ("X25519MLKEM768", TlsGroup::X25519MlKem768),
    ("X25519_MLKEM768", TlsGroup::X25519MlKem768),
];

pub(super) fn is_automatic(text: &str) -> bool {
    ["auto", "automatic", "DEFAULT"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Empty if the library chooses.
pub(super) fn read(word: &Word, reading: &mut Reading<'_>) -> Option<Vec<TlsGroup>> {
    if is_automatic(&word.text) {
        return Some(Vec::new());
    }
    let (mut groups, mut others) = (Vec::new(), Vec::new());
    // From OpenSSL 3.5 on `/` separates too, `*` marks a group whose key is sent first, and `?` one that need not be known.
    for written in word.text.split([':', '/']) {
        let name = written.trim_matches(|mark: char| mark.is_whitespace() || matches!(mark, '*' | '?'));
        match NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, group)) if groups.contains(group) => {}
            Some((_, group)) => groups.push(*group),
            None if written.contains('?') => {}
            None => others.push(name),
        }
    }
    if !others.is_empty() {
        let verb = if others.len() == 1 { "is" } else { "are" };
        let instead = if groups.is_empty() { "; the library's own groups are" } else { "" };
        reading
            .diagnostics
            .warning(word.span, format!("{} {verb} not offered{instead}", others.join(", ")))
            .help("write auto, or some of X25519, prime256v1, secp384r1 and X25519MLKEM768");
    }
    Some(groups)
}
