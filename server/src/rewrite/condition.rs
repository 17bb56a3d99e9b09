//! Whether the condition of an `if` holds.

use super::file_test::FileTest;
use super::value;
use crate::admission::undecided_by;
use crate::failure;
use crate::request::Request;
use crate::route::capture;
use crate::shown;
use crate::variables;
use crate::variables::personal::shown_by;
use millstream_conf::model::{Condition, Level, Regex, Template};

pub(super) enum Truth {
    Holds,
    Fails,
    Ask(FileTest),
}

impl Truth {
    fn of(holds: bool) -> Self {
        if holds { Truth::Holds } else { Truth::Fails }
    }
}

/// `answer`: the result of the file test. The error is a status.
pub(super) fn judge(
    condition: &Condition,
    request: &mut Request,
    escapes: bool,
    answer: Option<bool>,
) -> Result<Truth, u16> {
    Ok(match condition {
        Condition::Holds(variable) => Truth::of(variables::holds(variable, request, &mut Vec::new())),
        Condition::Equals { variable, value, negated } => {
            let is_equal = variables::value(variable, request) == value::of(value, request, escapes);
            Truth::of(is_equal != *negated)
        }
        Condition::Matches { variable, regex, negated } => {
            Truth::of(matches(variable, regex, request)? != *negated)
        }
        Condition::File { path, kind, negated } => match answer {
            Some(answer) => Truth::of(answer != *negated),
            None => Truth::Ask(FileTest { path: value::of(path, request, escapes), kind: *kind }),
        },
    })
}

/// Sets the captures, or clears them without a match.
fn matches(variable: &Template, regex: &Regex, request: &mut Request) -> Result<bool, u16> {
    let text = variables::value(variable, request);
    let captured = capture(regex, &text).map_err(|undecided| undecided_by(request, &undecided))?;
    told(request, regex, captured.is_some(), || {
        shown::value(variable, request, |bytes| String::from_utf8_lossy(bytes).into_owned())
    });
    let is_match = captured.is_some();
    match captured {
        Some(captured) => request.take_captures(captured, &text, shown_by(variable, request)),
        None => request.route.captures.get_mut().groups.clear(),
    }
    Ok(is_match)
}

/// `rewrite_log`.
pub(super) fn told(request: &Request, regex: &Regex, is_match: bool, text: impl FnOnce() -> String) {
    if request.location().settings.rewrite.log {
        let verb = if is_match { "matches" } else { "does not match" };
        let text = text();
        failure::log(request, Level::Notice, format_args!("\"{}\" {verb} \"{text}\"", regex.source));
    }
}
