//! Certificates by themselves: who issues them (`acme_issuer`), and which a server has (`acme_certificate`).
//!
//! Directives and defaults are those of nginx's ACME module. Nothing is asked of anybody here. Before: `acme/issuer`, the block; `acme/order`, the
//! certificate of a server; next: `declared/acme`, what comes of them; `millstream-acme`, which asks.

mod issuer;
mod order;

pub use issuer::{IssuerDraft, declare, settle};
pub use order::{certificate, check};

use super::context::{ACME_ISSUER as ISSUER, Context, HTTP, SERVER};
use super::{Apply, MANY, Row, often, once};
use crate::declared::Kind;
use crate::reading::{Reading, parameter};
use crate::tree::Directive;

/// The smallest zone that nginx takes, in bytes.
const SMALLEST_ZONE: u64 = 8 * 4096;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("acme_issuer", HTTP, (1, 1), "name { … }", "",
        "Defines a certificate authority that issues certificates by ACME (RFC 8555). Servers refer to it with `acme_certificate`.",
        Apply::Block(Context::AcmeIssuer)),
    once("uri", ISSUER, (1, 1), "URL", "",
        "Sets the URL of the authority's directory, such as `https://acme-v02.api.letsencrypt.org/directory`. It is required.",
        Apply::Issuer(issuer::uri)),
    once("account_key", ISSUER, (1, 1), "ecdsa[:256|384|521] | rsa[:2048|3072|4096] | file", "ecdsa:256",
        "Sets the type of the account key, which is created if there is none, or a PEM file with the key.",
        Apply::Issuer(issuer::account_key)),
    once("challenge", ISSUER, (1, 1), "http-01 | tls-alpn-01", "http-01",
        "Sets how control of a name is proved to the authority. With `http-01` (or `http`), the authority connects to port 80; while a challenge is open, every \
        listener without TLS responds to it, before any location, redirect or access rule. With `tls-alpn-01` (or `tls-alpn`, RFC 8737), the authority \
        connects to port 443.",
        Apply::Issuer(issuer::challenge)),
    once("common_name_in_csr", ISSUER, (1, 1), "on | off", "off",
        "Includes the first name, or without names the first address, as common name in certificate requests. Some authorities reject such requests.",
        Apply::Issuer(|i, d, r| i.common_name_in_csr = r.flag(&d.args[0]))),
    often("contact", ISSUER, (1, 1), "URL", "",
        "Sets how the authority can contact the account's owner. Without a scheme, this is an email address.",
        Apply::Issuer(issuer::contact)),
    once("external_account_key", ISSUER, (2, 2), "id file", "",
        "Sets the id and the key (base64url) of an existing account of the authority (RFC 8555 §7.3.4). Instead of a file, the key may be given as \
        `data:key`.",
        Apply::Issuer(issuer::external_account_key)),
    once("preferred_chain", ISSUER, (1, 1), "name", "",
        "If the authority offers several chains, selects the one whose topmost certificate was issued by this common name. By default, or if no chain \
        matches, the first one is used.",
        Apply::Issuer(|i, d, _| i.preferred_chain = Some(d.args[0].text.clone()))),
    once("profile", ISSUER, (1, 2), "name [require]", "",
        "Sets the profile of certificates. If the authority does not offer it, certificates are requested without a profile; with `require`, they are \
        not requested.",
        Apply::Issuer(issuer::profile)),
    once("ssl_trusted_certificate", ISSUER, (1, 1), "file", "",
        "A PEM file with the CA certificates that verify the authority's server, instead of those of the system.",
        Apply::Issuer(issuer::trusted)),
    once("ssl_verify", ISSUER, (1, 1), "on | off", "on",
        "Verifies the certificate of the authority's server.",
        Apply::Issuer(|i, d, r| i.verifies = r.flag(&d.args[0]))),
    once("state_path", ISSUER, (1, 1), "directory | off", "acme_name",
        "Sets the directory for the account and the certificates, which are kept across restarts. A relative path is relative to the prefix (`-p`). \
        The default is below the state directory that a service manager sets (`$STATE_DIRECTORY`), if any. The directory is created if it is \
        missing. It contains private keys and must not be readable by other users. With `off`, they are kept in memory only, and the rate limits of \
        authorities are soon reached.",
        Apply::Issuer(issuer::state_path)),
    once("accept_terms_of_service", ISSUER, (0, 0), "", "",
        "Agrees to the authority's terms of service. If the authority requires this and the directive is missing, the error log contains the link to \
        the terms.",
        Apply::Issuer(|i, _, _| i.accepts_terms = true)),
    once("acme_shared_zone", HTTP, (1, 1), "zone=name:size", "zone=ngx_acme_shared:256k",
        "Accepted for compatibility: workers share certificates and challenges without it. Only the syntax is checked.",
        Apply::Declare(shared_zone)),
    once("acme_certificate", SERVER, (1, MANY), "issuer [identifier …] [key=ecdsa:256|ecdsa:384|ecdsa:521|rsa:2048|rsa:3072|rsa:4096]", "",
        "Obtains a certificate from an `acme_issuer` for the listed names or addresses, by default for the `server_name`s of the server. \
        `.example.com` stands for www.example.com and example.com; other wildcards and regular expressions get no certificate. The certificate is \
        renewed when a third of its lifetime is left, or when the authority asks for it. It is used with `ssl_certificate $acme_certificate;` and \
        `ssl_certificate_key $acme_certificate_key;`; the two variables exist only in these directives.",
        Apply::Server(order::read)),
];

fn shared_zone(directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let zone = parameter(word).filter(|(name, _)| *name == "zone");
    let named =
        zone.as_ref().and_then(|(_, value)| value.text.split_once(':')).filter(|(name, _)| !name.is_empty());
    let Some((name, size)) = named else {
        reading
            .error(word.span, "\"acme_shared_zone\" must have \"zone\" parameter")
            .help("write zone=NAME:SIZE, as in zone=ngx_acme_shared:256k");
        return;
    };
    let size = Reading::part(word, size);
    if reading.size(&size).is_some_and(|bytes| bytes < SMALLEST_ZONE) {
        reading.error(word.span, format!("zone \"{name}\" is too small")).help("write at least 32k");
    }
    _ = reading.declared.declare(Kind::AcmeZone, name, directive.span);
}
