//! Directives of TLS.
//!
//! What a file asks for that is unsafe is dropped with a warning that says so. Files are looked at (are they there, may
//! they be read), never understood. Next: `tls/ciphers`; `millstream-net`'s `tls`, which loads them.

use std::path::PathBuf;
use std::time::Duration;

use super::context::HTTP_SERVER;
use super::level::level;
use super::{Apply, Feature, Level, MANY, Place, Row, idle, often, once};
use crate::declared::acme::WebUrl;
use crate::declared::resolver::{RESOLVER_TIMEOUT, ResolverId};
use crate::files;
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::source::Span;
use crate::tree::{Directive, Word};

pub(crate) mod certificate_cache;
mod versions;
pub mod ciphers;
mod groups;
mod pem_source;
mod commands;
pub(in crate::features) mod conf_command;

pub use certificate_cache::CertificateCache;
pub use conf_command::ConfCommands;
pub use groups::TlsGroup;
pub use pem_source::PemSource;
pub use versions::TlsVersion;
pub(in crate::features) use versions::versions;

#[derive(Debug, Clone)]
pub struct Tls {
    /// Pairs of certificate and key, the leaf first.
    pub certificates: Vec<(PemSource, PemSource)>,
    pub passwords: Option<PathBuf>,
    /// `None` reads certificates with variable names at each handshake.
    pub certificate_cache: Option<CertificateCache>,
    pub key_log: Option<PathBuf>,
    /// Where the first `ssl_certificate` stands, for errors found in files.
    pub span: Span,
    /// Never empty.
    pub protocols: Vec<TlsVersion>,
    /// IANA names of the offered suites, in order; empty = the library's own.
    pub ciphers: Vec<String>,
    pub prefer_server_ciphers: bool,
    /// Sessions kept, 4,000 per megabyte as nginx counts; 0 = none.
    pub session_cache: usize,
    pub session_timeout: Duration,
    pub session_tickets: bool,
    /// The first seals, all open; empty = the process's own.
    pub ticket_keys: Vec<PathBuf>,
    /// `ssl_conf_command Ciphersuites`, in order; `None` = the library's own.
    pub tls13_suites: Option<Vec<String>>,
    /// `ssl_conf_command Options PrioritizeChaCha`: a client that prefers ChaCha20 gets it, whatever the
    /// server prefers.
    pub prioritizes_chacha: bool,
    /// `ssl_conf_command NumTickets`: tickets after a handshake of TLS 1.3.
    pub tickets: usize,
    /// `ssl_conf_command Certificate` and `PrivateKey`: replace pairs with the same kind of key.
    pub replacing: Vec<(PemSource, PemSource)>,
    /// `ssl_ecdh_curve`, preferred first; empty = the library's own.
    pub groups: Vec<TlsGroup>,
    /// Where OCSP responses come from; `None` sends none.
    pub stapling: Option<Stapling>,
    /// Bytes of a response in one record.
    pub record_size: usize,
    pub compresses_certificates: bool,
    pub rejects: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stapling {
    /// An OCSP response in DER; `None` asks a responder.
    pub file: Option<PathBuf>,
    /// `None` asks the one that the certificate names.
    pub responder: Option<WebUrl>,
    /// Authorities that are not in the certificate's file.
    pub authorities: Option<PathBuf>,
    /// Resolves the responder's name; `None` uses the system's resolver.
    pub resolver: Option<ResolverId>,
    pub resolver_timeout: Duration,
}

level! {
    pub struct TlsLevel {
        certificates: Vec<(PemSource, Span)>,
        certificate_keys: Vec<(PemSource, Span)>,
        passwords: PathBuf,
        certificate_cache: Option<CertificateCache>,
        key_log: PathBuf,
        protocols: Vec<TlsVersion>,
        /// The suites that remain, with their place.
        ciphers: (Vec<String>, Span),
        prefer_server_ciphers: bool,
        /// In sessions.
        session_cache: usize,
        session_timeout: Duration,
        session_tickets: bool,
        ticket_keys: Vec<PathBuf>,
        groups: Vec<TlsGroup>,
        stapling: bool,
        stapled: PathBuf,
        responder: WebUrl,
        record_size: usize,
        compresses_certificates: bool,
        rejects: (bool, Span),
        commands: ConfCommands,
    }
}

impl Feature for TlsLevel {
    type Settings = Option<Tls>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> Option<Tls> {
        let certificates = self.certificates.as_deref().unwrap_or_default();
        let keys = self.certificate_keys.as_deref().unwrap_or_default();
        let (rejects, rejects_at) = self.rejects.unwrap_or_default();
        let span = match certificates.first() {
            Some((_, span)) => *span,
            None if rejects => rejects_at,
            None => return None,
        };
        if let Some((path, span)) = certificates.get(keys.len()) {
            reading
                .error(
                    *span,
                    format!(
                        "no \"ssl_certificate_key\" is defined for certificate \"{}\"",
                        path.name().display()
                    ),
                )
                .help("write ssl_certificate_key with the file of its key");
        }
        let protocols = self.protocols.clone().unwrap_or_else(|| vec![TlsVersion::Tls12, TlsVersion::Tls13]);
        let commands = self.commands.clone().unwrap_or_default();
        let obeyed = commands.obey("ssl_conf_command", &protocols, reading);
        let protocols = obeyed.protocols.unwrap_or(protocols);
        let (ciphers, ciphers_span) = self.ciphers.clone().unwrap_or((Vec::new(), span));
        let ciphers = obeyed.ciphers.unwrap_or(ciphers);
        let only_tls13 = !ciphers.is_empty() && ciphers.iter().all(|name| !name.starts_with("TLS_ECDHE_"));
        if only_tls13 && !protocols.contains(&TlsVersion::Tls13) {
            reading
                .error(ciphers_span, "ssl_ciphers leaves no cipher suite for the versions in ssl_protocols")
                .help("write ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20; or add TLSv1.3 to ssl_protocols");
        }
        Some(Tls {
            certificates: certificates
                .iter()
                .zip(keys)
                .map(|((file, _), (key, _))| (file.clone(), key.clone()))
                .collect(),
            passwords: self.passwords.clone(),
            certificate_cache: self.certificate_cache.flatten(),
            key_log: self.key_log.clone(),
            span,
            protocols,
            ciphers,
            tls13_suites: obeyed.suites,
            prefer_server_ciphers: obeyed.server_preference.or(self.prefer_server_ciphers).unwrap_or(false),
            prioritizes_chacha: obeyed.prioritizes_chacha.unwrap_or(false),
            tickets: obeyed.tickets.unwrap_or(USUAL_TICKETS),
            replacing: obeyed.certificates,
            session_cache: self.session_cache.unwrap_or(0),
            session_timeout: self.session_timeout.unwrap_or(Duration::from_secs(300)),
            session_tickets: obeyed.session_tickets.or(self.session_tickets).unwrap_or(true),
            ticket_keys: self.ticket_keys.clone().unwrap_or_default(),
            groups: obeyed.groups.or_else(|| self.groups.clone()).unwrap_or_default(),
            stapling: self.stapling.unwrap_or(false).then(|| self.stapling(place)),
            record_size: self.record_size.unwrap_or(LARGEST_RECORD),
            compresses_certificates: obeyed
                .compresses_certificates
                .or(self.compresses_certificates)
                .unwrap_or(false),
            rejects,
        })
    }
}

impl TlsLevel {
    fn stapling(&self, place: &Place<'_>) -> Stapling {
        Stapling {
            file: self.stapled.clone(),
            responder: self.responder.clone(),
            authorities: place.level.client_certificate.trusted().cloned(),
            resolver: place.level.resolver.servers.flatten(),
            resolver_timeout: place.level.resolver.timeout.unwrap_or(RESOLVER_TIMEOUT),
        }
    }
}

/// Bytes (RFC 8446 §5.1).
const LARGEST_RECORD: usize = 16 * 1024;
/// After a handshake of TLS 1.3, as many as OpenSSL sends.
const USUAL_TICKETS: usize = 2;
/// The library's minimum, without the record header.
const SMALLEST_RECORD: u64 = 32;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("ssl_certificate", HTTP_SERVER, (1, 1), "file", "",
        "Sets a PEM file with the server's certificate, followed by intermediate certificates. A relative path is relative to the directory of the \
        main file. The certificate itself may be given as `data:certificate`. The value may contain variables, as in `$ssl_server_name.crt`, which \
        are evaluated during each handshake; the file is read again if it has changed.",
        Apply::Level(|l, d, r| {
            let source = PemSource::read(&d.args[0], "certificate", Some("acme_certificate"), r);
            l.tls.certificates.get_or_insert_default().push((source, d.args[0].span));
        })),
    often("ssl_certificate_key", HTTP_SERVER, (1, 1), "file", "",
        "Sets a PEM file with the private key of the certificate. If there are several certificates, the keys must be in the same order.",
        Apply::Level(|l, d, r| {
            let source = PemSource::read(&d.args[0], "certificate key", Some("acme_certificate_key"), r);
            l.tls.certificate_keys.get_or_insert_default().push((source, d.args[0].span));
        })),
    once("ssl_password_file", HTTP_SERVER, (1, 1), "file", "",
        "Sets a file with passwords for private keys, one per line. All are tried. The file may be a named pipe.",
        Apply::Level(|l, d, r| l.tls.passwords = password_file(&d.args[0], r))),
    once("ssl_certificate_cache", HTTP_SERVER, (1, 3), certificate_cache::SYNTAX, "off",
        "Caches certificates whose names contain variables. At most `max` certificates and keys are kept. The least recently used pair is removed \
        first, as is a pair not used for `inactive` (10s). A pair whose key has a password is not cached. The files are not checked for changes for \
        `valid` (60s); without this directive, they are checked before each handshake.",
        Apply::Level(|l, d, r| l.tls.certificate_cache = certificate_cache::read(d, r))),
    once("ssl_key_log", HTTP_SERVER, (1, 1), "file", "",
        "Writes the secrets of all connections to a file, in the format of Wireshark (SSLKEYLOGFILE). With this file, all traffic can be decrypted: \
        use it for debugging only. It is opened at start and at each reload, and only its owner can read it.",
        Apply::Level(|l, d, r| l.tls.key_log = key_log(d, r))),
    often("ssl_protocols", HTTP_SERVER, (1, MANY), "TLSv1.2 | TLSv1.3 …", "TLSv1.2 TLSv1.3",
        "Sets the enabled protocols. SSLv2, SSLv3, TLSv1 and TLSv1.1 are accepted as parameters, but never enabled.",
        Apply::Level(|l, d, r| l.tls.protocols = versions(d, l.tls.protocols.take(), r))),
    once("ssl_ciphers", HTTP_SERVER, (1, 1), "list", "HIGH:!aNULL:!MD5",
        "Sets the enabled cipher suites of TLS 1.2, in OpenSSL's syntax. Only suites with ECDHE and AES-GCM or ChaCha20 are used. The suites of TLS \
        1.3 are not affected.",
        Apply::Level(|l, d, r| {
            l.tls.ciphers = ciphers::read(&d.args[0], "ssl_ciphers", r).map(|suites| (suites, d.args[0].span))
        })),
    once("ssl_prefer_server_ciphers", HTTP_SERVER, (1, 1), "on | off", "off",
        "Prefers the server's order of cipher suites to the client's.",
        Apply::Level(|l, d, r| l.tls.prefer_server_ciphers = r.flag(&d.args[0]))),
    once("ssl_session_cache", HTTP_SERVER, (1, 2), "off | none | builtin[:size] | shared:name:size", "none",
        "Caches TLS sessions for all workers. One megabyte holds 4,000 sessions.",
        Apply::Level(session_cache)),
    once("ssl_session_timeout", HTTP_SERVER, (1, 1), "time", "5m",
        "The time during which a session can be resumed.",
        Apply::Level(|l, d, r| l.tls.session_timeout = r.duration(&d.args[0]))),
    once("ssl_session_tickets", HTTP_SERVER, (1, 1), "on | off", "on",
        "Enables session tickets, with which clients resume sessions that the server does not store.",
        Apply::Level(|l, d, r| l.tls.session_tickets = r.flag(&d.args[0]))),
    often("ssl_session_ticket_key", HTTP_SERVER, (1, 1), "file", "",
        "Sets a file of 48 or 80 random bytes with the key for session tickets, so that several machines can resume each other's sessions. The first \
        key encrypts tickets; all keys decrypt them. By default, the process creates a key and replaces it every `ssl_session_timeout`.",
        Apply::Level(|l, d, r| {
            let (path, _) = pem_file(&d.args[0], "session ticket key", r);
            l.tls.ticket_keys.get_or_insert_default().push(path);
        })),
    once("ssl_ecdh_curve", HTTP_SERVER, (1, 1), "auto | name[:name …]", "auto",
        "Sets the groups for key exchange: X25519, prime256v1, secp384r1, X25519MLKEM768. Others are ignored with a warning. The first of the \
        client's groups that is in the list is used.",
        Apply::Level(|l, d, r| l.tls.groups = groups::read(&d.args[0], r))),
    once("ssl_reject_handshake", HTTP_SERVER, (1, 1), "on | off", "off",
        "Rejects handshakes for the names of this server with the alert `unrecognized_name`. The server needs no certificate.",
        Apply::Level(|l, d, r| l.tls.rejects = r.flag(&d.args[0]).map(|rejects| (rejects, d.span)))),
    once("ssl_stapling", HTTP_SERVER, (1, 1), "on | off", "off",
        "Sends an OCSP response in each handshake (OCSP stapling, RFC 6066 §8), either from `ssl_stapling_file` or from the responder specified in \
        the certificate. A response from the responder is fetched in the background, verified, sent until it expires, and renewed in time. This also applies to each \
        `$acme_certificate`.",
        Apply::Level(|l, d, r| l.tls.stapling = r.flag(&d.args[0]))),
    once("ssl_stapling_file", HTTP_SERVER, (1, 1), "file", "",
        "Sets a file with the OCSP response in DER format, which is used instead of fetching it. If there are several certificates, it applies to the \
        one that the response is about.",
        Apply::Level(|l, d, r| l.tls.stapled = Some(pem_file(&d.args[0], "OCSP response", r).0))),
    once("ssl_stapling_responder", HTTP_SERVER, (1, 1), "URL", "",
        "Sets the URL of the OCSP responder (`http://`), instead of the one specified in the certificate.",
        Apply::Level(|l, d, r| l.tls.responder = responder(&d.args[0], r))),
    idle("ssl_stapling_verify", HTTP_SERVER, (1, 1), "on | off",
        "Verifies OCSP responses.",
        "OCSP responses are always verified, with the issuer's certificate: the next one in the file of ssl_certificate, or one of \
        ssl_trusted_certificate"),
    once("ssl_certificate_compression", HTTP_SERVER, (1, 1), "on | off", "off",
        "Compresses certificates for TLS 1.3 clients that support it (RFC 8879), with brotli or zlib. Each certificate is compressed once.",
        Apply::Level(|l, d, r| l.tls.compresses_certificates = r.flag(&d.args[0]))),
    once("ssl_buffer_size", HTTP_SERVER, (1, 1), "size", "16k",
        "The maximum amount of a response in one TLS record. Small records arrive sooner over a slow network; large records need less CPU.",
        Apply::Level(|l, d, r| l.tls.record_size = record_size(&d.args[0], r))),
    idle("ssl_early_data", HTTP_SERVER, (1, 1), "on | off",
        "Accepts requests in the early data of TLS 1.3.",
        "an attacker can replay early data (RFC 8470); clients send the request after the handshake instead"),
    often("ssl_conf_command", HTTP_SERVER, (2, 2), "name value", "",
        "Sets an OpenSSL configuration command, which is applied after the other TLS directives. The commands are `Protocol`, `MinProtocol`, \
        `MaxProtocol`, `CipherString`, `Ciphersuites`, `Groups` (`Curves`, `ECDHParameters`), `Certificate` with `PrivateKey`, `NumTickets`, and the \
        `Options` `SessionTicket`, `ServerPreference`, `PrioritizeChaCha` and `TxCertificateCompression`. Other commands and options are reported; \
        those without effect are listed by `-t -v`. These directives are inherited only if the current level has none.",
        Apply::Level(|l, d, r| l.tls.commands.get_or_insert_default().read(d, r))),
    idle("ssl_dhparam", HTTP_SERVER, (1, 1), "file",
        "The parameters of DHE cipher suites.",
        "DHE suites are not supported; ECDHE suites need no parameters"),
];

pub(in crate::features) fn pem_file(word: &Word, what: &str, reading: &mut Reading<'_>) -> (PathBuf, Span) {
    // A file that cannot be used goes on as one, so that nothing else is reported for want of it.
    let path = reading.path_beside_main(word, PathUse::Certificate);
    if !reading.without_variables(word, "the name of a certificate") {
        return (path, word.span);
    }
    if ["data:", "engine:", "store:"].iter().any(|kind| word.text.starts_with(kind)) {
        reading
            .error(word.span, "nginx knows certificates that are not files, Millstream does not (yet)")
            .help("write the name of a PEM file");
        return (path, word.span);
    }
    let opened = files::open(&path).and_then(|file| file.metadata()).map(|about| about.is_file());
    let trouble = match opened {
        Ok(true) => None,
        Ok(false) => Some("it is not a file".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(trouble) = trouble {
        reading
            .error(word.span, format!("cannot load {what} \"{}\": {trouble}", path.display()))
            .help("write the name of a readable PEM file; a relative path is relative to the directory of the main file");
    }
    (path, word.span)
}

fn responder(word: &Word, reading: &mut Reading<'_>) -> Option<WebUrl> {
    let found = WebUrl::parse_plain(&word.text);
    if found.is_none() {
        reading
            .error(word.span, format!("invalid URL of an OCSP responder \"{}\"", word.text))
            .help("write a URL without TLS, as in http://ocsp.example.com/");
    }
    found
}

fn record_size(word: &Word, reading: &mut Reading<'_>) -> Option<usize> {
    let bytes = reading.size(word)?;
    if bytes < SMALLEST_RECORD {
        reading
            .error(word.span, format!("a TLS record of \"{}\" is too small", word.text))
            .help("write a size from 32 to 16k");
        return None;
    }
    // As in nginx what is more than a record holds is a full one.
    Some(usize::try_from(bytes).unwrap_or(LARGEST_RECORD).min(LARGEST_RECORD))
}

pub(in crate::features) fn key_log(directive: &Directive, reading: &mut Reading<'_>) -> Option<PathBuf> {
    let (name, word) = (&directive.name.text, &directive.args[0]);
    if !reading.without_variables(word, "the name of a key log") {
        return None;
    }
    reading
        .diagnostics
        .warning(directive.span, format!("{name}: anyone who can read this file can decrypt the connections"))
        .help("remove it unless you are debugging");
    Some(reading.named_path(word, &word.text, PathUse::Log))
}

/// The file is not checked here: a named pipe would be read once too often.
pub(in crate::features) fn password_file(word: &Word, reading: &mut Reading<'_>) -> Option<PathBuf> {
    reading
        .without_variables(word, "the name of a file of passwords")
        .then(|| reading.path_beside_main(word, PathUse::Certificate))
}

fn session_cache(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const PER_MEGABYTE: u64 = 4000;
    const SMALLEST_CACHE: u64 = 32 * 1024;
    let mut sessions = 0u64;
    for word in &directive.args {
        let mut pieces = word.text.splitn(3, ':');
        let kind = pieces.next().unwrap_or_default();
        match (kind, pieces.next(), pieces.next()) {
            ("off" | "none", None, None) => {}
            ("builtin", None, None) => sessions = sessions.max(20_480),
            ("builtin", Some(number), None) => {
                let number = reading.number(&Reading::part(word, number), 0, 1 << 32);
                sessions = sessions.max(number.unwrap_or(0));
            }
            ("shared", Some(name), Some(size)) if !name.is_empty() => {
                let Some(bytes) = reading.size(&Reading::part(word, size)) else { continue };
                if bytes < SMALLEST_CACHE {
                    reading
                        .error(word.span, format!("session cache \"{}\" is too small", word.text))
                        .help("write at least 32k; a megabyte holds 4,000 sessions");
                }
                sessions = sessions.max(bytes.saturating_mul(PER_MEGABYTE) / (1024 * 1024));
            }
            _ => {
                reading
                    .error(word.span, format!("invalid session cache \"{}\"", word.text))
                    .help("write off, none, builtin or shared:name:size, as in shared:SSL:10m");
            }
        }
    }
    level.tls.session_cache = Some(usize::try_from(sessions).unwrap_or(usize::MAX));
}
