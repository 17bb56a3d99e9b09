//! OpenSSL's cipher lists: `ssl_ciphers` as the suites that remain of it.
//!
//! The list is evaluated over a table of what OpenSSL has had (broken suites included, so that a warning can name them),
//! with OpenSSL's rules: `:` separates, `+` inside a word is "and", `!` kills, `-` removes, `+` in front moves to the end.
//! Next: `millstream-net`'s `tls`, which offers what remains.

use crate::reading::Reading;
use crate::tree::Word;

/// The suites of TLS 1.3, which no list selects, by IANA name.
pub const TLS13_SUITES: [&str; 3] =
    ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"];

struct Suite {
    name: &'static str,
    /// Its IANA name if it is offered here.
    offered: Option<&'static str>,
    /// The OpenSSL words that include it.
    words: &'static str,
    why: &'static str,
    /// Strength in bits, for `@STRENGTH`.
    bits: u16,
}

const fn offered(name: &'static str, iana: &'static str, words: &'static str, bits: u16) -> Suite {
    Suite { name, offered: Some(iana), words, why: "", bits }
}

const fn dropped(name: &'static str, words: &'static str, why: &'static str, bits: u16) -> Suite {
    Suite { name, offered: None, words, why, bits }
}

const CBC: &str = "CBC";
const DHE: &str = "kDHE (ephemeral DH)";
const STATIC_RSA: &str = "RSA key exchange without forward secrecy";

/// OpenSSL's suites in its default order, at least one of each kind.
#[rustfmt::skip]
const SUITES: &[Suite] = &[
    offered("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "kECDHE kEECDH ECDHE EECDH aECDSA ECDSA AESGCM AES256 AES AEAD HIGH TLSv1.2 FIPS SUITEB192", 256),
    offered("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "kECDHE kEECDH ECDHE EECDH aRSA AESGCM AES256 AES AEAD HIGH TLSv1.2 FIPS", 256),
    dropped("DHE-RSA-AES256-GCM-SHA384", "kDHE kEDH DHE EDH DH aRSA AESGCM AES256 AES AEAD HIGH TLSv1.2", DHE, 256),
    offered("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "kECDHE kEECDH ECDHE EECDH aECDSA ECDSA CHACHA20 AEAD HIGH TLSv1.2", 256),
    offered("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "kECDHE kEECDH ECDHE EECDH aRSA CHACHA20 AEAD HIGH TLSv1.2", 256),
    dropped("DHE-RSA-CHACHA20-POLY1305", "kDHE kEDH DHE EDH DH aRSA CHACHA20 AEAD HIGH TLSv1.2", DHE, 256),
    offered("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "kECDHE kEECDH ECDHE EECDH aECDSA ECDSA AESGCM AES128 AES AEAD HIGH TLSv1.2 FIPS SUITEB128", 128),
    offered("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "kECDHE kEECDH ECDHE EECDH aRSA AESGCM AES128 AES AEAD HIGH TLSv1.2 FIPS", 128),
    dropped("DHE-RSA-AES128-GCM-SHA256", "kDHE kEDH DHE EDH DH aRSA AESGCM AES128 AES AEAD HIGH TLSv1.2", DHE, 128),
    dropped("ECDHE-ECDSA-AES256-SHA384",
        "kECDHE kEECDH ECDHE EECDH aECDSA ECDSA AES256 AES SHA384 HIGH TLSv1.2", CBC, 256),
    dropped("ECDHE-RSA-AES256-SHA384", "kECDHE kEECDH ECDHE EECDH aRSA AES256 AES SHA384 HIGH TLSv1.2", CBC, 256),
    dropped("DHE-RSA-AES256-SHA256", "kDHE kEDH DHE EDH DH aRSA AES256 AES SHA256 HIGH TLSv1.2", DHE, 256),
    dropped("ECDHE-ECDSA-AES128-SHA256",
        "kECDHE kEECDH ECDHE EECDH aECDSA ECDSA AES128 AES SHA256 HIGH TLSv1.2", CBC, 128),
    dropped("ECDHE-RSA-AES128-SHA256", "kECDHE kEECDH ECDHE EECDH aRSA AES128 AES SHA256 HIGH TLSv1.2", CBC, 128),
    dropped("DHE-RSA-AES128-SHA256", "kDHE kEDH DHE EDH DH aRSA AES128 AES SHA256 HIGH TLSv1.2", DHE, 128),
    dropped("ECDHE-ECDSA-AES256-SHA",
        "kECDHE kEECDH ECDHE EECDH aECDSA ECDSA AES256 AES SHA1 SHA HIGH TLSv1", CBC, 256),
    dropped("ECDHE-RSA-AES256-SHA", "kECDHE kEECDH ECDHE EECDH aRSA AES256 AES SHA1 SHA HIGH TLSv1", CBC, 256),
    dropped("DHE-RSA-AES256-SHA", "kDHE kEDH DHE EDH DH aRSA AES256 AES SHA1 SHA HIGH SSLv3", DHE, 256),
    dropped("ECDHE-ECDSA-AES128-SHA",
        "kECDHE kEECDH ECDHE EECDH aECDSA ECDSA AES128 AES SHA1 SHA HIGH TLSv1", CBC, 128),
    dropped("ECDHE-RSA-AES128-SHA", "kECDHE kEECDH ECDHE EECDH aRSA AES128 AES SHA1 SHA HIGH TLSv1", CBC, 128),
    dropped("DHE-RSA-AES128-SHA", "kDHE kEDH DHE EDH DH aRSA AES128 AES SHA1 SHA HIGH SSLv3", DHE, 128),
    dropped("AES256-GCM-SHA384", "kRSA RSA aRSA AESGCM AES256 AES AEAD HIGH TLSv1.2", STATIC_RSA, 256),
    dropped("AES128-GCM-SHA256", "kRSA RSA aRSA AESGCM AES128 AES AEAD HIGH TLSv1.2", STATIC_RSA, 128),
    dropped("AES256-SHA256", "kRSA RSA aRSA AES256 AES SHA256 HIGH TLSv1.2", STATIC_RSA, 256),
    dropped("AES128-SHA256", "kRSA RSA aRSA AES128 AES SHA256 HIGH TLSv1.2", STATIC_RSA, 128),
    dropped("AES256-SHA", "kRSA RSA aRSA AES256 AES SHA1 SHA HIGH SSLv3", STATIC_RSA, 256),
    dropped("AES128-SHA", "kRSA RSA aRSA AES128 AES SHA1 SHA HIGH SSLv3", STATIC_RSA, 128),
    dropped("CAMELLIA256-SHA", "kRSA RSA aRSA CAMELLIA256 CAMELLIA SHA1 SHA HIGH SSLv3", "CAMELLIA", 256),
    dropped("ECDHE-RSA-DES-CBC3-SHA", "kECDHE kEECDH ECDHE EECDH aRSA 3DES SHA1 SHA MEDIUM SSLv3", "3DES", 112),
    dropped("DES-CBC3-SHA", "kRSA RSA aRSA 3DES SHA1 SHA MEDIUM SSLv3", "3DES", 112),
    dropped("ECDHE-RSA-RC4-SHA", "kECDHE kEECDH ECDHE EECDH aRSA RC4 SHA1 SHA MEDIUM SSLv3", "RC4", 128),
    dropped("RC4-SHA", "kRSA RSA aRSA RC4 SHA1 SHA MEDIUM SSLv3", "RC4", 128),
    dropped("RC4-MD5", "kRSA RSA aRSA RC4 MD5 MEDIUM SSLv3", "RC4", 128),
    dropped("IDEA-CBC-SHA", "kRSA RSA aRSA IDEA SHA1 SHA MEDIUM SSLv3", "IDEA", 128),
    dropped("SEED-SHA", "kRSA RSA aRSA SEED SHA1 SHA MEDIUM SSLv3", "SEED", 128),
    dropped("DES-CBC-SHA", "kRSA RSA aRSA DES SHA1 SHA LOW SSLv3", "DES", 56),
    dropped("EXP-RC4-MD5", "kRSA RSA aRSA RC4 MD5 EXP EXPORT EXPORT40 SSLv3", "EXPORT", 40),
    dropped("EXP-DES-CBC-SHA", "kRSA RSA aRSA DES SHA1 SHA EXP EXPORT EXPORT40 SSLv3", "EXPORT", 40),
    dropped("PSK-AES128-CBC-SHA", "kPSK PSK aPSK AES128 AES SHA1 SHA HIGH SSLv3", "PSK", 128),
    dropped("ADH-AES256-GCM-SHA384",
        "kDHE kEDH ADH DH aNULL AESGCM AES256 AES AEAD HIGH TLSv1.2", "anonymous (aNULL)", 256),
    dropped("AECDH-AES128-SHA", "kECDHE kEECDH AECDH aNULL AES128 AES SHA1 SHA HIGH TLSv1", "anonymous (aNULL)", 128),
    dropped("ADH-RC4-MD5", "kDHE kEDH ADH DH aNULL RC4 MD5 MEDIUM SSLv3", "anonymous (aNULL)", 128),
    dropped("NULL-SHA", "kRSA RSA aRSA eNULL NULL SHA1 SHA SSLv3", "NULL (no encryption)", 0),
];

#[derive(Clone, Copy, PartialEq)]
enum State {
    Out,
    In,
    Killed,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Evaluated {
    /// IANA names in order; those of TLS 1.3 first.
    pub(super) offered: Vec<String>,
    /// What else it asked for, each kind once.
    pub(super) dropped: Vec<&'static str>,
    pub(super) has_tls12: bool,
    /// Words that OpenSSL does not know either.
    pub(super) unknown: Vec<String>,
    /// The security level it sets last.
    pub(super) level: Option<String>,
}

/// Gives one warning for all that is dropped; `name` is the directive.
pub(in crate::features) fn read(word: &Word, name: &str, reading: &mut Reading<'_>) -> Option<Vec<String>> {
    let evaluated = evaluate(&word.text);
    for unknown in &evaluated.unknown {
        reading
            .diagnostics
            .warning(word.span, format!("{name}: no cipher suite is called \"{unknown}\""))
            .help("remove it");
    }
    if let Some(level) = &evaluated.level {
        let message =
            format!("{name}: \"@{level}\" has no effect: OpenSSL's security levels are not supported");
        let help = "remove it; the list restricts the suites, and other directives the versions and groups";
        reading.diagnostics.warning(word.span, message).help(help);
    }
    if !evaluated.has_tls12 && evaluated.dropped.is_empty() {
        reading
            .error(word.span, format!("{name} \"{}\" leaves no cipher suite", word.text))
            .help(format!("write {name} HIGH:!aNULL:!MD5; or leave the directive out"));
        return None;
    }
    if !evaluated.dropped.is_empty() {
        let remain = match evaluated.offered.len() - TLS13_SUITES.len() {
            0 => "no suite of TLS 1.2 remains".to_owned(),
            number => format!("{number} suites of TLS 1.2 remain"),
        };
        reading
            .diagnostics
            .warning(word.span, format!("{name}: not offered: {}; {remain}", evaluated.dropped.join(", ")))
            .help(format!(
                "ECDHE with AES-GCM or ChaCha20 is offered for TLS 1.2; write {name} ECDHE+AESGCM:ECDHE+CHACHA20;"
            ));
    }
    Some(evaluated.offered)
}

/// Evaluates a list as OpenSSL's `SSL_CTX_set_cipher_list` does.
pub(super) fn evaluate(list: &str) -> Evaluated {
    let mut order: Vec<usize> = (0..SUITES.len()).collect();
    let mut states = vec![State::Out; SUITES.len()];
    let (mut unknown, mut level) = (Vec::new(), None);
    let mut rest = list;
    // Each round takes at least one byte off, so the loop ends.
    while let Some(first) = rest.chars().next() {
        if matches!(first, ':' | ' ' | ';' | ',') {
            rest = &rest[1..];
            continue;
        }
        let operator = matches!(first, '!' | '-' | '+' | '@').then_some(first);
        let body = if operator.is_some() { &rest[1..] } else { rest };
        let end =
            body.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.=+".contains(c))).unwrap_or(body.len());
        let (name, after) = body.split_at(end);
        rest = if end == 0 {
            body.get(body.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default()
        } else {
            after
        };
        if operator == Some('@') {
            match name.strip_prefix("SECLEVEL=").map(str::as_bytes) {
                Some([b'0'..=b'5']) => level = Some(name.to_owned()),
                None if name == "STRENGTH" => {
                    order.sort_by_key(|suite| std::cmp::Reverse(SUITES[*suite].bits));
                }
                _ => unknown.push(format!("@{name}")),
            }
            continue;
        }
        let matching: Vec<usize> =
            order.iter().copied().filter(|suite| matches(&SUITES[*suite], name)).collect();
        if matching.is_empty() {
            // `!` and `-` of something that is not there is no news to anybody.
            if operator.is_none() && !name.is_empty() && !is_word(name) {
                unknown.push(name.to_owned());
            }
            continue;
        }
        apply(operator, &matching, &mut order, &mut states);
    }
    result(&order, &states, unknown, level)
}

fn apply(operator: Option<char>, matching: &[usize], order: &mut Vec<usize>, states: &mut [State]) {
    let moved: Vec<usize> = match operator {
        None => matching.iter().copied().filter(|suite| states[*suite] == State::Out).collect(),
        Some('+') => matching.iter().copied().filter(|suite| states[*suite] == State::In).collect(),
        _ => Vec::new(),
    };
    for suite in matching {
        match operator {
            None if states[*suite] == State::Out => states[*suite] = State::In,
            Some('!') => states[*suite] = State::Killed,
            Some('-') if states[*suite] == State::In => states[*suite] = State::Out,
            _ => {}
        }
    }
    order.retain(|suite| !moved.contains(suite));
    order.extend(moved);
}

fn result(order: &[usize], states: &[State], unknown: Vec<String>, level: Option<String>) -> Evaluated {
    let mut offered: Vec<String> = TLS13_SUITES.map(str::to_owned).into();
    let mut dropped = Vec::new();
    for suite in order.iter().filter(|suite| states[**suite] == State::In).map(|suite| &SUITES[*suite]) {
        match suite.offered {
            Some(iana) => offered.push(iana.to_owned()),
            None if !dropped.contains(&suite.why) => dropped.push(suite.why),
            None => {}
        }
    }
    let has_tls12 = offered.len() > TLS13_SUITES.len();
    Evaluated { offered, dropped, has_tls12, unknown, level }
}

/// Whether a suite has every part of `A+B`.
fn matches(suite: &Suite, name: &str) -> bool {
    let no_encryption = suite.words.split(' ').any(|word| word == "eNULL");
    name.split('+').all(|part| match part {
        "ALL" => !no_encryption,
        // OpenSSL's default leaves out what is anonymous or does not encrypt.
        "DEFAULT" => !no_encryption && !suite.words.contains("aNULL"),
        // What stands for a whole system's choice is that system's default.
        "PROFILE=SYSTEM" => matches(suite, "DEFAULT"),
        "ECDH" => suite.words.split(' ').any(|word| matches!(word, "ECDHE" | "AECDH")),
        "COMPLEMENTOFALL" => no_encryption,
        "COMPLEMENTOFDEFAULT" => suite.words.contains("aNULL"),
        "" => false,
        part => part == suite.name || suite.words.split(' ').any(|word| word == part),
    })
}

/// An OpenSSL word that no suite of the table has.
fn is_word(name: &str) -> bool {
    const WORDS: &str = "AESCCM AESCCM8 ARIA ARIA128 ARIA256 ARIAGCM CAMELLIA128 SRP kSRP aSRP DSS aDSS kDHr kDHd kECDHr kECDHe \
                         kECDH kGOST aGOST GOST94 GOST89MAC kRSAPSK kECDHEPSK kDHEPSK KRB5 kFZA eFZA EXPORT56 SSLv2 \
                         SUITEB128ONLY SUITEB128C2 RC2 LOW MEDIUM";
    name.split('+').all(|part| {
        WORDS.split(' ').any(|word| word == part)
            || SUITES.iter().any(|suite| matches(suite, part))
            || part.starts_with("TLS_")
    }) || looks_like_a_suite(name)
}

/// There are too many suites to list; a name of several parts that ends in a hash is taken for one not
/// offered.
fn looks_like_a_suite(name: &str) -> bool {
    name.matches('-').count() >= 2
        && ["SHA", "SHA256", "SHA384", "MD5", "CCM", "CCM8", "POLY1305"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remaining(list: &str) -> Vec<String> {
        let offered = evaluate(list).offered;
        offered[TLS13_SUITES.len()..].iter().map(|name| name.replace("TLS_ECDHE_", "")).collect()
    }

    #[test]
    fn a_list_of_names_keeps_their_order() {
        let list = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305";
        assert_eq!(remaining(list), ["RSA_WITH_AES_128_GCM_SHA256", "ECDSA_WITH_CHACHA20_POLY1305_SHA256"]);
        assert!(evaluate(list).dropped.is_empty());
    }

    #[test]
    fn killed_suites_never_come_back_and_removed_ones_may() {
        assert!(remaining("!AESGCM:ECDHE+AESGCM").is_empty());
        assert_eq!(remaining("ALL:-ALL:ECDHE+AESGCM+aECDSA").len(), 2);
    }

    #[test]
    fn a_plus_in_front_moves_to_the_end() {
        let moved = remaining("ECDHE+CHACHA20:ECDHE+AESGCM:+CHACHA20");
        assert_eq!(moved.len(), 6);
        assert!(moved[4].contains("CHACHA20") && moved[5].contains("CHACHA20"));
    }

    #[test]
    fn the_list_of_the_https_seed_names_what_is_dropped() {
        let evaluated = evaluate("ALL:!kEDH!ADH:RC4+RSA:+HIGH:+EXP");
        assert_eq!(evaluated.offered.len(), 9);
        assert!(evaluated.dropped.contains(&"RC4") && evaluated.dropped.contains(&"EXPORT"));
        assert!(!evaluated.dropped.contains(&DHE), "kEDH is excluded by the list itself");
        assert!(evaluated.unknown.is_empty());
    }

    #[test]
    fn killing_hashes_leaves_authenticated_encryption_alone() {
        assert_eq!(remaining("HIGH:!SHA1:!SHA256:!SHA384").len(), 6);
    }

    #[test]
    fn the_older_word_for_elliptic_curves_is_known() {
        assert_eq!(remaining("ECDH+AESGCM:DH+AESGCM:ECDH+AES256:DH+AES256:!aNULL:!MD5:!DSS").len(), 4);
        assert_eq!(remaining("ECDH+AESGCM"), remaining("ECDHE+AESGCM"));
        assert_eq!(remaining("PROFILE=SYSTEM"), remaining("DEFAULT"));
    }

    #[test]
    fn any_bytes_end() {
        for list in ["", ":::", "!", "+", "é:!é", "@STRENGTH", "@", "A+", "+++", "!+"] {
            let _ = evaluate(list);
        }
        assert_eq!(evaluate("NONSENSE").unknown, ["NONSENSE"]);
    }
}
