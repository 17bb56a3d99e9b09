//! Directives of the access and error logs.
//!
//! Every file is in the model once, however often it is named; those who name it must agree on its buffering.
//! Next: `millstream-telemetry`'s `log_writer`, which writes them.

use std::sync::Arc;
use std::time::Duration;

use super::{Apply, HTTP, HTTP_SERVER_LOCATION, MANY, Row, idle, often};
use crate::inherit::Level;
use crate::model::{
    AccessLog, ErrorLog, Escape, Level as Severity, LogFile, LogFileId, LogFormat, LogTarget, Template,
};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::tree::{Directive, Word};

/// The rows of this family.
pub const ROWS: &[Row] = &[
    often(
        "log_format",
        HTTP,
        (2, MANY),
        "name [escape=default|json|none] string …",
        "combined \"…\"",
        "Names a format for access-log lines. `combined` is there from the start, as nginx has it.",
        Apply::Define(log_format),
    ),
    often(
        "access_log",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "path [format [buffer=size] [gzip[=level]] [flush=time] [if=condition]] | off",
        "logs/access.log combined",
        "Where requests are logged. `buffer` collects lines, `flush` bounds how long one waits, `gzip` compresses the file, and \
         with `if` only requests are logged for which the condition is neither empty nor `0`. A level that writes one has none \
         of the level above; where one of them is `off`, nothing is logged.",
        Apply::Level(access_log),
    ),
    often(
        "error_log",
        HTTP_SERVER_LOCATION,
        (1, 2),
        "file | stderr [level]",
        "logs/error.log error",
        "Where errors go and from which level on: debug, info, notice, warn, error, crit, alert or emerg.",
        Apply::Level(|l, d, r| {
            if let Some(log) = error_log(d, r) {
                l.error_logs.get_or_insert_default().push(log);
            }
        }),
    ),
    idle(
        "open_log_file_cache",
        HTTP_SERVER_LOCATION,
        (1, 4),
        "max=number [inactive=time] [min_uses=number] [valid=time] | off",
        "Keeps log files open whose paths have variables.",
        "every log file is open all the time",
    ),
    idle(
        "log_subrequest",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Whether nginx logs subrequests.",
        "there are no subrequests",
    ),
];

/// The format that is there from the start.
pub const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                            \"$http_referer\" \"$http_user_agent\"";

/// Compiles [`COMBINED`].
pub fn combined(reading: &mut Reading<'_>) -> Arc<LogFormat> {
    let word = Word { text: COMBINED.to_owned(), span: Span::default(), quoted: true };
    let template = reading.template(&word);
    Arc::new(LogFormat { name: "combined".to_owned(), escape: Escape::Default, template })
}

/// The file or stream that an `error_log` names; `None` after its error was reported.
pub(super) fn error_log(directive: &Directive, reading: &mut Reading<'_>) -> Option<ErrorLog> {
    const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];
    const SEVERITIES: [Severity; 8] = [
        Severity::Emerg,
        Severity::Alert,
        Severity::Crit,
        Severity::Error,
        Severity::Warn,
        Severity::Notice,
        Severity::Info,
        Severity::Debug,
    ];
    let level = match directive.args.get(1) {
        Some(word) => SEVERITIES[reading.one_of(word, &LEVELS)?],
        None => Severity::Error,
    };
    let word = &directive.args[0];
    if not_yet(word, reading) {
        return None;
    }
    let target = match word.text.as_str() {
        "stderr" => LogTarget::Stderr,
        path => LogTarget::File(reading.path(path)),
    };
    Some(ErrorLog { target, level })
}

fn not_yet(word: &Word, reading: &mut Reading<'_>) -> bool {
    for kind in ["syslog:", "memory:"] {
        if word.text.starts_with(kind) {
            reading
                .error(word.span, format!("nginx knows logs to \"{kind}\", Millstream does not (yet)"))
                .help("write a file, and let the system's log service read it");
            return true;
        }
    }
    false
}

fn log_format(directive: &Directive, reading: &mut Reading<'_>) {
    let name = &directive.args[0];
    let mut words = &directive.args[1..];
    let mut escape = Escape::Default;
    if let Some(("escape", kind)) = parameter(&words[0]) {
        const KINDS: [Escape; 3] = [Escape::Default, Escape::Json, Escape::None];
        escape = reading.one_of(&kind, &["default", "json", "none"]).map_or(escape, |index| KINDS[index]);
        words = &words[1..];
    }
    let (mut parts, mut source) = (Vec::new(), String::new());
    for word in words {
        let template = reading.template(word);
        source.push_str(&word.text);
        parts.extend(template.parts);
    }
    if reading.log_formats.iter().any(|format| format.name == name.text) {
        reading
            .error(name.span, format!("duplicate \"log_format\" name \"{}\"", name.text))
            .help("give it another name; `combined` is there from the start");
        return;
    }
    let template = Template { parts: parts.into(), source: source.into() };
    reading.log_formats.push(Arc::new(LogFormat { name: name.text.clone(), escape, template }));
}

#[derive(Default)]
struct Parameters {
    buffer: Option<usize>,
    flush: Option<Duration>,
    gzip: Option<u32>,
    condition: Option<Template>,
}

fn access_log(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let path = &directive.args[0];
    let logs = level.access_logs.get_or_insert_with(|| Some(Vec::new()));
    if path.text == "off" {
        *logs = None;
        if let Some(word) = directive.args.get(1) {
            reading.error(word.span, "\"access_log off\" takes no parameters").help("write access_log off;");
        }
        return;
    }
    if not_yet(path, reading) || !reading.without_variables(path, "the path of an access_log") {
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
    let file = LogFile {
        path: reading.path(&path.text),
        buffer: parameters.buffer,
        flush: parameters.flush,
        gzip: parameters.gzip,
    };
    if let Some(file) = log_file(file, path, reading)
        && let Some(logs) = logs
    {
        logs.push(AccessLog { file, format, condition: parameters.condition });
    }
}

fn format(directive: &Directive, reading: &mut Reading<'_>) -> Option<Arc<LogFormat>> {
    let Some(word) = directive.args.get(1) else { return reading.log_formats.first().cloned() };
    if let Some(format) = reading.log_formats.iter().find(|format| format.name == word.text) {
        return Some(format.clone());
    }
    let names: Vec<String> = reading.log_formats.iter().map(|format| format.name.clone()).collect();
    let help = if word.text.contains('=') {
        format!("the name of a format comes before it, as in combined {}", word.text)
    } else {
        suggest::did_you_mean(&word.text, names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("the formats are: {}", names.join(", ")))
    };
    reading.error(word.span, format!("unknown log format \"{}\"", word.text)).help(help);
    None
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

/// Whether a value is there and not zero; zero is reported.
fn positive(is_zero: Option<bool>, what: &str, word: &Word, reading: &mut Reading<'_>) -> bool {
    if is_zero == Some(true) {
        reading
            .error(word.span, format!("invalid {what} \"{}\"", word.text))
            .help("leave it out where lines are to be written at once");
    }
    is_zero == Some(false)
}

/// The id of a file, which is noted where it is new. Whoever names it without a buffer shares the buffer that
/// others gave it, as in nginx; two different buffers are an error.
fn log_file(file: LogFile, word: &Word, reading: &mut Reading<'_>) -> Option<LogFileId> {
    let files = &mut reading.http.log_files;
    let Some(index) = files.iter().position(|known| known.path == file.path) else {
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
            .help("write the same buffer=, flush= and gzip= wherever the file is named");
        return None;
    }
    Some(LogFileId(index as u32))
}
