//! Cipher suites: one table from OpenSSL's names, which configurations and logs use, to the registered ones.
//!
//! Which suites a configuration asks for was decided when it was read (`millstream-conf`'s `tls_ciphers`); none is
//! added here. Next: `tls`, which offers them.

use millstream_conf::model::TlsVersion;
use rustls::crypto::aws_lc_rs;
use rustls::{CipherSuite, NamedGroup, SupportedCipherSuite};

/// Every suite that can be offered: its code, OpenSSL's name, the name in IANA's registry.
const NAMES: [(CipherSuite, &str, &str); 9] = [
    (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
    (CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
    (
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ),
];

/// Suites that are never offered here and that clients still offer, by their codes in IANA's registry, with OpenSSL's names.
#[rustfmt::skip]
const OTHERS: [(u16, &str); 36] = [
    (0x000a, "DES-CBC3-SHA"), (0x0016, "DHE-RSA-DES-CBC3-SHA"), (0x002f, "AES128-SHA"),
    (0x0032, "DHE-DSS-AES128-SHA"), (0x0033, "DHE-RSA-AES128-SHA"), (0x0035, "AES256-SHA"),
    (0x0038, "DHE-DSS-AES256-SHA"), (0x0039, "DHE-RSA-AES256-SHA"), (0x003c, "AES128-SHA256"),
    (0x003d, "AES256-SHA256"), (0x0040, "DHE-DSS-AES128-SHA256"), (0x0067, "DHE-RSA-AES128-SHA256"),
    (0x006a, "DHE-DSS-AES256-SHA256"), (0x006b, "DHE-RSA-AES256-SHA256"), (0x009c, "AES128-GCM-SHA256"),
    (0x009d, "AES256-GCM-SHA384"), (0x009e, "DHE-RSA-AES128-GCM-SHA256"), (0x009f, "DHE-RSA-AES256-GCM-SHA384"),
    (0x00a2, "DHE-DSS-AES128-GCM-SHA256"), (0x00a3, "DHE-DSS-AES256-GCM-SHA384"),
    (0x00ff, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"), (0x1304, "TLS_AES_128_CCM_SHA256"),
    (0x1305, "TLS_AES_128_CCM_8_SHA256"), (0xc008, "ECDHE-ECDSA-DES-CBC3-SHA"), (0xc009, "ECDHE-ECDSA-AES128-SHA"),
    (0xc00a, "ECDHE-ECDSA-AES256-SHA"), (0xc012, "ECDHE-RSA-DES-CBC3-SHA"), (0xc013, "ECDHE-RSA-AES128-SHA"),
    (0xc014, "ECDHE-RSA-AES256-SHA"), (0xc023, "ECDHE-ECDSA-AES128-SHA256"), (0xc024, "ECDHE-ECDSA-AES256-SHA384"),
    (0xc027, "ECDHE-RSA-AES128-SHA256"), (0xc028, "ECDHE-RSA-AES256-SHA384"), (0xc09c, "AES128-CCM"),
    (0xc09d, "AES256-CCM"), (0xccaa, "DHE-RSA-CHACHA20-POLY1305"),
];

/// OpenSSL's name of a suite, `$ssl_cipher`.
pub(super) fn name(suite: CipherSuite) -> &'static str {
    NAMES.iter().find(|(code, ..)| *code == suite).map_or("", |(_, name, _)| name)
}

/// OpenSSL's name of any suite that a client may offer and that is in use today; nothing for others.
pub(super) fn any_name(suite: CipherSuite) -> Option<&'static str> {
    let known = NAMES.iter().find(|(code, ..)| *code == suite).map(|(_, name, _)| *name);
    known.or_else(|| OTHERS.iter().find(|(code, _)| *code == u16::from(suite)).map(|(_, name)| *name))
}

/// OpenSSL's name of a group for key exchange; empty where it is not known.
pub(super) fn group(group: NamedGroup) -> &'static str {
    match group {
        NamedGroup::X25519 => "X25519",
        NamedGroup::X448 => "X448",
        NamedGroup::secp256r1 => "prime256v1",
        NamedGroup::secp384r1 => "secp384r1",
        NamedGroup::secp521r1 => "secp521r1",
        NamedGroup::FFDHE2048 => "ffdhe2048",
        NamedGroup::FFDHE3072 => "ffdhe3072",
        NamedGroup::FFDHE4096 => "ffdhe4096",
        NamedGroup::FFDHE6144 => "ffdhe6144",
        NamedGroup::FFDHE8192 => "ffdhe8192",
        NamedGroup::X25519MLKEM768 => "X25519MLKEM768",
        NamedGroup::secp256r1MLKEM768 => "SecP256r1MLKEM768",
        _ => "",
    }
}

/// Whether the suite that a client offers first is one with ChaCha20; those that nobody knows do not count (RFC 8701).
pub(super) fn prefers_chacha(offered: &[CipherSuite]) -> bool {
    let first = offered.iter().find_map(|suite| any_name(*suite));
    first.is_some_and(|name| name.contains("CHACHA20"))
}

/// The suites for the named ones (either name) and the protocols, in the order of the names; all where none
/// is named.
///
/// `ssl_ciphers` is about TLS 1.2, in OpenSSL as here: the three of TLS 1.3 are always offered with it, named
/// ones first, unless `tls13` names those that are. Names that are not in the table have been reported when the configuration was read.
pub(super) fn offered(
    names: &[String],
    tls13: Option<&[String]>,
    protocols: &[TlsVersion],
) -> Vec<SupportedCipherSuite> {
    let known = aws_lc_rs::ALL_CIPHER_SUITES;
    let mut suites: Vec<SupportedCipherSuite> = Vec::with_capacity(known.len());
    for name in tls13.unwrap_or_default().iter().chain(names) {
        let named = known.iter().find(|suite| is_named(suite.suite(), name));
        if let Some(suite) = named.filter(|suite| !suites.contains(suite)) {
            suites.push(*suite);
        }
    }
    for suite in known {
        if (names.is_empty() || is_tls13(*suite)) && !suites.contains(suite) {
            suites.push(*suite);
        }
    }
    if let Some(only) = tls13 {
        let is_only = |suite: &SupportedCipherSuite| only.iter().any(|name| is_named(suite.suite(), name));
        suites.retain(|suite| !is_tls13(*suite) || is_only(suite));
    }
    suites.retain(|suite| {
        protocols.contains(if is_tls13(*suite) { &TlsVersion::Tls13 } else { &TlsVersion::Tls12 })
    });
    suites
}

fn is_named(suite: CipherSuite, name: &str) -> bool {
    NAMES.iter().any(|(code, openssl, iana)| *code == suite && (*openssl == name || *iana == name))
}

fn is_tls13(suite: SupportedCipherSuite) -> bool {
    suite.tls13().is_some()
}
