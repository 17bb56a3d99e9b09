//! `ssl_certificate_cache`: how long certificates whose names have variables are kept.
//!
//! Next: `millstream-net`'s `tls/evaluated`, which keeps them.

use std::time::Duration;

use crate::reading::{Reading, parameter};
use crate::suggest;
use crate::tree::Directive;

pub(crate) const SYNTAX: &str = "max=number [inactive=time] [valid=time] | off";

/// How certificates with variable names are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateCache {
    /// Certificates and keys at a time.
    pub max: usize,
    /// How long one is kept unused.
    pub inactive: Duration,
    /// How long its files are not checked again.
    pub valid: Duration,
}

/// `Some(None)` is `off`, `None` one that was reported.
pub(crate) fn read(directive: &Directive, reading: &mut Reading<'_>) -> Option<Option<CertificateCache>> {
    let name = &directive.name.text;
    let (mut max, mut inactive, mut valid) = (None, Duration::from_secs(10), Duration::from_secs(60));
    for word in &directive.args {
        match parameter(word) {
            _ if word.text == "off" && directive.args.len() == 1 => return Some(None),
            Some(("max", value)) => max = Some(reading.number(&value, 1, u64::from(u32::MAX))?),
            Some(("inactive", value)) => inactive = reading.duration(&value)?,
            Some(("valid", value)) => valid = reading.duration(&value)?,
            other => {
                let written = other.map_or(word.text.as_str(), |(name, _)| name);
                let help = suggest::did_you_mean(written, ["max", "inactive", "valid"]);
                reading
                    .error(word.span, format!("invalid \"{name}\" parameter \"{}\"", word.text))
                    .help(help.unwrap_or_else(|| "write max=1000 inactive=10s valid=60s, or off".to_owned()));
                return None;
            }
        }
    }
    let Some(max) = max else {
        reading
            .error(directive.span, format!("\"{name}\" must have the \"max\" parameter"))
            .help(format!("write {name} max=1000;"));
        return None;
    };
    Some(Some(CertificateCache { max: usize::try_from(max).unwrap_or(usize::MAX), inactive, valid }))
}
