//! One block's directives against the table: which may stand there, with how many words, and how often.
//!
//! What is wrong is reported here, once for every directive; what remains can be applied. Before: `foreign`, which says what
//! becomes of directives that only nginx knows. Next: `locations` and `configuration`, which apply it.

use std::collections::HashMap;

use crate::features::context::{Context, Contexts};
use crate::features::{self, Apply, Level, MANY, Repeat, Row, Written};
use crate::foreign::{self, Fate};
use crate::nginx_names;
use crate::reading::Reading;
use crate::source::Span;
use crate::suggest;
use crate::tree::Directive;

/// The directives that are allowed in the block, each with its row; all others are reported.
pub fn checked<'t>(
    block: &'t [Directive],
    context: Context,
    reading: &mut Reading<'_>,
) -> Vec<(&'static Row, &'t Directive)> {
    let mut seen: HashMap<&'static str, Span> = HashMap::new();
    let mut rows = Vec::new();
    for directive in block {
        let Some(row) = features::find(&directive.name.text, context) else {
            not_here(directive, context, reading);
            continue;
        };
        if !well_formed(row, directive, reading) {
            continue;
        }
        commas(row, directive, reading);
        if row.repeat == Repeat::Once {
            if let Some(first) = seen.get(row.name) {
                reading.duplicate(directive.span, format!("\"{}\" directive is duplicate", row.name), *first);
                continue;
            }
            seen.insert(row.name, directive.span);
        }
        if let Apply::Idle(why) = row.apply {
            if row.syntax == "on | off" {
                let _ = reading.flag(&directive.args[0]);
            }
            reading.diagnostics.idle(directive.span, format!("\"{}\" has no effect here: {why}", row.name));
        }
        rows.push((row, directive));
    }
    rows
}

/// Applies a directive to its level; one that decides about the cache is recorded with its place.
pub fn set(level: &mut Level, row: &Row, directive: &Directive, reading: &mut Reading<'_>) {
    let family = match row.apply {
        Apply::Level(apply) | Apply::Lines(apply) => {
            apply(level, directive, reading);
            None
        }
        Apply::Pass(family, apply) => {
            apply(level.pass.common_mut(family), directive, reading);
            Some(family)
        }
        _ => return,
    };
    if let Some(need) = row.needs {
        reading.dependent.push((need, row.name, directive.span));
    }
    if row.decides {
        level.written.push(Written { name: row.name, span: directive.span, family });
    }
}

pub fn blocks<'r, 't>(
    rows: &'r [(&'static Row, &'t Directive)],
    context: Context,
) -> impl Iterator<Item = &'r (&'static Row, &'t Directive)> {
    rows.iter().filter(move |(row, _)| matches!(row.apply, Apply::Block(opened) if opened == context))
}

pub fn inside(directive: &Directive) -> &[Directive] {
    directive.block.as_deref().unwrap_or_default()
}

/// Warns of a list with commas, as most other languages have it: here a comma is part of its word.
fn commas(row: &Row, directive: &Directive, reading: &mut Reading<'_>) {
    // What a log format is made of is put together as it stands.
    if row.words.most != MANY || row.name == "log_format" {
        return;
    }
    let Some((_, before)) = directive.args.split_last() else { return };
    if let Some(word) =
        before.iter().find(|word| !word.quoted && word.text.len() > 1 && word.text.ends_with(','))
    {
        let message =
            format!("\"{}\" in \"{}\" ends with a comma, which is part of the word", word.text, row.name);
        reading.diagnostics.warning(word.span, message).help("separate words by spaces only");
    }
}

fn well_formed(row: &Row, directive: &Directive, reading: &mut Reading<'_>) -> bool {
    let given = directive.args.len();
    if given < row.words.least || (row.words.most != MANY && given > row.words.most) {
        reading
            .error(directive.span, format!("invalid number of arguments in \"{}\" directive", row.name))
            .help(format!("write {} {}{}", row.name, row.syntax, if row.takes_block() { "" } else { ";" }));
        return false;
    }
    match (row.takes_block(), directive.block.is_some()) {
        (true, false) => {
            reading
                .error(directive.span, format!("directive \"{}\" has no opening \"{{\"", row.name))
                .help(format!("write {} {}", row.name, row.syntax));
            false
        }
        (false, true) => {
            reading
                .error(directive.span, format!("directive \"{}\" is not terminated by \";\"", row.name))
                .help(format!("write {} {};", row.name, row.syntax));
            false
        }
        _ => true,
    }
}

/// Reports a directive that the table does not have in this context: misplaced, known to nginx only, or
/// misspelt.
fn not_here(directive: &Directive, context: Context, reading: &mut Reading<'_>) {
    let name = directive.name.text.as_str();
    let span = directive.name.span;
    let elsewhere =
        features::rows().filter(|row| row.name == name).fold(Contexts::NONE, |sum, row| sum.or(row.contexts));
    if elsewhere != Contexts::NONE {
        let places: Vec<&str> = elsewhere.names().collect();
        reading
            .error(span, format!("\"{name}\" directive is not allowed here"))
            .help(format!("it is allowed in: {}", places.join(", ")));
        return;
    }
    if let Some(module) = nginx_names::module_of(name) {
        only_nginx_knows(directive, module.plus, reading);
        return;
    }
    let here = features::rows().filter(|row| row.contexts.has(context)).map(|row| row.name);
    let help = suggest::did_you_mean(name, here)
        .or_else(|| suggest::did_you_mean(name, features::rows().map(|row| row.name)))
        .or_else(|| suggest::did_you_mean(name, nginx_names::all()))
        .unwrap_or_else(|| "docs/directives.md lists every directive".to_owned());
    reading.error(span, format!("unknown directive \"{name}\"")).help(help);
}

/// Reports a directive without a row: an error, a warning with `--lenient`, or a note if it does nothing.
fn only_nginx_knows(directive: &Directive, plus: bool, reading: &mut Reading<'_>) {
    let name = directive.name.text.as_str();
    let span = directive.name.span;
    let whose = if plus { "NGINX Plus" } else { "nginx" };
    let message = format!("{whose} knows \"{name}\", Millstream does not (yet)");
    let note = |why: String, reading: &mut Reading<'_>| {
        reading.diagnostics.idle(span, format!("\"{name}\" has no effect here: {why}"));
    };
    match foreign::fate(name, &directive.args) {
        Fate::Default => note("it only sets the default".to_owned(), reading),
        Fate::LeftOut(change) if reading.lenient => {
            reading.diagnostics.warning(span, message).help(format!("it is ignored: {change}")).once();
            reading.parts.left_out.push(directive.span);
        }
        Fate::LeftOut(change) => {
            reading.error(span, message).left_out(change).once();
        }
        Fate::BelongsTo(owners) => {
            let owner = owners.iter().find(|owner| reading.written.contains(**owner));
            match owner {
                None => note(format!("it requires \"{}\", which is missing", owners[0]), reading),
                // That one is an error of its own, or is left out together with this.
                Some(owner) if !is_obeyed(owner) => {
                    note(format!("\"{owner}\", which it requires, is not supported yet"), reading);
                }
                Some(owner) => never_left_out(directive, message, &format!("\"{owner}\" needs it"), reading),
            }
        }
        Fate::Kept(why) => never_left_out(directive, message, why, reading),
    }
}

/// If not, the owner has an error of its own or is left out.
fn is_obeyed(owner: &str) -> bool {
    features::rows().any(|row| row.name == owner)
}

fn never_left_out(directive: &Directive, message: String, why: &str, reading: &mut Reading<'_>) {
    reading
        .error(directive.name.span, message)
        .help(format!("{why}, so it is an error even with --lenient"))
        .once();
}
