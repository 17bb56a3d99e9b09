//! Formats of access-log lines: `log_format`, and those that need none.

use std::sync::Arc;

use super::super::templates::Templates;
use crate::declared::Kind;
use crate::declared::log::{Escape, LogFormat};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::template::Template;
use crate::tree::{Directive, Word};

impl Templates for LogFormat {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        all.push(&self.template);
    }
}

/// A predefined format: name, escaping and text.
type Ready = (&'static str, Escape, &'static str);

const COMBINED: Ready = (
    "combined",
    Escape::Default,
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"",
);

/// One object per line. What is always a number is unquoted; times of upstreams may be several.
const JSON: Ready = (
    "json",
    Escape::Json,
    "{\"time\":\"$time_iso8601\",\"remote_addr\":\"$remote_addr\",\"remote_user\":\"$remote_user\",\"method\":\"$request_method\",\
    \"scheme\":\"$scheme\",\"host\":\"$host\",\"uri\":\"$request_uri\",\"protocol\":\"$server_protocol\",\"status\":$status,\
    \"bytes_sent\":$bytes_sent,\"body_bytes_sent\":$body_bytes_sent,\"request_length\":$request_length,\
    \"request_time\":$request_time,\"request_id\":\"$request_id\",\"referer\":\"$http_referer\",\"user_agent\":\"$http_user_agent\",\
    \"forwarded_for\":\"$http_x_forwarded_for\",\"cache\":\"$upstream_cache_status\",\"upstream_addr\":\"$upstream_addr\",\
    \"upstream_status\":\"$upstream_status\",\"upstream_time\":\"$upstream_response_time\"}",
);

pub fn declare_combined(reading: &mut Reading<'_>) {
    declare(COMBINED, reading);
}

fn declare((name, escape, text): Ready, reading: &mut Reading<'_>) -> Arc<LogFormat> {
    let word = Word { text: text.to_owned(), span: Span::default(), quoted: true };
    let template = reading.template(&word);
    let format = Arc::new(LogFormat { name: name.to_owned(), escape, template });
    reading.declared.log_formats.push(format.clone());
    format
}

pub(super) fn log_format(directive: &Directive, reading: &mut Reading<'_>) {
    let name = &directive.args[0];
    let mut words = &directive.args[1..];
    let mut escape = Escape::Default;
    if let Some(("escape", kind)) = parameter(&words[0]) {
        let kinds = [("default", Escape::Default), ("json", Escape::Json), ("none", Escape::None)];
        escape = reading.choice(&kind, &kinds).unwrap_or(escape);
        words = &words[1..];
    }
    let (mut parts, mut source) = (Vec::new(), String::new());
    for word in words {
        let template = reading.template(word);
        source.push_str(&word.text);
        parts.extend(template.parts);
    }
    let duplicate = format!("duplicate \"log_format\" name \"{}\"", name.text);
    if name.text == COMBINED.0 {
        reading.error(name.span, duplicate).help("give it another name; `combined` is predefined");
        return;
    }
    if !reading.declare(Kind::LogFormat, &name.text, name.span, duplicate) {
        return;
    }
    let template = Template { parts: parts.into(), source: source.into() };
    reading.declared.log_format_places.insert(name.text.as_str().into(), reading.place);
    // A `json` of the user's own goes before ours.
    reading.declared.log_formats.retain(|known| known.name != name.text);
    reading.declared.log_formats.push(Arc::new(LogFormat { name: name.text.clone(), escape, template }));
}

pub(super) fn format(directive: &Directive, reading: &mut Reading<'_>) -> Option<Arc<LogFormat>> {
    let Some(word) = directive.args.get(1) else { return reading.declared.log_formats.first().cloned() };
    // Where it stands behind its use, nginx does not know it yet.
    if reading.declared.log_format_places.get(&*word.text).is_some_and(|place| *place > reading.place) {
        reading
            .error(word.span, format!("unknown log format \"{}\"", word.text))
            .help(format!("its log_format comes later: move log_format {} before this line", word.text));
        return None;
    }
    if let Some(format) = reading.declared.log_formats.iter().find(|format| format.name == word.text) {
        return Some(format.clone());
    }
    // Declared where it is used: its variables cost those nothing who do not.
    if word.text == JSON.0 {
        return Some(declare(JSON, reading));
    }
    let mut names: Vec<String> =
        reading.declared.log_formats.iter().map(|format| format.name.clone()).collect();
    names.push(JSON.0.to_owned());
    let help = if word.text.contains('=') {
        format!("the name of a format comes before it, as in combined {}", word.text)
    } else {
        suggest::did_you_mean(&word.text, names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("the formats are: {}", names.join(", ")))
    };
    reading.error(word.span, format!("unknown log format \"{}\"", word.text)).help(help);
    None
}
