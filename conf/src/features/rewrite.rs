//! The rewrite script of a server or a location: `set`, `if`, `rewrite`, `break` and `return`, in the order of the file.
//!
//! A block that was written in an `if` follows its condition; where that does not hold, what comes next is behind the block.
//! Next: `condition` and `replacement`, which read words; `locations`, which reads the blocks; `millstream-server`'s `rewrite`,
//! which carries a script out.

mod condition;
mod replacement;
#[cfg(test)]
mod tests;

use super::context::{Context, Contexts, HTTP_SERVER_LOCATION, SERVER_LOCATION};
use super::location::LocationId;
use super::phases::Phases;
use super::templates::{Templates, record, without_templates};
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::reading::Reading;
use crate::slots;
use crate::template::Template;
use crate::tree::{Directive, Word};

pub use condition::{Condition, FileKind};
pub use replacement::{Goal, Rewrite, Then};

record! {
    pub struct Scripted {
        /// Those of the server, on its own level, run before a location is chosen.
        pub script: Box<[Instruction]>,
        pub log: bool,
        pub warn: bool,
    }
}

#[derive(Debug, Clone)]
pub enum Instruction {
    Set {
        target: Settable,
        value: Template,
    },
    /// The instructions of its block follow.
    If {
        condition: Condition,
        /// The instruction to continue with if it does not hold.
        otherwise: usize,
        /// The block's settings, which are a location of its own; `None` in a server.
        location: Option<LocationId>,
    },
    Rewrite(Box<Rewrite>),
    Return(Return),
    Break,
}

impl Templates for Instruction {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            Instruction::Set { value, .. } => all.push(value),
            Instruction::If { condition, .. } => condition.templates(all),
            Instruction::Rewrite(rewrite) => rewrite.templates(all),
            Instruction::Return(rule) => rule.templates(all),
            Instruction::Break => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settable {
    Slot(u16),
    /// `$args`: the query in force.
    Arguments,
    /// `$limit_rate`: speed of the response.
    LimitRate,
}

#[derive(Debug, Clone)]
pub enum ReturnBody {
    None,
    /// With the default type.
    Text(Template),
    /// A Location for 301, 302, 303, 307, 308; empty if none was written, as in nginx.
    Url(Template),
}

impl Templates for ReturnBody {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            ReturnBody::None => {}
            ReturnBody::Text(text) | ReturnBody::Url(text) => all.push(text),
        }
    }
}

record! {
    pub struct Return {
        /// 0–999; 444 closes the connection without a response.
        pub status: u16,
        pub body: ReturnBody,
    }
}

/// The script is not inherited.
#[derive(Debug, Clone, Default)]
pub struct RewriteLevel {
    pub script: Vec<Instruction>,
    log: Option<bool>,
    warn: Option<bool>,
}

impl RewriteLevel {
    /// Begins the block of an `if`; returns its place for `close`.
    pub fn open(&mut self, condition: Condition) -> usize {
        self.script.push(Instruction::If { condition, otherwise: 0, location: None });
        self.script.len() - 1
    }

    pub fn close(&mut self, at: usize) {
        let end = self.script.len();
        if let Some(Instruction::If { otherwise, .. }) = self.script.get_mut(at) {
            *otherwise = end;
        }
    }

    /// Sets the location that applies if the `if` at a place holds.
    pub fn enters(&mut self, at: usize, id: LocationId) {
        if let Some(Instruction::If { location, .. }) = self.script.get_mut(at) {
            *location = Some(id);
        }
    }
}

impl Feature for RewriteLevel {
    type Settings = Scripted;

    fn inherit(&mut self, above: &Self) {
        self.log = self.log.or(above.log);
        self.warn = self.warn.or(above.warn);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Scripted {
        Scripted {
            script: self.script.clone().into(),
            log: self.log.unwrap_or(false),
            warn: self.warn.unwrap_or(true),
        }
    }

    fn phases(scripted: &Scripted) -> Phases {
        Phases::SCRIPT.only_if(!scripted.script.is_empty())
    }
}

pub fn condition(directive: &Directive, reading: &mut Reading<'_>) -> Option<Condition> {
    condition::read(&directive.args, directive.span, reading)
}

const SCRIPTS: Contexts =
    SERVER_LOCATION.or(Contexts::only(Context::IfInServer)).or(Contexts::only(Context::IfInLocation));
const ABOUT: Contexts = HTTP_SERVER_LOCATION.or(SCRIPTS);

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("if", SERVER_LOCATION, (1, super::MANY), "(condition) { … }", "",
        "Executes the directives in the block if the condition is true: `$variable` (neither empty nor `0`), `=`, `!=`, `~`, `~*`, `!~`, `!~*` \
        between a variable and a string or regular expression, or `-f`, `-d`, `-e`, `-x`, also with a preceding `!`, before a path. In a location, \
        the block is a location of its own that inherits from the enclosing one. If several conditions are true, the settings of the last block are \
        used.",
        Apply::Block(Context::IfInLocation)),
    often("set", SCRIPTS, (2, 2), "$variable value", "",
        "Sets a variable for the rest of the request. `$args`, the current query string, and `$limit_rate`, which takes precedence over the directive \
        `limit_rate`, can also be set.",
        Apply::Level(set)),
    often("rewrite", SCRIPTS, (2, 3), "regex replacement [last | break | redirect | permanent]", "",
        "Replaces a path that matches the regular expression. A query string in the replacement precedes the current one, which is omitted if the \
        replacement ends with `?`. Without a flag, the following rewrite directives run, and then a new location is searched for; with `last`, it is \
        searched for at once; with `break`, the request stays in its location. `redirect` and `permanent` redirect the client with 302 and 301. A \
        replacement that begins with `http://`, `https://` or `$scheme` redirects with 302. A request may change its URI 10 times.",
        Apply::Level(rewrite)),
    often("break", SCRIPTS, (0, 0), "", "",
        "Stops processing the rewrite directives. The request stays in its location.",
        Apply::Level(|level, _, _| level.rewrite.script.push(Instruction::Break))),
    often("return", SCRIPTS, (1, 2), "code [text] | code URL | URL", "",
        "Responds at once. 301, 302, 303, 307 and 308 take a URL, which is empty if omitted. Without a text, a status of 400 or higher has its \
        built-in page or `error_page`, and others have an empty body. 444 closes the connection without a response. On the `server` level, the \
        directive takes precedence over locations. The first of several is used.",
        Apply::Level(returns)),
    once("rewrite_log", ABOUT, (1, 1), "on | off", "off",
        "Writes the results of regular expressions in rewrite directives to the error log, at level `notice`.",
        Apply::Level(|l, d, r| l.rewrite.log = r.flag(&d.args[0]))),
    once("uninitialized_variable_warn", ABOUT, (1, 1), "on | off", "on",
        "Writes a warning to the error log if an uninitialized variable of `set` is used.",
        Apply::Level(|l, d, r| l.rewrite.warn = r.flag(&d.args[0]))),
];

fn set(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let Some(target) = settable(&directive.args[0], reading) else { return };
    let value = reading.template(&directive.args[1]);
    level.rewrite.script.push(Instruction::Set { target, value });
}

pub fn settable(word: &Word, reading: &mut Reading<'_>) -> Option<Settable> {
    let Some(name) = word.text.strip_prefix('$').filter(|name| !name.is_empty()) else {
        reading
            .error(word.span, format!("invalid variable name \"{}\"", word.text))
            .help("write $name and then its value");
        return None;
    };
    match slots::number(&reading.slots, name) {
        _ if name.eq_ignore_ascii_case("args") => Some(Settable::Arguments),
        _ if name.eq_ignore_ascii_case("limit_rate") => Some(Settable::LimitRate),
        Some(number) => Some(Settable::Slot(number)),
        None => {
            reading
                .error(word.span, format!("the duplicate \"{name}\" variable"))
                .help("it is a built-in variable; choose another name");
            None
        }
    }
}

fn rewrite(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    if let Some(rule) = replacement::read(&directive.args, reading) {
        level.rewrite.script.push(Instruction::Rewrite(Box::new(rule)));
    }
}

fn returns(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let first = &directive.args[0];
    let second = directive.args.get(1);
    let is_code = !first.text.is_empty() && first.text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = if is_code {
        reading.number(first, 0, 999).map(|status| (status as u16, second))
    } else if second.is_none() && replacement::is_url(&first.text) {
        Some((302, Some(first)))
    } else {
        reading.error(first.span, format!("invalid return code \"{}\"", first.text)).help(
            "write return 200 \"text\"; or return 301 https://example.com/; or return https://example.com/;",
        );
        None
    };
    let Some((status, text)) = parsed else { return };
    let text = text.map_or_else(|| Template::literal(""), |word| reading.template(word));
    let is_empty = text.parts.is_empty();
    // Without a text nginx sends the built-in page from 400 on, an empty Location with a redirect, and an empty body else.
    let body = match status {
        301 | 302 | 303 | 307 | 308 => ReturnBody::Url(text),
        0..200 | 204 | 304 | 400.. if is_empty => ReturnBody::None,
        _ => ReturnBody::Text(text),
    };
    level.rewrite.script.push(Instruction::Return(Return { status, body }));
}

without_templates!(LocationId, Settable);
