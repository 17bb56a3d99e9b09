//! Commands of OpenSSL: each takes effect, is noted as without effect, or is reported with its place.

use millstream_conf::Loaded;
use millstream_conf::diagnostics::Severity;
use millstream_conf::model::{Tls, TlsGroup, TlsVersion, UpstreamTls};
use std::sync::Arc;

use crate::fixture::{in_http, messages, text};

/// A server without a certificate, and a location with TLS to its upstream, each with directives of its own.
fn loaded(http: &str, server: &str, location: &str) -> Loaded {
    text(&in_http(&format!(
        "{http} server {{ listen 8443 ssl; ssl_reject_handshake on; {server}
            location / {{ proxy_pass https://127.0.0.1:1; {location} }} }}"
    )))
}

fn tls(loaded: &Loaded) -> Tls {
    let http = &loaded.configuration.as_ref().expect("it loads").http;
    http.servers[0].settings.tls.clone().expect("it has TLS")
}

fn upstream(loaded: &Loaded) -> Arc<UpstreamTls> {
    let http = &loaded.configuration.as_ref().expect("it loads").http;
    let pass = http.locations.iter().find_map(|location| location.settings.pass()).expect("it proxies");
    pass.tls().expect("over TLS").settings.clone()
}

/// The directives with `ssl_conf_command` for `@`.
fn written(commands: &str, prefix: &str) -> String {
    commands.replace('@', &format!("{prefix}ssl_conf_command"))
}

use TlsVersion::{Tls12, Tls13};

#[test]
fn versions_are_those_that_openssl_would_leave() {
    for (protocols, commands, left) in [
        ("TLSv1.2 TLSv1.3", "@ MinProtocol TLSv1.3;", &[Tls13][..]),
        ("TLSv1.2 TLSv1.3", "@ MaxProtocol TLSv1.2;", &[Tls12]),
        ("TLSv1.2 TLSv1.3", "@ Protocol -TLSv1.2;", &[Tls13]),
        ("TLSv1.2 TLSv1.3", "@ Protocol -TLSv1.3;", &[Tls12]),
        ("TLSv1.2 TLSv1.3", "@ protocol \"-ALL, +TLSv1.3\";", &[Tls13]),
        ("TLSv1.2 TLSv1.3", "@ Protocol -ALL,tlsv1.2;", &[Tls12]),
        // One that is enabled leaves the others as they were.
        ("TLSv1.2", "@ Protocol TLSv1.3;", &[Tls12, Tls13]),
        ("TLSv1.2", "@ Protocol ALL,-TLSv1,-TLSv1.1,-SSLv3;", &[Tls12, Tls13]),
        ("TLSv1.3", "@ MinProtocol TLSv1.2;", &[Tls13]),
        // Bounds hold whatever is enabled, and the last one counts.
        ("TLSv1.2 TLSv1.3", "@ MinProtocol TLSv1.3; @ Protocol +TLSv1.2;", &[Tls13]),
        ("TLSv1.2 TLSv1.3", "@ MinProtocol TLSv1.3; @ MinProtocol None;", &[Tls12, Tls13]),
        ("TLSv1.2 TLSv1.3", "@ MaxProtocol None; @ MinProtocol TLSv1.3;", &[Tls13]),
    ] {
        let server = format!("ssl_protocols {protocols}; {}", written(commands, ""));
        let location = format!("proxy_ssl_protocols {protocols}; {}", written(commands, "proxy_"));
        let loaded = loaded("", &server, &location);
        assert_eq!(messages(&loaded, Severity::Error), [""; 0], "{commands}");
        assert_eq!(messages(&loaded, Severity::Warning), [""; 0], "{commands}");
        assert_eq!(tls(&loaded).protocols, left, "{protocols} {commands}");
        assert_eq!(upstream(&loaded).protocols, left, "{protocols} {commands}");
    }
}

#[test]
fn what_commands_choose_is_in_place_of_the_directives_values() {
    let server = "ssl_ciphers ECDHE+CHACHA20; ssl_ecdh_curve X25519; ssl_session_tickets off; ssl_prefer_server_ciphers on;
        ssl_conf_command CipherString ECDHE-RSA-AES128-GCM-SHA256; ssl_conf_command Curves P-384:prime256v1;
        ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256; ssl_conf_command NumTickets 5;
        ssl_conf_command Options \"SessionTicket, -ServerPreference,PrioritizeChaCha,+TxCertificateCompression\";";
    let location = "proxy_ssl_conf_command CipherString ECDHE-RSA-AES128-GCM-SHA256; proxy_ssl_conf_command Groups ?X448:X25519;
        proxy_ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256; proxy_ssl_conf_command Options -SessionTicket;";
    let loaded = loaded("", server, location);
    assert_eq!(messages(&loaded, Severity::Error), [""; 0]);
    assert_eq!(messages(&loaded, Severity::Warning), [""; 0]);
    let tls = tls(&loaded);
    assert_eq!(tls.ciphers.last().map(String::as_str), Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"));
    assert_eq!(tls.tls13_suites.as_deref(), Some(&["TLS_CHACHA20_POLY1305_SHA256".to_owned()][..]));
    assert_eq!(tls.groups, [TlsGroup::P384, TlsGroup::P256]);
    assert!(tls.session_tickets && !tls.prefer_server_ciphers && tls.prioritizes_chacha);
    assert!(tls.compresses_certificates);
    assert_eq!(tls.tickets, 5);
    let upstream = upstream(&loaded);
    assert_eq!(upstream.tls13_suites.as_deref(), Some(&["TLS_AES_128_GCM_SHA256".to_owned()][..]));
    assert_eq!(upstream.groups, [TlsGroup::X25519]);
    assert!(!upstream.session_tickets);
}

#[test]
fn a_level_that_writes_a_command_has_none_of_the_level_above() {
    let above = "ssl_conf_command MinProtocol TLSv1.3; proxy_ssl_conf_command MinProtocol TLSv1.3;";
    let without = loaded(above, "", "");
    assert_eq!((tls(&without).protocols, upstream(&without).protocols.clone()), (vec![Tls13], vec![Tls13]));
    let with = loaded(above, "ssl_conf_command NumTickets 1;", "proxy_ssl_conf_command Options Bugs;");
    let both = vec![Tls12, Tls13];
    assert_eq!((tls(&with).protocols, upstream(&with).protocols.clone()), (both.clone(), both));
}

#[test]
fn what_cannot_be_obeyed_is_an_error_with_its_place() {
    for (command, part) in [
        ("MinProtokol TLSv1.3", "did you mean \"MinProtocol\"?"),
        ("MinProtocol TLSv1.4", "unknown version \"TLSv1.4\""),
        ("Protocol TLSv1.2:TLSv1.3", "unknown version \"TLSv1.2:TLSv1.3\""),
        ("Protocol -ALL", "leaves no secure version"),
        ("MaxProtocol TLSv1.1", "leaves no secure version"),
        ("CipherString NONSENSE", "leaves no cipher suite"),
        ("Ciphersuites TLS_AES_512", "no suite of TLS 1.3 is called"),
        ("Groups X448", "leaves no group"),
        ("Certificate none.crt", "cannot load certificate"),
        ("VerifyMode Require", "ssl_trusted_certificate"),
        ("ClientCAFile ca.pem", "ssl_trusted_certificate"),
        ("SignatureAlgorithms RSA+SHA512", "signature schemes depend on the key"),
        ("RecordPadding 512", "records are not padded"),
        ("NumTickets many", "many"),
        ("Options SessionTickets", "unknown option \"SessionTickets\""),
        ("Options -", "unknown option \"-\""),
    ] {
        for prefix in ["", "proxy_"] {
            let written = format!("{prefix}ssl_conf_command {command};");
            let loaded = loaded("", &written, "");
            let errors = messages(&loaded, Severity::Error);
            assert!(!errors.is_empty(), "{written}");
            assert!(
                errors.iter().any(|error| error.contains(part)),
                "{written}\nwanted {part:?}\ngot {errors:#?}"
            );
            assert!(errors.iter().all(|error| !error.ends_with("| ")), "no help: {errors:#?}");
        }
    }
}

#[test]
fn what_changes_nothing_is_noted_and_what_is_not_done_is_warned_of() {
    for (command, severity) in [
        ("Options NoRenegotiation", Severity::Idle),
        ("Options -NoRenegotiation", Severity::Warning),
        ("Options -Compression", Severity::Idle),
        ("Options Compression", Severity::Warning),
        ("Options KTLS", Severity::Idle),
        ("Options -KTLS", Severity::Idle),
        ("DHParameters dh.pem", Severity::Idle),
        ("RecordPadding 0", Severity::Idle),
        ("MinProtocol TLSv1", Severity::Idle),
        ("Protocol +TLSv1.1", Severity::Warning),
        ("Groups X25519:X448", Severity::Warning),
        ("CipherString HIGH:RC4", Severity::Warning),
    ] {
        let loaded = loaded("", &format!("ssl_conf_command {command};"), "");
        assert_eq!(messages(&loaded, Severity::Error), [""; 0], "{command}");
        let warnings = messages(&loaded, Severity::Warning);
        assert_eq!(warnings.len(), usize::from(severity == Severity::Warning), "{command} {warnings:#?}");
        if severity == Severity::Idle && !command.starts_with("Min") {
            let notes = messages(&loaded, Severity::Idle);
            assert!(notes.iter().any(|note| note.contains("ssl_conf_command")), "{command} {notes:#?}");
        }
    }
}
