//! The words of an `if`: `($variable)`, `($variable = text)`, `($variable ~ expression)`, `(-f path)`, spaces inside the
//! parentheses or none.

use crate::features::templates::Templates;
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::source::Span;
use crate::template::Template;
use crate::tree::Word;

/// The operand left of the sign is always a single variable.
#[derive(Debug, Clone)]
pub enum Condition {
    /// Neither empty nor `0`.
    Holds(Template),
    /// `$variable = value`, `!=`.
    Equals { variable: Template, value: Template, negated: bool },
    /// `$variable ~ expression`, `~*`, `!~`, `!~*`.
    Matches { variable: Template, regex: Regex, negated: bool },
    /// `-f path` and the like.
    File { path: Template, kind: FileKind, negated: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `-f`: a regular file.
    File,
    Directory,
    Anything,
    /// `-x`: executable by its owner.
    Executable,
}

impl Condition {
    pub fn reads(&self) -> impl Iterator<Item = &Template> + Clone {
        let (one, other) = match self {
            Condition::Holds(variable) | Condition::Matches { variable, .. } => (variable, None),
            Condition::Equals { variable, value, .. } => (variable, Some(value)),
            Condition::File { path, .. } => (path, None),
        };
        std::iter::once(one).chain(other)
    }
}

impl Templates for Condition {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        all.extend(self.reads());
    }
}

pub(super) fn read(args: &[Word], span: Span, reading: &mut Reading<'_>) -> Option<Condition> {
    let Some(words) = without_parentheses(args) else {
        return invalid(args.first().map_or(span, |word| word.span), args.first(), reading);
    };
    match words.as_slice() {
        [variable] => of_variable(variable, reading).map(Condition::Holds),
        [sign, path] if sign.text.trim_start_matches('!').starts_with('-') => file(sign, path, reading),
        [variable, sign, right] => {
            let left = of_variable(variable, reading)?;
            compared(left, sign, right, reading)
        }
        other => invalid(span, other.first(), reading),
    }
}

/// The parentheses may stand apart or be part of the first and the last word.
fn without_parentheses(args: &[Word]) -> Option<Vec<Word>> {
    let mut words = args.to_vec();
    let first = words.first_mut()?;
    first.text = first.text.strip_prefix('(')?.to_owned();
    if first.text.is_empty() {
        words.remove(0);
    }
    let last = words.last_mut()?;
    last.text = last.text.strip_suffix(')')?.to_owned();
    if last.text.is_empty() {
        words.pop();
    }
    (!words.is_empty()).then_some(words)
}

fn of_variable(word: &Word, reading: &mut Reading<'_>) -> Option<Template> {
    let name = word.text.strip_prefix('$').unwrap_or_default();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !is_name(name) {
        invalid::<()>(word.span, Some(word), reading);
        return None;
    }
    let template = reading.template(word);
    (template.parts.len() == 1).then_some(template)
}

fn compared(variable: Template, sign: &Word, right: &Word, reading: &mut Reading<'_>) -> Option<Condition> {
    let negated = sign.text.starts_with('!');
    match sign.text.as_str() {
        "=" | "!=" => Some(Condition::Equals { variable, value: reading.template(right), negated }),
        "~" | "~*" | "!~" | "!~*" => {
            let ignore_case = sign.text.ends_with('*');
            let regex = reading.regex(right, &right.text, ignore_case)?;
            Some(Condition::Matches { variable, regex, negated })
        }
        other => {
            reading
                .error(sign.span, format!("unexpected \"{other}\" in condition"))
                .help("compare with =, !=, ~, ~*, !~ or !~*");
            None
        }
    }
}

fn file(sign: &Word, path: &Word, reading: &mut Reading<'_>) -> Option<Condition> {
    let negated = sign.text.starts_with('!');
    let kind = match sign.text.trim_start_matches('!') {
        "-f" => FileKind::File,
        "-d" => FileKind::Directory,
        "-e" => FileKind::Anything,
        "-x" => FileKind::Executable,
        _ => return invalid(sign.span, Some(sign), reading),
    };
    Some(Condition::File { path: reading.template(path), kind, negated })
}

fn invalid<T>(span: Span, word: Option<&Word>, reading: &mut Reading<'_>) -> Option<T> {
    let shown = word.map_or("", |word| word.text.as_str());
    reading
        .error(span, format!("invalid condition \"{shown}\""))
        .help("write if ($variable), if ($variable = text), if ($variable ~ expression) or if (-f path)");
    None
}
