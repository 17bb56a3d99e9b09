//! Directives of the access and error logs.
//!
//! Every file is in the model once, however often it is named; those who name it must agree on its buffering.
//! Next: `millstream-telemetry`'s `log_writer`, which writes them.

mod formats;
mod syslog;

pub use formats::declare_combined;

use std::sync::Arc;
use std::time::Duration;

use formats::{format, log_format};

use super::context::{HTTP, HTTP_SERVER_LOCATION, UP_TO_EXCEPT, UP_TO_IF};
use super::level::level;
use super::templates::{Templates, record, without_templates};
use super::{Apply, Feature, MANY, Place, Row, often, once};
use crate::declared::log::{KeptLogs, LogFile, LogFileId, LogFormat, LogGroupId, LogTarget, MOST_KEPT};
use crate::files::{self, Access};
use crate::parts::PathUse;
use crate::reading::{Reading, parameter};
use crate::suggest;
use crate::template::{self, Template};
use crate::tree::{Directive, Word};

/// Makes the lines of an error log JSON objects, as with the access log.
const JSON: &str = "json";

/// Levels of the error log, most severe first, as syslog orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    Emerg,
    Alert,
    Crit,
    Error,
    Warn,
    Notice,
    Info,
    Debug,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorForm {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLog {
    pub target: LogTarget,
    /// The least severe level that is written; default `error`.
    pub level: LogLevel,
    pub form: ErrorForm,
}

record! {
    pub struct AccessLog {
        pub place: LogPlace,
        pub format: Arc<LogFormat>,
        /// Nothing is logged if it evaluates to empty or `0`.
        pub condition: Option<Template>,
    }
}

#[derive(Debug, Clone)]
pub enum LogPlace {
    File(LogFileId),
    Named(Template),
}

impl Templates for LogPlace {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        if let LogPlace::Named(path) = self {
            all.push(path);
        }
    }
}

without_templates!(ErrorLog);

record! {
    pub struct Logs {
        /// Empty = off.
        pub access: Arc<[AccessLog]>,
        /// The group of files with variable names; `None` if there are none.
        pub group: Option<LogGroupId>,
        pub subrequests: bool,
        /// Never empty.
        pub error: Arc<[ErrorLog]>,
    }
}

level! {
    pub struct LogsLevel {
        /// The inner `None` is `off`, which overrides all others of the level.
        access: Option<Vec<AccessLog>>,
        /// The inner `None` is `off`.
        kept: Option<KeptLogs>,
        subrequests: bool,
        error: Vec<ErrorLog>,
    }
}

impl LogsLevel {
    /// Sets nginx's defaults if the http block writes none; `main` are the error logs of the level above.
    pub fn default_logs(&mut self, main: &[ErrorLog], reading: &mut Reading<'_>) {
        self.error.get_or_insert_with(|| main.to_vec());
        if self.access.is_some() {
            return;
        }
        let path = reading.path("logs/access.log");
        files::name(&path, Access::Append(0));
        let target = LogTarget::File(path);
        let file = LogFile { target, buffer: None, flush: None, gzip: None };
        let files = &mut reading.declared.log_files;
        let index = files.iter().position(|known| known.target == file.target).unwrap_or_else(|| {
            files.push(file);
            files.len() - 1
        });
        let format = reading.declared.log_formats[0].clone();
        let place = LogPlace::File(LogFileId(index as u32));
        self.access = Some(Some(vec![AccessLog { place, format, condition: None }]));
    }
}

impl Feature for LogsLevel {
    type Settings = Logs;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, reading: &mut Reading<'_>) -> Logs {
        let access = self.access.clone().flatten().unwrap_or_default();
        let is_named = access.iter().any(|log| matches!(log.place, LogPlace::Named(_)));
        Logs {
            group: is_named.then(|| group(self.kept.flatten(), reading)),
            access: access.into(),
            subrequests: self.subrequests.unwrap_or(false),
            error: self.error.clone().unwrap_or_default().into(),
        }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("log_format", HTTP, (2, MANY), "name [escape=default|json|none] string …", "combined \"…\"",
        "Defines a format for access logs. Predefined are `combined`, as in nginx, and `json`, with one object per line.",
        Apply::Declare(log_format)),
    often("access_log", UP_TO_IF.or(UP_TO_EXCEPT), (1, MANY),
        "path | syslog:server=address[,parameter=value] [format [buffer=size] [gzip[=level]] [flush=time] [if=condition]] | off", "logs/access.log combined",
        "Sets the access log. `buffer` buffers lines, `flush` limits how long, and `gzip` compresses the file. With `if`, only requests for which the \
        condition is neither empty nor `0` are logged. The path may contain variables. Such a file is opened for each line with the rights of \
        `user`, unless `open_log_file_cache` keeps it open; it is not buffered, and not created if the request's root directory does not exist. \
        `syslog:` sends each line to a log service, over UDP or to a Unix socket (`server=unix:/dev/log`), with the parameters `facility=` (local7), \
        `severity=` (info), `tag=` (nginx) and `nohostname`. These directives are inherited only if the current level has none. If one of them is \
        `off`, nothing is logged.",
        Apply::Level(access_log)),
    often("error_log", HTTP_SERVER_LOCATION, (1, 3), "file | stderr | syslog:server=address[,parameter=value] [level] [json]", "logs/error.log error",
        "Sets the error log and the minimum level of its messages: debug, info, notice, warn, error, crit, alert or emerg. `syslog:` has the \
        parameters of `access_log`; the severity of a line is its level. With `json`, each line is an object with time, level, pid, tid, connection, \
        message and, for a request, client, server, request, subrequest, upstream, host and referrer, as far as known. Secrets in URLs are masked \
        (`token=***`).",
        Apply::Level(|l, d, r| {
            if let Some(log) = error_log(d, r) {
                l.logs.error.get_or_insert_default().push(log);
            }
        })),
    once("open_log_file_cache", HTTP_SERVER_LOCATION, (1, 4),
        "max=number [inactive=time] [min_uses=number] [valid=time] | off", "off",
        "Keeps open at most `max` (up to 1024) log files whose paths contain variables. A file is kept after `min_uses` (1) lines, and closed if it \
        was not used for `inactive` (10s). Every `valid` (60s), its name is checked. A reload and `USR1` close all files.",
        Apply::Level(kept)),
    once("log_subrequest", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Logs subrequests (`auth_request`, `add_after_body`) in the access log of their location.",
        Apply::Level(|l, d, r| l.logs.subrequests = r.flag(&d.args[0]))),
];

pub(super) fn error_log(directive: &Directive, reading: &mut Reading<'_>) -> Option<ErrorLog> {
    const LEVELS: [(&str, LogLevel); 8] = [
        ("emerg", LogLevel::Emerg),
        ("alert", LogLevel::Alert),
        ("crit", LogLevel::Crit),
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("notice", LogLevel::Notice),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
    ];
    let (form, words) = match directive.args.split_last() {
        Some((last, words)) if last.text == JSON && !words.is_empty() => (ErrorForm::Json, words),
        _ => (ErrorForm::Text, &*directive.args),
    };
    if let Some(word) = words.get(2) {
        reading.not_one_of(word, &[JSON]);
        return None;
    }
    let level = match words.get(1) {
        Some(word) => reading.choice(word, &LEVELS)?,
        None => LogLevel::Error,
    };
    let word = &directive.args[0];
    let target = match word.text.as_str() {
        "stderr" => LogTarget::Stderr,
        text if text.starts_with(syslog::PREFIX) => LogTarget::Syslog(syslog::read(word, reading)?),
        text if text.starts_with("memory:") => {
            reading
                .error(word.span, "nginx knows logs to \"memory:\", Millstream does not")
                .help("write a file; the dashboard shows the last errors");
            return None;
        }
        path => LogTarget::File(reading.named_path(word, path, PathUse::Log)),
    };
    Some(ErrorLog { target, level, form })
}

#[derive(Default)]
struct Parameters {
    buffer: Option<usize>,
    flush: Option<Duration>,
    gzip: Option<u32>,
    condition: Option<Template>,
}

fn access_log(level: &mut super::Level, directive: &Directive, reading: &mut Reading<'_>) {
    let path = &directive.args[0];
    let logs = level.logs.access.get_or_insert_with(|| Some(Vec::new()));
    if path.text == "off" {
        *logs = None;
        if let Some(word) = directive.args.get(1) {
            reading.error(word.span, "\"access_log off\" takes no parameters").help("write access_log off;");
        }
        return;
    }
    let Some(format) = format(directive, reading) else { return };
    let Some(parameters) = parameters(directive.args.get(2..).unwrap_or_default(), reading) else { return };
    if parameters.flush.is_some() && parameters.buffer.is_none() {
        reading
            .error(directive.span, format!("no buffer is defined for access_log \"{}\"", path.text))
            .help("flush= needs buffer=, as in buffer=64k flush=10s");
        return;
    }
    let is_service = path.text.starts_with(syslog::PREFIX);
    if is_service && parameters.buffer.is_some() {
        reading.error(path.span, "logs to syslog cannot be buffered").help("remove buffer=, flush= and gzip");
        return;
    }
    if !is_service && !template::is_literal(&path.text) {
        if parameters.buffer.is_some() {
            reading
                .error(path.span, "buffered logs cannot have variables in name")
                .help("remove buffer=, flush= and gzip, or write the path itself");
            return;
        }
        let full = reading.named_path(path, &path.text, PathUse::Log);
        let place = LogPlace::Named(reading.template(&Reading::part(path, full.to_string_lossy())));
        if let Some(logs) = logs {
            logs.push(AccessLog { place, format, condition: parameters.condition });
        }
        return;
    }
    let target = if is_service {
        let Some(syslog) = syslog::read(path, reading) else { return };
        LogTarget::Syslog(syslog)
    } else {
        LogTarget::File(reading.named_path(path, &path.text, PathUse::Log))
    };
    let file = LogFile { target, buffer: parameters.buffer, flush: parameters.flush, gzip: parameters.gzip };
    if let Some(file) = log_file(file, path, reading)
        && let Some(logs) = logs
    {
        logs.push(AccessLog { place: LogPlace::File(file), format, condition: parameters.condition });
    }
}

fn group(kept: Option<KeptLogs>, reading: &mut Reading<'_>) -> LogGroupId {
    let groups = &mut reading.declared.log_groups;
    let index = groups.iter().position(|known| *known == kept).unwrap_or_else(|| {
        groups.push(kept);
        groups.len() - 1
    });
    LogGroupId(index as u32)
}

fn kept(level: &mut super::Level, directive: &Directive, reading: &mut Reading<'_>) {
    if directive.args[0].text == "off" {
        if let Some(word) = directive.args.get(1) {
            reading
                .error(word.span, "\"open_log_file_cache off\" takes no parameters")
                .help("leave them out");
        }
        level.logs.kept = Some(None);
        return;
    }
    let mut kept = KeptLogs {
        max: 0,
        inactive: Duration::from_secs(10),
        min_uses: 1,
        valid: Duration::from_secs(60),
        span: directive.span,
    };
    for word in &directive.args {
        match parameter(word) {
            Some(("max", value)) => {
                let Some(max) = reading.number(&value, 1, u64::from(u32::MAX)) else { return };
                kept.max = usize::try_from(max).unwrap_or(MOST_KEPT).min(MOST_KEPT);
            }
            Some(("inactive", value)) => kept.inactive = reading.duration(&value).unwrap_or(kept.inactive),
            Some(("min_uses", value)) => {
                kept.min_uses = reading.number(&value, 1, u64::from(u32::MAX)).unwrap_or(kept.min_uses);
            }
            Some(("valid", value)) => kept.valid = reading.duration(&value).unwrap_or(kept.valid),
            other => {
                let name = other.map_or(word.text.as_str(), |(name, _)| name);
                let help = suggest::did_you_mean(name, ["max", "inactive", "min_uses", "valid"]);
                reading
                    .error(word.span, format!("invalid \"open_log_file_cache\" parameter \"{}\"", word.text))
                    .help(help.unwrap_or_else(|| {
                        "write max=1000 inactive=20s valid=1m min_uses=2, or off".to_owned()
                    }));
                return;
            }
        }
    }
    if kept.max == 0 {
        reading
            .error(directive.span, "\"open_log_file_cache\" must have the \"max\" parameter")
            .help("write open_log_file_cache max=1000;");
        return;
    }
    level.logs.kept = Some(Some(kept));
}

fn parameters(words: &[Word], reading: &mut Reading<'_>) -> Option<Parameters> {
    let mut found = Parameters::default();
    let mut whole = true;
    for word in words {
        match parameter(word) {
            Some(("buffer", size)) => {
                found.buffer = reading.memory_size(&size);
                whole &= positive(found.buffer.map(|size| size == 0), "buffer size", word, reading);
            }
            Some(("flush", time)) => {
                found.flush = reading.duration(&time);
                whole &= positive(found.flush.map(|time| time.is_zero()), "flush time", word, reading);
            }
            Some(("gzip", level)) => found.gzip = reading.number(&level, 1, 9).map(|level| level as u32),
            Some(("if", condition)) => found.condition = Some(reading.template(&condition)),
            None if word.text == "gzip" => found.gzip = Some(1),
            _ => {
                whole = false;
                reading
                    .error(word.span, format!("invalid parameter \"{}\"", word.text))
                    .help("the parameters are buffer=size, flush=time, gzip[=level] and if=condition");
            }
        }
    }
    if found.gzip.is_some() && found.buffer.is_none() {
        // Compressed logs are buffered in nginx too, with this size where none is written.
        found.buffer = Some(64 * 1024);
    }
    whole.then_some(found)
}

/// Zero is reported.
fn positive(is_zero: Option<bool>, what: &str, word: &Word, reading: &mut Reading<'_>) -> bool {
    if is_zero == Some(true) {
        reading
            .error(word.span, format!("invalid {what} \"{}\"", word.text))
            .help("remove it if lines are to be written at once");
    }
    is_zero == Some(false)
}

/// A file named without a buffer shares the buffer set elsewhere, as in nginx; two different buffers are an
/// error.
fn log_file(file: LogFile, word: &Word, reading: &mut Reading<'_>) -> Option<LogFileId> {
    let files = &mut reading.declared.log_files;
    let Some(index) = files.iter().position(|known| known.target == file.target) else {
        files.push(file);
        return Some(LogFileId(files.len() as u32 - 1));
    };
    let known = &mut files[index];
    if known.buffer.is_none() {
        *known = file;
    } else if file.buffer.is_some() && *known != file {
        reading
            .error(
                word.span,
                format!("access_log \"{}\" already defined with conflicting parameters", word.text),
            )
            .help("write the same buffer=, flush= and gzip= each time");
        return None;
    }
    Some(LogFileId(index as u32))
}
