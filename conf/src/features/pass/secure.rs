//! `proxy_ssl_*`, `grpc_ssl_*` and `uwsgi_ssl_*`: TLS to upstream servers. Each is named here as in the family `proxy_`.
//!
//! Whether it is spoken says the scheme of the `proxy_pass`. Files are looked at, never understood. Next: `http` and `grpc`, whose part
//! this is; `millstream-net`'s `tls/connector`, which loads the files and speaks.

use std::path::PathBuf;
use std::sync::Arc;

use super::Family;
use crate::features::level::level;
use crate::features::templates::{record, without_templates};
use crate::features::tls::TlsVersion;
use crate::reading::Reading;
use crate::source::Span;
use crate::template::Template;

/// How TLS is spoken to upstream servers: what connections under one name have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTls {
    /// `proxy_ssl_server_name`: the name is sent (SNI).
    pub sends_name: bool,
    /// `proxy_ssl_verify`: the server's certificate must be of the name and of a trusted authority.
    pub verifies: bool,
    /// `proxy_ssl_trusted_certificate`.
    pub trusted: Option<PathBuf>,
    /// `proxy_ssl_crl`.
    pub revoked: Option<PathBuf>,
    /// `proxy_ssl_verify_depth`: authorities between the server's certificate and one that is known.
    pub depth: usize,
    /// `proxy_ssl_certificate` and its key: who we are.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// `proxy_ssl_password_file`: what opens the key.
    pub passwords: Option<PathBuf>,
    /// `proxy_ssl_key_log`: where the secrets of sessions are written.
    pub key_log: Option<PathBuf>,
    /// `proxy_ssl_protocols`, never empty.
    pub protocols: Vec<TlsVersion>,
    /// `proxy_ssl_ciphers` as the names of suites; empty = the library's own.
    pub ciphers: Vec<String>,
    /// `proxy_ssl_session_reuse`.
    pub reuses_sessions: bool,
}

without_templates!(UpstreamTls);

record! {
    /// TLS to the upstream, of a location.
    pub struct PassTls {
        /// How it is spoken.
        pub settings: Arc<UpstreamTls>,
        /// `proxy_ssl_name`; `None` is the host of the `proxy_pass`.
        pub name: Option<Template>,
        /// Where the `proxy_pass` stands, for what is found wrong with files.
        pub span: Span,
    }
}

level! {
    /// What one level says of it.
    pub struct SecureLevel {
        /// `proxy_ssl_name`.
        name: Template,
        /// `proxy_ssl_server_name`.
        sends_name: bool,
        /// `proxy_ssl_verify`.
        verifies: bool,
        /// `proxy_ssl_trusted_certificate`.
        trusted: PathBuf,
        /// `proxy_ssl_crl`.
        revoked: PathBuf,
        /// `proxy_ssl_verify_depth`.
        depth: usize,
        /// `proxy_ssl_certificate`.
        certificate: PathBuf,
        /// `proxy_ssl_certificate_key`.
        certificate_key: PathBuf,
        /// `proxy_ssl_password_file`.
        passwords: PathBuf,
        /// `proxy_ssl_key_log`.
        key_log: PathBuf,
        /// `proxy_ssl_protocols`.
        protocols: Vec<TlsVersion>,
        /// `proxy_ssl_ciphers`.
        ciphers: Vec<String>,
        /// `proxy_ssl_session_reuse`.
        reuses_sessions: bool,
    }
}

/// The rows of TLS to upstreams, for one prefix; `$of` finds their level, `$host` is what the name is by default.
macro_rules! rows {
    ($prefix:literal, $of:path, $host:literal) => {
        &[
        once(concat!($prefix, "_ssl_name"), HTTP_SERVER_LOCATION, (1, 1), "name", $host,
            "The name of the upstream server that its certificate must have and that is sent; a port in it is left out.",
            Apply::Level(|l, d, r| $of(l).name = Some(r.template(&d.args[0])))),
        once(concat!($prefix, "_ssl_server_name"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
            "Whether the name is sent (SNI); addresses never are.",
            Apply::Level(|l, d, r| $of(l).sends_name = r.flag(&d.args[0]))),
        once(concat!($prefix, "_ssl_verify"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
            "Whether the upstream server's certificate is verified. Without it anybody on the way can pretend to be the server.",
            Apply::Level(|l, d, r| $of(l).verifies = r.flag(&d.args[0]))),
        once(concat!($prefix, "_ssl_trusted_certificate"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "A PEM file with the authorities that are trusted.",
            Apply::Level(|l, d, r| $of(l).trusted = Some($crate::features::tls::pem_file(&d.args[0], "certificate", r).0))),
        once(concat!($prefix, "_ssl_crl"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "A PEM file with revoked certificates.",
            Apply::Level(|l, d, r| $of(l).revoked = Some($crate::features::tls::pem_file(&d.args[0], "revocation list", r).0))),
        once(concat!($prefix, "_ssl_certificate"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "A PEM file with the certificate by which the upstream server knows us.",
            Apply::Level(|l, d, r| $of(l).certificate = Some($crate::features::tls::pem_file(&d.args[0], "certificate", r).0))),
        once(concat!($prefix, "_ssl_certificate_key"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "A PEM file with its key.",
            Apply::Level(|l, d, r| $of(l).certificate_key = Some($crate::features::tls::pem_file(&d.args[0], "certificate key", r).0))),
        once(concat!($prefix, "_ssl_password_file"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "A file with the passwords of the key, one a line; each is tried.",
            Apply::Level(|l, d, r| $of(l).passwords = $crate::features::tls::password_file(&d.args[0], r))),
        once(concat!($prefix, "_ssl_key_log"), HTTP_SERVER_LOCATION, (1, 1), "file", "",
            "A file to which the secrets of every connection to upstream servers are added, as with `ssl_key_log`.",
            Apply::Level(|l, d, r| $of(l).key_log = $crate::features::tls::key_log(d, r))),
        often(concat!($prefix, "_ssl_protocols"), HTTP_SERVER_LOCATION, (1, MANY), "TLSv1.2 | TLSv1.3 …", "TLSv1.2 TLSv1.3",
            "The versions that are spoken. SSLv2, SSLv3, TLSv1 and TLSv1.1 are accepted as words and never spoken.",
            Apply::Level(|l, d, r| {
                let before = $of(l).protocols.take();
                $of(l).protocols = $crate::features::tls::versions(d, before, r);
            })),
        once(concat!($prefix, "_ssl_ciphers"), HTTP_SERVER_LOCATION, (1, 1), "list", "DEFAULT",
            "The suites that are spoken with TLS 1.2, as with `ssl_ciphers`.",
            Apply::Level(|l, d, r| $of(l).ciphers = $crate::features::tls::ciphers::read(&d.args[0], r))),
        once(concat!($prefix, "_ssl_session_reuse"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
            "Whether sessions with upstream servers are resumed.",
            Apply::Level(|l, d, r| $of(l).reuses_sessions = r.flag(&d.args[0]))),
        once(concat!($prefix, "_ssl_verify_depth"), HTTP_SERVER_LOCATION, (1, 1), "number", "1",
            "How many authorities may stand between the upstream server's certificate and one that is trusted.",
            Apply::Level(|l, d, r| $of(l).depth = r.number(&d.args[0], 0, 100).map(|depth| depth as usize))),
        often(concat!($prefix, "_ssl_conf_command"), HTTP_SERVER_LOCATION, (2, 2), "name value", "",
            "Commands to the OpenSSL library.",
            Apply::Idle("the TLS library is not OpenSSL")),
        idle(concat!($prefix, "_ssl_certificate_cache"), HTTP_SERVER_LOCATION, (1, 3), $crate::features::tls::certificate_cache::SYNTAX,
            "How long certificates with variables in their names are kept.",
            "certificates are read at a start and at a reload"),
        ]
    };
}
pub(super) use rows;

impl SecureLevel {
    /// What comes of it for a `proxy_pass` that stands there.
    pub(super) fn resolve(&self, family: Family, span: Span, reading: &mut Reading<'_>) -> PassTls {
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
        let certificate = match (&self.certificate, &self.certificate_key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (Some(certificate), None) => {
                let message = format!(
                    "no \"{}\" is defined for certificate \"{}\"",
                    name("certificate_key"),
                    certificate.display()
                );
                let help = format!("write {} with the file of its key", name("certificate_key"));
                reading.error(span, message).help(help);
                None
            }
            (None, _) => None,
        };
        PassTls {
            settings: Arc::new(UpstreamTls {
                sends_name: self.sends_name.unwrap_or(false),
                verifies,
                trusted: self.trusted.clone(),
                revoked: self.revoked.clone(),
                depth: self.depth.unwrap_or(1),
                certificate,
                passwords: self.passwords.clone(),
                key_log: self.key_log.clone(),
                protocols: self
                    .protocols
                    .clone()
                    .unwrap_or_else(|| vec![TlsVersion::Tls12, TlsVersion::Tls13]),
                ciphers: self.ciphers.clone().unwrap_or_default(),
                reuses_sessions: self.reuses_sessions.unwrap_or(true),
            }),
            name: self.name.clone(),
            span,
        }
    }
}
