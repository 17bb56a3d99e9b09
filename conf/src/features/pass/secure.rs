//! `proxy_ssl_*`, `grpc_ssl_*` and `uwsgi_ssl_*`: TLS to upstream servers. Each is named here as in the family `proxy_`.
//!
//! Whether it is spoken says the scheme of the `proxy_pass`. Files are looked at, never understood. Next: `http`, `grpc` and `uwsgi`, whose
//! part this is; `millstream-net`'s `tls/connector`, which loads the files and speaks.

use std::path::PathBuf;
use std::sync::Arc;

use super::target::PassDraft;
use crate::features::level::level;
use crate::features::templates::{Templates, record};
use crate::features::tls::{CertificateCache, ConfCommands, PemSource, TlsGroup, TlsVersion};
use crate::reading::Reading;
use crate::source::Span;
use crate::template::Template;
use crate::tree::Word;

/// TLS to upstream servers: what connections of one name have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTls {
    pub sends_name: bool,
    /// The server's certificate must match the name and a trusted authority.
    pub verifies: bool,
    pub trusted: Option<PathBuf>,
    pub revoked: Option<PathBuf>,
    /// Authorities between the server's certificate and a known one.
    pub depth: usize,
    pub certificate: Option<(PemSource, PemSource)>,
    /// How certificates with variable names are kept.
    pub certificate_cache: Option<CertificateCache>,
    pub passwords: Option<PathBuf>,
    pub key_log: Option<PathBuf>,
    /// Never empty.
    pub protocols: Vec<TlsVersion>,
    /// Names of suites; empty = the library's own.
    pub ciphers: Vec<String>,
    /// In order; `None` = the library's own.
    pub tls13_suites: Option<Vec<String>>,
    /// Preferred first; empty = the library's own.
    pub groups: Vec<TlsGroup>,
    pub reuses_sessions: bool,
    /// Whether TLS 1.2 tickets are accepted.
    pub session_tickets: bool,
}

impl Templates for UpstreamTls {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        if let Some((certificate, key)) = &self.certificate {
            certificate.templates(all);
            key.templates(all);
        }
    }
}

record! {
    pub struct PassTls {
        pub settings: Arc<UpstreamTls>,
        pub host: String,
        /// `None` = the host of the `proxy_pass`.
        pub name: Option<Template>,
        /// Where the `proxy_pass` stands, for errors found in files.
        pub span: Span,
    }
}

level! {
    pub struct SecureLevel {
        name: Template,
        sends_name: bool,
        verifies: bool,
        trusted: PathBuf,
        revoked: PathBuf,
        depth: usize,
        /// An empty one is none.
        certificate: Option<PemSource>,
        certificate_key: Option<PemSource>,
        certificate_cache: Option<CertificateCache>,
        passwords: PathBuf,
        key_log: PathBuf,
        protocols: Vec<TlsVersion>,
        ciphers: Vec<String>,
        reuses_sessions: bool,
        commands: ConfCommands,
    }
}

/// `$of` finds their level, `$host` is the default name.
macro_rules! rows {
    ($prefix:literal, $of:path, $host:literal) => {
        &[
        once(concat!($prefix, "_ssl_name"), HTTP_SERVER_LOCATION, (1, 1), "name", $host,
            "Sets the name that is verified in the certificate of the upstream server and sent with `proxy_ssl_server_name`. A port in it is ignored.",
            Apply::Level(|l, d, r| $of(l).name = Some(r.template(&d.args[0])))),
        once(concat!($prefix, "_ssl_server_name"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
            "Sends the server name in the handshake (SNI). IP addresses are never sent.",
            Apply::Level(|l, d, r| $of(l).sends_name = r.flag(&d.args[0]))),
        once(concat!($prefix, "_ssl_verify"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
            "Verifies the certificate of the upstream server. If off, an attacker on the network can impersonate the server.",
            Apply::Level(|l, d, r| $of(l).verifies = r.flag(&d.args[0]))),
        once(concat!($prefix, "_ssl_trusted_certificate"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "Sets a PEM file with the CA certificates that verify the upstream server's certificate.",
            Apply::Level(|l, d, r| $of(l).trusted = Some($crate::features::tls::pem_file(&d.args[0], "certificate", r).0))),
        once(concat!($prefix, "_ssl_crl"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "Sets a PEM file with certificate revocation lists that are applied to the upstream server's certificate.",
            Apply::Level(|l, d, r| $of(l).revoked = Some($crate::features::tls::pem_file(&d.args[0], "revocation list", r).0))),
        once(concat!($prefix, "_ssl_certificate"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "Sets a PEM file with the client certificate that is sent to the upstream server. The certificate itself may be given as \
            `data:certificate`. The value may contain variables, which are evaluated for each connection; the file is read again if it has changed. \
            If it cannot be read, the request gets 500. An empty value means no certificate.",
            Apply::Level(|l, d, r| $of(l).certificate = Some($crate::features::pass::secure::source(&d.args[0], "certificate", r)))),
        once(concat!($prefix, "_ssl_certificate_key"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "Sets a PEM file with the private key of the client certificate.",
            Apply::Level(|l, d, r| $of(l).certificate_key = Some($crate::features::pass::secure::source(&d.args[0], "certificate key", r)))),
        once(concat!($prefix, "_ssl_password_file"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "Sets a file with passwords for the private key, one per line. All are tried.",
            Apply::Level(|l, d, r| $of(l).passwords = $crate::features::tls::password_file(&d.args[0], r))),
        once(concat!($prefix, "_ssl_key_log"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "Writes the secrets of all connections to upstream servers to a file, like `ssl_key_log`.",
            Apply::Level(|l, d, r| $of(l).key_log = $crate::features::tls::key_log(d, r))),
        often(concat!($prefix, "_ssl_protocols"), HTTP_SERVER_LOCATION, (1, MANY), "TLSv1.2 | TLSv1.3 …", "TLSv1.2 TLSv1.3",
            "Sets the enabled protocols. SSLv2, SSLv3, TLSv1 and TLSv1.1 are accepted as parameters, but never enabled.",
            Apply::Level(|l, d, r| {
                let before = $of(l).protocols.take();
                $of(l).protocols = $crate::features::tls::versions(d, before, r);
            })),
        once(concat!($prefix, "_ssl_ciphers"), HTTP_SERVER_LOCATION, (1, 1), "list", "DEFAULT",
            "Sets the enabled cipher suites of TLS 1.2, like `ssl_ciphers`.",
            Apply::Level(|l, d, r| $of(l).ciphers = $crate::features::tls::ciphers::read(&d.args[0], &d.name.text, r))),
        once(concat!($prefix, "_ssl_session_reuse"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
            "Resumes TLS sessions with upstream servers.",
            Apply::Level(|l, d, r| $of(l).reuses_sessions = r.flag(&d.args[0]))),
        once(concat!($prefix, "_ssl_verify_depth"), HTTP_SERVER_LOCATION, (1, 1), "number", "1",
            "The maximum number of intermediate certificates between the upstream server's certificate and a trusted one.",
            Apply::Level(|l, d, r| $of(l).depth = r.number(&d.args[0], 0, 100).map(|depth| depth as usize))),
        often(concat!($prefix, "_ssl_conf_command"), HTTP_SERVER_LOCATION, (2, 2), "name value", "",
            "Sets an OpenSSL configuration command, like `ssl_conf_command`.",
            Apply::Level(|l, d, r| $of(l).commands.get_or_insert_default().read(d, r))),
        once(concat!($prefix, "_ssl_certificate_cache"), HTTP_SERVER_LOCATION, (1, 3), $crate::features::tls::certificate_cache::SYNTAX, "off",
            "Caches certificates whose names contain variables, like `ssl_certificate_cache`.",
            Apply::Level(|l, d, r| $of(l).certificate_cache = $crate::features::tls::certificate_cache::read(d, r))),
        ]
    };
}
pub(super) use rows;

/// `None` if the word is empty.
pub(in crate::features) fn source(word: &Word, what: &str, reading: &mut Reading<'_>) -> Option<PemSource> {
    (!word.text.is_empty()).then(|| PemSource::read(word, what, None, reading))
}

/// By what the upstream server may tell one connection from another.
pub(super) fn sent(level: Option<&SecureLevel>) -> Vec<&Template> {
    let mut all = Vec::new();
    if let Some(SecureLevel { name, certificate, certificate_key, .. }) = level {
        name.templates(&mut all);
        certificate.templates(&mut all);
        certificate_key.templates(&mut all);
    }
    all
}

impl SecureLevel {
    pub(super) fn resolve(&self, draft: &PassDraft, reading: &mut Reading<'_>) -> PassTls {
        let (family, span) = (draft.family, draft.span);
        let name = |rest: &str| family.directive(&format!("ssl_{rest}"));
        let verifies = self.verifies.unwrap_or(false);
        if verifies && self.trusted.is_none() {
            reading.error(span, format!("no {} for {}", name("trusted_certificate"), name("verify"))).help(
                format!(
                    "write {} with the authorities, such as /etc/ssl/certs/ca-certificates.crt",
                    name("trusted_certificate")
                ),
            );
        }
        let certificate = match (self.certificate.as_ref().and_then(Option::as_ref), &self.certificate_key) {
            (Some(certificate), Some(Some(key))) => Some((certificate.clone(), key.clone())),
            (Some(certificate), _) => {
                let message = format!(
                    "no \"{}\" is defined for certificate \"{}\"",
                    name("certificate_key"),
                    certificate.name().display()
                );
                let help = format!("write {} with the file of its key", name("certificate_key"));
                reading.error(span, message).help(help);
                None
            }
            (None, _) => None,
        };
        let protocols = self.protocols.clone().unwrap_or_else(|| vec![TlsVersion::Tls12, TlsVersion::Tls13]);
        let commands = self.commands.clone().unwrap_or_default();
        let mut obeyed = commands.obey(&name("conf_command"), &protocols, reading);
        PassTls {
            settings: Arc::new(UpstreamTls {
                sends_name: self.sends_name.unwrap_or(false),
                verifies,
                trusted: self.trusted.clone(),
                revoked: self.revoked.clone(),
                depth: self.depth.unwrap_or(1),
                certificate: obeyed.certificates.pop().or(certificate),
                certificate_cache: self.certificate_cache.flatten(),
                passwords: self.passwords.clone(),
                key_log: self.key_log.clone(),
                protocols: obeyed.protocols.unwrap_or(protocols),
                ciphers: obeyed.ciphers.or_else(|| self.ciphers.clone()).unwrap_or_default(),
                tls13_suites: obeyed.suites,
                groups: obeyed.groups.unwrap_or_default(),
                reuses_sessions: self.reuses_sessions.unwrap_or(true),
                session_tickets: obeyed.session_tickets.unwrap_or(true),
            }),
            host: draft.host.clone(),
            name: self.name.clone(),
            span,
        }
    }
}
