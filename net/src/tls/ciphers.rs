//! Cipher suites: one table from OpenSSL's names, which configurations and logs use, to the registered ones.
//!
//! Which suites a configuration asks for was decided when it was read (`millstream-conf`'s `tls_ciphers`); none is
//! added here. Next: `tls`, which offers them.

use millstream_conf::model::TlsVersion;
use rustls::crypto::aws_lc_rs;
use rustls::{CipherSuite, SupportedCipherSuite};

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

/// OpenSSL's name of a suite, `$ssl_cipher`.
pub(super) fn name(suite: CipherSuite) -> &'static str {
    NAMES.iter().find(|(code, ..)| *code == suite).map_or("", |(_, name, _)| name)
}

/// The suites for the named ones (either name) and the protocols, in the order of the names; all where none
/// is named.
///
/// `ssl_ciphers` is about TLS 1.2, in OpenSSL as here: the three of TLS 1.3 are always offered with it, named
/// ones first. Names that are not in the table have been reported when the configuration was read.
pub(super) fn offered(names: &[String], protocols: &[TlsVersion]) -> Vec<SupportedCipherSuite> {
    let known = aws_lc_rs::ALL_CIPHER_SUITES;
    let mut suites: Vec<SupportedCipherSuite> = Vec::with_capacity(known.len());
    for name in names {
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
