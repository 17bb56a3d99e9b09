//! `match`: what an answer to a health check must be.
//!
//! Before: `made`, whose lines it has; next: `health_check`, which names it.

use std::sync::Arc;

use super::context::HTTP;
use super::made::lines;
use super::templates::Templates;
use super::{Apply, Row, often};
use crate::declared::Kind;
use crate::declared::health::{FieldTest, HealthMatch, HealthTest};
use crate::reading::Reading;
use crate::suggest;
use crate::template::Template;
use crate::tree::{Directive, Word};

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("match", HTTP, (1, 1), "name { … }", "",
        "Defines the conditions that a response to a `health_check` must meet. All must be met. `status 200-399 404;` and `status ! 500;` test the \
        status. `header Content-Type = text/html;`, `!=`, `~` and `!~` compare a field with a value or a regular expression; `header X;` and `header \
        ! X;` test whether it is present. `body ~ \"regex\";` and `!~` test the first 256 KiB of the body. `require $variable …;` requires that the \
        variables are neither empty nor `0`.",
        Apply::DeclareLines(read)),
];

const TESTS: [&str; 4] = ["status", "header", "body", "require"];

impl Templates for HealthMatch {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        for test in &self.tests {
            if let HealthTest::Require(variables) = test {
                variables.templates(all);
            }
        }
    }
}

fn read(directive: &Directive, reading: &mut Reading<'_>) {
    let name = &directive.args[0];
    let mut tests = Vec::new();
    for (key, words) in lines(directive, reading) {
        tests.extend(match key.text.as_str() {
            "status" => status(key, words, reading),
            "header" => header(key, words, reading),
            "body" => body(key, words, reading),
            "require" => require(key, words, reading),
            other => {
                let help = suggest::did_you_mean(other, TESTS)
                    .unwrap_or_else(|| "write status, header, body or require".to_owned());
                reading
                    .error(key.span, format!("unknown test \"{other}\" in match \"{}\"", name.text))
                    .help(help);
                None
            }
        });
    }
    if directive.block.as_ref().is_some_and(Vec::is_empty) {
        reading
            .error(directive.span, format!("match \"{}\" tests nothing", name.text))
            .help("write at least one test, as in status 200;");
    }
    let message = format!("duplicate match \"{}\"", name.text);
    if reading.declare(Kind::HealthMatch, &name.text, directive.span, message) {
        let declared = HealthMatch { name: name.text.clone(), tests };
        reading.declared.health_matches.push(Arc::new(declared));
    }
}

/// `status [!] code | code-code …`.
fn status(key: &Word, words: &[Word], reading: &mut Reading<'_>) -> Option<HealthTest> {
    let (within, codes) = match words.split_first() {
        Some((first, rest)) if first.text == "!" => (false, rest),
        _ => (true, words),
    };
    if codes.is_empty() {
        return wrong(key, "status 200; status 200-399; or status ! 500;", reading);
    }
    let code = |text: &str| text.parse::<u16>().ok().filter(|code| (100..=999).contains(code));
    let mut ranges = Vec::with_capacity(codes.len());
    for word in codes {
        let (first, last) = word.text.split_once('-').unwrap_or((&word.text, &word.text));
        match (code(first), code(last)) {
            (Some(first), Some(last)) if first <= last => ranges.push((first, last)),
            _ => {
                reading
                    .error(word.span, format!("invalid status \"{}\"", word.text))
                    .help("write a status such as 200, or a range such as 200-399");
                return None;
            }
        }
    }
    Some(HealthTest::Status { ranges, within })
}

/// `header [!] name`, `header name = | != | ~ | !~ value`.
fn header(key: &Word, words: &[Word], reading: &mut Reading<'_>) -> Option<HealthTest> {
    let (name, value, there) = match words {
        [name] => (name, FieldTest::Present, true),
        [not, name] if not.text == "!" => (name, FieldTest::Present, false),
        [name, operator, value] => match operator.text.as_str() {
            "=" => (name, FieldTest::Equal(value.text.clone()), true),
            "!=" => (name, FieldTest::Equal(value.text.clone()), false),
            "~" => (name, FieldTest::Matching(reading.regex(value, &value.text, false)?), true),
            "!~" => (name, FieldTest::Matching(reading.regex(value, &value.text, false)?), false),
            _ => {
                reading.not_one_of(operator, &["=", "!=", "~", "!~"]);
                return None;
            }
        },
        _ => return wrong(key, "header Name; header ! Name; or header Name = value;", reading),
    };
    Some(HealthTest::Field { name: name.text.clone(), value, there })
}

/// `body ~ | !~ expression`.
fn body(key: &Word, words: &[Word], reading: &mut Reading<'_>) -> Option<HealthTest> {
    let [operator, source] = words else { return wrong(key, "body ~ expression;", reading) };
    let matches = reading.one_of(operator, &["~", "!~"])? == 0;
    let expression = reading.regex(source, &source.text, false)?;
    Some(HealthTest::Body { expression, matches })
}

/// `require $variable …`.
fn require(key: &Word, words: &[Word], reading: &mut Reading<'_>) -> Option<HealthTest> {
    if words.is_empty() {
        return wrong(key, "require $variable;", reading);
    }
    for word in words.iter().filter(|word| !word.text.starts_with('$')) {
        reading
            .error(word.span, format!("invalid variable name \"{}\"", word.text))
            .help("write the name of the variable with a dollar sign, as in $name");
    }
    Some(HealthTest::Require(words.iter().map(|word| reading.template(word)).collect()))
}

fn wrong(key: &Word, right: &str, reading: &mut Reading<'_>) -> Option<HealthTest> {
    reading
        .error(key.span, format!("invalid number of arguments in \"{}\"", key.text))
        .help(format!("write {right}"));
    None
}
