//! Whether an answer is what a `match` asks for, or a status of 2xx or 3xx where there is none.
//!
//! What is wrong is told in words for the error log.

use crate::exchange::Probed;
use crate::location_text::readable;
use crate::request::Request;
use crate::variables;
use millstream_conf::model::{FieldTest, HealthMatch, HealthTest, Regex};

pub(super) const BODY: usize = 256 * 1024;

pub(super) fn reads_body(wanted: Option<&HealthMatch>) -> bool {
    wanted.is_some_and(|wanted| wanted.tests.iter().any(|test| matches!(test, HealthTest::Body { .. })))
}

/// The error ends a sentence.
pub(super) fn judge(wanted: Option<&HealthMatch>, answer: &Probed, request: &Request) -> Result<(), String> {
    match wanted {
        Some(wanted) => wanted.tests.iter().try_for_each(|test| pass(test, answer, request)),
        None if (200..400).contains(&answer.status) => Ok(()),
        None => Err(format!("the status is {}", answer.status)),
    }
}

fn pass(test: &HealthTest, answer: &Probed, request: &Request) -> Result<(), String> {
    match test {
        HealthTest::Status { ranges, within } => {
            let is_in = ranges.iter().any(|(first, last)| (*first..=*last).contains(&answer.status));
            if is_in == *within { Ok(()) } else { Err(format!("the status is {}", answer.status)) }
        }
        HealthTest::Field { name, value, there } => {
            let mut lines = answer.fields.view().all_named(name.as_bytes());
            let found = lines.try_fold(false, |found, line| is_wanted(value, line).map(|is| found || is))?;
            if found == *there {
                return Ok(());
            }
            Err(match answer.fields.view().named(name.as_bytes()) {
                Some(line) => format!("header \"{name}\" is \"{}\"", shown(line)),
                None => format!("header \"{name}\" is missing"),
            })
        }
        HealthTest::Body { expression, matches } => match (finds(expression, &answer.body)?, matches) {
            (false, true) => Err(format!("the body does not match \"{}\"", expression.source)),
            (true, false) => Err(format!("the body matches \"{}\"", expression.source)),
            _ => Ok(()),
        },
        HealthTest::Require(required) => {
            let lacks = |value: &[u8]| value.is_empty() || value == b"0";
            match required.iter().find(|template| lacks(&variables::value(template, request))) {
                Some(template) => Err(format!("\"{}\" is empty or 0", template.source)),
                None => Ok(()),
            }
        }
    }
}

fn is_wanted(value: &FieldTest, line: &[u8]) -> Result<bool, String> {
    match value {
        FieldTest::Present => Ok(true),
        FieldTest::Equal(text) => Ok(line == text.as_bytes()),
        FieldTest::Matching(expression) => finds(expression, line),
    }
}

/// An expression that hits its limit fails either test.
fn finds(expression: &Regex, text: &[u8]) -> Result<bool, String> {
    expression.is_match(text).map_err(|_| format!("\"{}\" reached its backtracking limit", expression.source))
}

fn shown(value: &[u8]) -> String {
    const MOST: usize = 100;
    readable(&value[..value.len().min(MOST)])
}

#[cfg(test)]
mod tests;
