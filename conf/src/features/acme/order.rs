//! `acme_certificate`: what a server's certificate is for.
//!
//! Servers that ask for the same share one. Before: `acme/issuer`; next: `declared/acme`.

use super::issuer::key_kind;
use crate::declared::acme::{
    AcmeCertificate, AcmeCertificateId, AcmeIdentifier, AcmeIssuerId, AcmeOrder, KeyKind,
};
use crate::features::listen::{ServerDraft, ServerName};
use crate::features::tls::{PemSource, Tls};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::tree::Directive;
use std::net::IpAddr;

/// Most names of one certificate; authorities accept a hundred.
const MOST_IDENTIFIERS: usize = 100;

pub(super) fn read(server: &mut ServerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let issuer = directive.args[0].clone();
    let mut draft = AcmeOrder {
        issuer,
        identifiers: Vec::new(),
        key: KeyKind::default(),
        span: directive.span,
        names_any: false,
    };
    for word in &directive.args[1..] {
        if let Some(("key", value)) = parameter(word) {
            draft.key = key_kind(&value, reading).unwrap_or_default();
            continue;
        }
        draft.names_any = true;
        match identifiers(&word.text) {
            Some(found) => found.into_iter().for_each(|one| push(&mut draft.identifiers, one)),
            None => {
                reading
                    .error(word.span, format!("\"acme_certificate\": invalid server name \"{}\"", word.text))
                    .help("write names such as www.example.com or .example.com, or addresses; a certificate for all names needs another challenge");
            }
        }
    }
    server.acme = Some(draft);
}

/// `None` if it asks for none, or an error was reported.
pub fn certificate(draft: &ServerDraft, reading: &mut Reading<'_>) -> Option<AcmeCertificateId> {
    let order = draft.acme.as_ref()?;
    let issuers = &reading.declared.acme_issuers;
    let Some(issuer) = issuers.iter().position(|issuer| issuer.name == order.issuer.text) else {
        let names: Vec<&str> = issuers.iter().map(|issuer| issuer.name.as_str()).collect();
        let help = suggest::did_you_mean(&order.issuer.text, names)
            .unwrap_or_else(|| format!("write acme_issuer {} {{ … }} in the http block", order.issuer.text));
        reading.error(order.issuer.span, format!("issuer \"{}\" is missing", order.issuer.text)).help(help);
        return None;
    };
    let identifiers = match order.names_any {
        true => order.identifiers.clone(),
        false => names_of(draft, reading)?,
    };
    if identifiers.is_empty() {
        if !order.names_any {
            reading
                .error(order.span, "\"acme_certificate\": no identifiers found in \"server_name\"")
                .help("write server_name with the names of the certificate, or name them here");
        }
        return None;
    }
    if identifiers.len() > MOST_IDENTIFIERS {
        reading
            .error(order.span, format!("\"acme_certificate\" has {} identifiers", identifiers.len()))
            .help(format!("write at most {MOST_IDENTIFIERS}, and put the others into another server"));
        return None;
    }
    let wanted = AcmeCertificate { issuer: AcmeIssuerId(issuer as u32), identifiers, key: order.key };
    let known = &mut reading.declared.acme_certificates;
    let at = known.iter().position(|known| *known == wanted).unwrap_or_else(|| {
        known.push(wanted);
        known.len() - 1
    });
    Some(AcmeCertificateId(at as u32))
}

pub fn check(draft: &ServerDraft, tls: Option<&Tls>, reading: &mut Reading<'_>) {
    let pairs = || tls.into_iter().flat_map(|tls| tls.certificates.iter().map(|pair| (pair, tls.span)));
    for ((certificate, key), span) in pairs() {
        if (*certificate == PemSource::Issued) != (*key == PemSource::Issued) {
            reading.error(span, "an issued certificate requires the key that it was issued for").help(
                "write ssl_certificate $acme_certificate; and ssl_certificate_key $acme_certificate_key;",
            );
        }
    }
    let uses = pairs().any(|((certificate, _), _)| *certificate == PemSource::Issued);
    match &draft.acme {
        Some(order) if !uses => {
            reading.diagnostics.warning(order.span, "this certificate is issued, but not used").help(
                "write ssl_certificate $acme_certificate; and ssl_certificate_key $acme_certificate_key;",
            );
        }
        None if uses && draft.listens.iter().any(|listen| listen.ssl) => {
            reading
                .diagnostics
                .warning(draft.span, "no \"acme_certificate\" is defined for the $acme_certificate of this server")
                .help("write acme_certificate with the name of an acme_issuer; until then its handshakes are refused");
        }
        _ => {}
    }
}

/// `None` after an error. As in nginx, an expression gets a warning, and misplaced asterisks are an error.
fn names_of(draft: &ServerDraft, reading: &mut Reading<'_>) -> Option<Vec<AcmeIdentifier>> {
    let (mut found, mut all) = (Vec::new(), true);
    for (name, place) in &draft.names {
        match name {
            ServerName::Exact(name) if name.is_empty() => {}
            ServerName::Exact(name) => match identifiers(name) {
                Some(exact) => exact.into_iter().for_each(|one| push(&mut found, one)),
                None => all = refuse(name, *place, reading),
            },
            // `.example.com` is this and the exact name, which stands before it.
            ServerName::LeadingWildcard(tail) if is_dotted(tail, draft) => {
                let bare = AcmeIdentifier::Dns(tail[1..].to_owned());
                let at = found.iter().position(|known| *known == bare).unwrap_or(found.len());
                let with = AcmeIdentifier::Dns(format!("www{tail}"));
                if !found.contains(&with) {
                    found.insert(at, with);
                }
            }
            ServerName::LeadingWildcard(tail) => all = refuse(&format!("*{tail}"), *place, reading),
            ServerName::TrailingWildcard(head) => all = refuse(&format!("{head}*"), *place, reading),
            ServerName::Regex(_) => {
                reading
                    .diagnostics
                    .warning(*place, "\"acme_certificate\": unsupported regular expression in server_name")
                    .help("its names are not in the certificate; list the names to include");
            }
        }
    }
    all.then_some(found)
}

fn is_dotted(tail: &str, draft: &ServerDraft) -> bool {
    let place = draft.names.iter().find_map(|(name, place)| match name {
        ServerName::LeadingWildcard(known) if known == tail => Some(*place),
        _ => None,
    });
    let exact = |(name, at): &(ServerName, Span)| {
        matches!(name, ServerName::Exact(name) if *name == tail[1..]) && Some(*at) == place
    };
    draft.names.iter().any(exact)
}

fn refuse(name: &str, span: Span, reading: &mut Reading<'_>) -> bool {
    reading
        .error(span, format!("\"acme_certificate\": invalid server name \"{name}\""))
        .help("list the names of the certificate after the issuer; wildcards are not supported");
    false
}

fn push(identifiers: &mut Vec<AcmeIdentifier>, one: AcmeIdentifier) {
    if !identifiers.contains(&one) {
        identifiers.push(one);
    }
}

/// `None` if no certificate can be issued for it.
fn identifiers(text: &str) -> Option<Vec<AcmeIdentifier>> {
    let address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = address.parse::<IpAddr>() {
        return Some(vec![AcmeIdentifier::Ip(address)]);
    }
    let bare = text.strip_prefix('.').unwrap_or(text);
    let lower = bare.to_ascii_lowercase();
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    if lower.len() > 253 || !lower.split('.').all(is_label) {
        return None;
    }
    let with = text.starts_with('.').then(|| AcmeIdentifier::Dns(format!("www.{lower}")));
    Some(with.into_iter().chain([AcmeIdentifier::Dns(lower)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_name_two_names_or_an_address() {
        for (text, expected) in [
            ("Example.com", "example.com"),
            (".example.com", "www.example.com example.com"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8::1]", "2001:db8::1"),
            ("2001:db8:0::1", "2001:db8::1"),
            ("*.example.com", ""),
            ("www.example.*", ""),
            ("a..b", ""),
            ("example.com.", ""),
            ("~^www", ""),
            ("m\u{fc}nchen.de", ""),
        ] {
            let found = identifiers(text).unwrap_or_default();
            let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(shown.join(" "), expected, "{text}");
        }
    }
}
