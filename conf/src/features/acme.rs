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
        "An authority that issues certificates by ACME (RFC 8555). Servers name it with `acme_certificate`.",
        Apply::Block(Context::AcmeIssuer)),
    once("uri", ISSUER, (1, 1), "URL", "",
        "The directory of the authority's server, as in `https://acme-v02.api.letsencrypt.org/directory`. It must be written.",
        Apply::Issuer(issuer::uri)),
    once("account_key", ISSUER, (1, 1), "ecdsa[:256|384|521] | rsa[:2048|3072|4096] | file", "ecdsa:256",
        "The key of the account: the kind that is made where there is none yet, or a PEM file with one.",
        Apply::Issuer(issuer::account_key)),
    once("challenge", ISSUER, (1, 1), "http-01 | tls-alpn-01", "http-01",
        "How control of a name is proved to the authority. With `http-01` (or `http`), it connects to port 80: every listener without TLS responds \
        while a challenge is open, before any location, redirect or access rule. With `tls-alpn-01` (or `tls-alpn`, RFC 8737), it connects to port \
        443.",
        Apply::Issuer(issuer::challenge)),
    once("common_name_in_csr", ISSUER, (1, 1), "on | off", "off",
        "Whether the request for a certificate has its first name, else its first address, as common name too. Some authorities refuse such requests.",
        Apply::Issuer(|i, d, r| i.common_name_in_csr = r.flag(&d.args[0]))),
    often("contact", ISSUER, (1, 1), "URL", "",
        "How the authority can contact the owner of the account. Without a scheme, this is an email address.",
        Apply::Issuer(issuer::contact)),
    once("external_account_key", ISSUER, (2, 2), "id file", "",
        "The id and the key (base64url) of an account that the authority knows already (RFC 8555 §7.3.4). `data:` and the key itself may stand in place of the file.",
        Apply::Issuer(issuer::external_account_key)),
    once("preferred_chain", ISSUER, (1, 1), "name", "",
        "Of several chains that the authority offers, the one whose topmost certificate was issued by this common name. Where none was, the first.",
        Apply::Issuer(|i, d, _| i.preferred_chain = Some(d.args[0].text.clone()))),
    once("profile", ISSUER, (1, 2), "name [require]", "",
        "The profile that certificates are to have. With `require` none is asked for where the authority does not offer it; else it is left out.",
        Apply::Issuer(issuer::profile)),
    once("ssl_trusted_certificate", ISSUER, (1, 1), "file", "",
        "A PEM file with the authorities that the server of this one is judged by, in place of the system's.",
        Apply::Issuer(issuer::trusted)),
    once("ssl_verify", ISSUER, (1, 1), "on | off", "on",
        "Whether the certificate of the authority's server is verified.",
        Apply::Issuer(|i, d, r| i.verifies = r.flag(&d.args[0]))),
    once("state_path", ISSUER, (1, 1), "directory | off", "acme_name",
        "The directory for the account and the certificates, which survive a restart there. A relative path is relative to the prefix (`-p`). The \
        default is below the state directory that a service manager sets (`$STATE_DIRECTORY`), if any. The directory is created if it is missing. It \
        contains keys: no other user may read it. With `off`, they are kept in memory only, and the rate limits of authorities are soon reached.",
        Apply::Issuer(issuer::state_path)),
    once("accept_terms_of_service", ISSUER, (0, 0), "", "",
        "Agrees to the authority's terms of service. If the authority requires it and this directive is missing, the error log contains the link to \
        the terms.",
        Apply::Issuer(|i, _, _| i.accepts_terms = true)),
    once("acme_shared_zone", HTTP, (1, 1), "zone=name:size", "zone=ngx_acme_shared:256k",
        "nginx's memory for certificates and challenges. All workers share them with or without it, so only its form is looked at.",
        Apply::Declare(shared_zone)),
    once("acme_certificate", SERVER, (1, MANY), "issuer [identifier …] [key=ecdsa:256|ecdsa:384|ecdsa:521|rsa:2048|rsa:3072|rsa:4096]", "",
        "A certificate of an `acme_issuer` for the names (or addresses) that follow, or for the `server_name`s of the server; `.example.com` stands \
        for www.example.com and example.com; other wildcards and regular expressions get no certificate. It is renewed when a third of its lifetime \
        is left, or when the authority asks for it. `ssl_certificate $acme_certificate;` with `ssl_certificate_key $acme_certificate_key;` uses it; \
        the two variables exist in these directives only.",
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
