//! `open_file_cache` and its family: files that stay open between requests.
//!
//! A level takes the cache of the level above as it is, so both share it. Next: `millstream-server`'s `open_files`, which keeps them.

use std::time::Duration;

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::templates::without_templates;
use super::{Apply, Level, Row, idle, once};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::tree::Directive;

settings! {
    pub struct OpenFileCache, OpenFileCacheLevel(place, reading) {
        /// `None` = off.
        kept: Option<KeptFiles> = None,
        /// `open_file_cache_valid`: how long what is known of a file is not checked again.
        valid: Duration = Duration::from_secs(60),
        /// Uses of a file before it stays open.
        min_uses: u64 = 1,
        errors: bool = false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptFiles {
    /// Files known at a time.
    pub max: usize,
    /// How long a file stays known without being used.
    pub inactive: Duration,
    /// Also its identity.
    pub span: Span,
}

without_templates!(KeptFiles);

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("open_file_cache", HTTP_SERVER_LOCATION, (1, 2), "max=number [inactive=time] | off", "off",
        "Keeps up to `max` static files open between requests, for each worker. A file that is not requested for `inactive` (60s) is closed. All \
        caches together keep open at most an eighth of the limit on open files. Cached responses do not need this directive.",
        Apply::Level(kept)),
    once("open_file_cache_errors", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Caches failures to open a file, too.",
        Apply::Level(|l, d, r| l.open_file_cache.errors = r.flag(&d.args[0]))),
    idle("open_file_cache_events", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Uses kernel events to detect changes of open files.",
        "files are checked after open_file_cache_valid"),
    once("open_file_cache_min_uses", HTTP_SERVER_LOCATION, (1, 1), "number", "1",
        "The number of requests within `inactive` after which a file is kept open.",
        Apply::Level(|l, d, r| l.open_file_cache.min_uses = r.number(&d.args[0], 1, u64::from(u32::MAX)))),
    once("open_file_cache_valid", HTTP_SERVER_LOCATION, (1, 1), "time", "60s",
        "The time after which a cached file is checked for changes.",
        Apply::Level(|l, d, r| l.open_file_cache.valid = r.duration(&d.args[0]))),
];

fn kept(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (mut max, mut inactive) = (None, Some(Duration::from_secs(60)));
    for word in &directive.args {
        match parameter(word) {
            _ if word.text == "off" && directive.args.len() == 1 => {
                level.open_file_cache.kept = Some(None);
                return;
            }
            Some(("max", value)) => max = reading.number(&value, 1, u64::from(u32::MAX)),
            Some(("inactive", value)) => inactive = reading.duration(&value),
            other => {
                let name = other.map_or(word.text.as_str(), |(name, _)| name);
                let help = suggest::did_you_mean(name, ["max", "inactive"]);
                reading
                    .error(word.span, format!("invalid \"open_file_cache\" parameter \"{}\"", word.text))
                    .help(help.unwrap_or_else(|| "write max=1000 inactive=60s, or off".to_owned()));
                return;
            }
        }
    }
    if !directive.args.iter().any(|word| word.text.starts_with("max=")) {
        reading
            .error(directive.span, "\"open_file_cache\" must have the \"max\" parameter")
            .help("write open_file_cache max=1000;");
    }
    let (Some(max), Some(inactive)) = (max, inactive) else { return };
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    level.open_file_cache.kept = Some(Some(KeptFiles { max, inactive, span: directive.span }));
}
