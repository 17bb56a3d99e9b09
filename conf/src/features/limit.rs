//! What `limit_req` and `limit_conn` share: how a zone is declared, and what becomes of a request that is too much.
//!
//! Next: `limit_req`, `limit_conn`.

use super::level::settings;
use super::logs::LogLevel;
use crate::declared::Kind;
use crate::declared::limit_zone::{LimitSync, LimitZone};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::tree::{Directive, Word};

/// In bytes, as in nginx.
const LEAST: u64 = 32 * 1024;

settings! {
    pub struct TooMuch, TooMuchLevel(place, reading) {
        status: u16 = 503,
        log_level: LogLevel = LogLevel::Error,
        /// Counted and logged, but let in.
        dry_run: bool = false,
    }
}

impl TooMuchLevel {
    pub(super) fn status(&mut self, directive: &Directive, reading: &mut Reading<'_>) {
        self.status = reading.number(&directive.args[0], 400, 599).map(|status| status as u16);
    }

    pub(super) fn log_level(&mut self, directive: &Directive, reading: &mut Reading<'_>) {
        const LEVELS: [LogLevel; 4] = [LogLevel::Info, LogLevel::Notice, LogLevel::Warn, LogLevel::Error];
        let level = reading.one_of(&directive.args[0], &["info", "notice", "warn", "error"]);
        self.log_level = level.map(|at| LEVELS[at]);
    }

    pub(super) fn dry_run(&mut self, directive: &Directive, reading: &mut Reading<'_>) {
        self.dry_run = reading.flag(&directive.args[0]);
    }
}

/// `more` takes further parameters, which begin as `others`, and returns whether it knows one.
pub(super) fn zone(
    kind: Kind,
    directive: &Directive,
    reading: &mut Reading<'_>,
    others: &[&str],
    mut more: impl FnMut(&str, &Word, &mut Reading<'_>) -> bool,
) -> Option<LimitZone> {
    let key = reading.template(&directive.args[0]);
    let (mut named, mut sync, mut cluster) = (None, None, None);
    let mut is_whole = true;
    for word in &directive.args[1..] {
        match parameter(word) {
            None if word.text == "sync" => sync = Some((word.span, false)),
            Some(("sync", value)) => {
                let exact = reading.one_of(&value, &["exact"]);
                is_whole &= exact.is_some();
                sync = exact.map(|_| (word.span, true));
            }
            Some(("cluster", value)) => cluster = Some((value.text.clone(), value.span)),
            Some(("zone", value)) => {
                named = name_and_size(&value, reading);
                is_whole &= named.is_some();
            }
            Some((name, value)) if more(name, &value, reading) => {}
            _ => {
                is_whole = false;
                invalid(word, &[&["zone="], others, &["sync", "sync=exact", "cluster="]].concat(), reading);
            }
        }
    }
    let sync = is_whole.then(|| synced(sync, cluster, reading)).flatten();
    let directive_name = directive.name.text.as_str();
    let Some((name, size)) = named else {
        if is_whole {
            must_have_zone(directive, "zone=one:10m", reading);
        }
        return None;
    };
    let message = format!("{directive_name} \"{name}\" is already bound to another key");
    reading.declare(kind, &name, directive.span, message).then_some(LimitZone {
        name,
        span: directive.span,
        key,
        size,
        sync,
    })
}

/// `sync` counts with the other nodes of a cluster.
fn synced(
    sync: Option<(Span, bool)>,
    cluster: Option<(String, Span)>,
    reading: &mut Reading<'_>,
) -> Option<LimitSync> {
    match (sync, cluster) {
        (Some((span, is_exact)), None) => Some(LimitSync { span, is_exact, cluster: String::new() }),
        (Some((_, is_exact)), Some((cluster, span))) => Some(LimitSync { span, is_exact, cluster }),
        (None, Some((_, span))) => {
            reading
                .error(span, "\"cluster\" requires \"sync\"")
                .help("add sync, or sync=exact to have the engine decide on each request");
            None
        }
        (None, None) => None,
    }
}

pub(super) fn invalid(word: &Word, known: &[&str], reading: &mut Reading<'_>) {
    let help = suggest::did_you_mean(&word.text, known.iter().copied())
        .unwrap_or_else(|| format!("the parameters are {}", known.join(", ")));
    reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
}

pub(super) fn must_have_zone(directive: &Directive, such_as: &str, reading: &mut Reading<'_>) {
    let name = directive.name.text.as_str();
    reading
        .error(directive.span, format!("\"{name}\" must have \"zone\" parameter"))
        .help(format!("add {such_as}"));
}

pub(super) fn unknown_zone<'n>(
    word: &Word,
    name: &str,
    directive: &str,
    known: impl Iterator<Item = &'n str>,
    reading: &mut Reading<'_>,
) {
    let help = suggest::did_you_mean(name, known).unwrap_or_else(|| {
        format!("write {directive} $binary_remote_addr zone={name}:10m … in the http block")
    });
    reading.error(word.span, format!("unknown zone \"{name}\", no {directive} declares it")).help(help);
}

fn name_and_size(word: &Word, reading: &mut Reading<'_>) -> Option<(String, u64)> {
    let Some((name, size)) = word.text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
        reading
            .error(word.span, format!("invalid zone size \"{}\"", word.text))
            .help("write a name and a size, as in zone=one:10m");
        return None;
    };
    let bytes = reading.size(&Reading::part(word, size))?;
    if bytes < LEAST {
        reading
            .error(word.span, format!("zone \"{name}\" is too small"))
            .help("write at least 32k; a megabyte holds 8,000 keys");
        return None;
    }
    Some((name.to_owned(), bytes))
}
