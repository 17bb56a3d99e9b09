//! The line in the log: formats rendered and escaped, conditions asked, buffers of this worker filled, files named by requests.
//!
//! The bytes go to the log thread (`telemetry`); an unbuffered line hands back a ticket, which the connection waits for
//! before it closes. Next: `connection/h1`.

use crate::failure;
use crate::request::Request;
use crate::variables::{self, Found, file_path};
use millstream_conf::model::{Escape, Level, LogFormat, LogPlace, Part, Template, Variable};
use millstream_conf::variables::Builtin;
use millstream_net::buffers;
use millstream_telemetry::access_log::{escape_default, escape_json, is_clean};
use millstream_telemetry::log_writer::{NamedLine, Ticket};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

/// Returns the ticket of the last unbuffered line.
pub fn write(request: &Request, now: Instant) -> Option<Ticket> {
    let logs = &request.location().settings.logs.access;
    let mut ticket = None;
    for log in logs.iter() {
        let wanted = log
            .condition
            .as_ref()
            .is_none_or(|condition| variables::holds(condition, request, &mut Vec::new()));
        if !wanted {
            continue;
        }
        let written = match &log.place {
            LogPlace::File(file) => {
                let mut buffer = request.generation.logs[file.0 as usize].borrow_mut();
                render(&log.format, request, buffer.line());
                buffer.commit(now)
            }
            LogPlace::Named(path) => write_named(request, path, &log.format),
        };
        ticket = written.or(ticket);
    }
    ticket
}

fn write_named(request: &Request, path: &Template, format: &LogFormat) -> Option<Ticket> {
    let settings = &request.location().settings;
    let group = &request.generation.shared.logs.groups[settings.logs.group?.0 as usize];
    let file = variables::value(path, request);
    if file_path::goes_up(&file, path.source.as_bytes()) {
        let file = String::from_utf8_lossy(&file);
        failure::log(
            request,
            Level::Error,
            format_args!("access_log path \"{file}\" points outside its directory"),
        );
        return None;
    }
    let mut line = buffers::take();
    render(format, request, &mut line);
    let ticket = group.append_to(NamedLine {
        path: Path::new(OsStr::from_bytes(&file)),
        root: Path::new(OsStr::from_bytes(&file_path::root(request))),
        follows_links: settings.symlinks.is_none(),
        line: &line,
    });
    buffers::give(line);
    Some(ticket)
}

pub fn render(format: &LogFormat, request: &Request, line: &mut Vec<u8>) {
    for part in &format.template.parts {
        match part {
            Part::Literal(text) => line.extend_from_slice(text.as_bytes()),
            Part::Variable(variable) => render_variable(format.escape, variable, request, line),
        }
    }
    line.push(b'\n');
}

fn render_variable(escape: Escape, variable: &Variable, request: &Request, line: &mut Vec<u8>) {
    let start = line.len();
    let found = variables::append(variable, request, line);
    if found == Found::Nothing || line.len() == start {
        // nginx writes a hyphen for what has no value, nothing for an empty one; `json` and `none` leave both empty.
        if escape == Escape::Default && found == Found::Nothing {
            line.push(b'-');
        }
        return;
    }
    if is_plain(variable) || escape == Escape::None {
        return;
    }
    if !is_clean(escape, &line[start..]) {
        let raw = line.split_off(start);
        match escape {
            Escape::Default => escape_default(line, &raw),
            Escape::Json => escape_json(line, &raw),
            Escape::None => line.extend_from_slice(&raw),
        }
    }
}

/// Values of digits, letters and a few signs, which need no escaping.
fn is_plain(variable: &Variable) -> bool {
    matches!(
        variable,
        Variable::Builtin(
            Builtin::TimeLocal
                | Builtin::TimeIso8601
                | Builtin::Status
                | Builtin::BodyBytesSent
                | Builtin::BytesSent
                | Builtin::RemoteAddr
                | Builtin::RequestTime
                | Builtin::Msec
                | Builtin::RequestLength
        )
    )
}
