//! The words of a `rewrite`: what the path must match, and what stands in its place.

use crate::features::templates::Templates;
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::template::{Part, Template};
use crate::tree::Word;

#[derive(Debug, Clone)]
pub struct Rewrite {
    pub regex: Regex,
    pub goal: Goal,
    /// Whether the query in force is appended; not if the replacement ends in `?`.
    pub keeps_arguments: bool,
}

#[derive(Debug, Clone)]
pub enum Goal {
    /// Another path, and another query if the replacement has one.
    Uri {
        /// Not percent-encoded.
        path: Template,
        /// After the `?`.
        arguments: Option<Template>,
        then: Then,
    },
    Redirect {
        status: u16,
        url: Template,
        /// Whether the URL contains a `?`, so that what is appended begins with `&`.
        has_query: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// No flag: the next instruction.
    Next,
    /// `last`: a location is chosen again.
    Last,
    /// `break`: the request stays in its location.
    Break,
}

impl Templates for Rewrite {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match &self.goal {
            Goal::Uri { path, arguments, .. } => {
                all.push(path);
                arguments.templates(all);
            }
            Goal::Redirect { url, .. } => all.push(url),
        }
    }
}

/// Whether it is a URL for the client, by its start as in nginx.
pub(super) fn is_url(text: &str) -> bool {
    ["http://", "https://", "$scheme"].iter().any(|start| text.starts_with(start))
}

pub(super) fn read(args: &[Word], reading: &mut Reading<'_>) -> Option<Rewrite> {
    let [expression, replacement, flag @ ..] = args else { return None };
    if replacement.text.is_empty() {
        reading.error(replacement.span, "empty replacement").help("write the replacement of the path");
        return None;
    }
    let regex = reading.regex(expression, &expression.text, false);
    let (text, keeps_arguments) = match replacement.text.strip_suffix('?') {
        Some(text) => (text, false),
        None => (replacement.text.as_str(), true),
    };
    let redirect = match flag.first().map(|word| word.text.as_str()) {
        None | Some("last" | "break") => is_url(text).then_some(302),
        Some("redirect") => Some(302),
        Some("permanent") => Some(301),
        Some(_) => {
            reading.not_one_of(&flag[0], &["last", "break", "redirect", "permanent"]);
            return None;
        }
    };
    let made = reading.template(&Reading::part(replacement, text));
    let goal = match redirect {
        Some(status) => Goal::Redirect { status, has_query: literals_with(&made, '?'), url: made },
        None => {
            let (path, arguments) = halves(&made);
            let then = match flag.first().map(|word| word.text.as_str()) {
                Some("last") => Then::Last,
                Some("break") => Then::Break,
                _ => Then::Next,
            };
            Goal::Uri { path, arguments, then }
        }
    };
    Some(Rewrite { regex: regex?, goal, keeps_arguments })
}

fn literals_with(template: &Template, wanted: char) -> bool {
    template.parts.iter().any(|part| matches!(part, Part::Literal(text) if text.contains(wanted)))
}

/// Splits at a written `?`; one in a value does not count.
fn halves(template: &Template) -> (Template, Option<Template>) {
    let whole = |parts: Vec<Part>| Template { parts: parts.into(), source: template.source.clone() };
    let found = template.parts.iter().enumerate().find_map(|(at, part)| match part {
        Part::Literal(text) => Some((at, text.split_once('?')?)),
        Part::Variable(_) => None,
    });
    let Some((at, (before, behind))) = found else { return (template.clone(), None) };
    let literal = |text: &str| (!text.is_empty()).then(|| Part::Literal(text.into()));
    let path = template.parts[..at].iter().cloned().chain(literal(before)).collect();
    let arguments = literal(behind).into_iter().chain(template.parts[at + 1..].iter().cloned()).collect();
    (whole(path), Some(whole(arguments)))
}
