//! `ssl_protocols` and `proxy_ssl_protocols`: the versions of TLS that are offered.
//!
//! What is unsafe is dropped with a warning that names it. Next: `conf_command`, which leaves fewer of them.

use crate::reading::Reading;
use crate::tree::Directive;

/// Older versions are dropped at load with a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// With those of earlier directives of the same name; `None` after its error was reported.
pub(in crate::features) fn versions(
    directive: &Directive,
    before: Option<Vec<TlsVersion>>,
    reading: &mut Reading<'_>,
) -> Option<Vec<TlsVersion>> {
    let name = &directive.name.text;
    const WORDS: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let mut offered = before.unwrap_or_default();
    let mut dropped = Vec::new();
    let mut misspelt = false;
    for word in &directive.args {
        match reading.one_of(word, &WORDS) {
            Some(4) => offered.push(TlsVersion::Tls12),
            Some(5) => offered.push(TlsVersion::Tls13),
            Some(old) => dropped.push(WORDS[old]),
            None => misspelt = true,
        }
    }
    offered.sort();
    offered.dedup();
    if offered.is_empty() && !misspelt {
        reading
            .error(directive.span, format!("{name} leaves no secure version"))
            .help(format!("write {name} TLSv1.2 TLSv1.3;"));
        return None;
    }
    if !dropped.is_empty() {
        let verb = if dropped.len() == 1 { "is" } else { "are" };
        reading
            .diagnostics
            .warning(directive.span, format!("{} {verb} not offered (RFC 8996)", dropped.join(", ")))
            .help(format!("write {name} TLSv1.2 TLSv1.3;"));
    }
    (!offered.is_empty()).then_some(offered)
}
