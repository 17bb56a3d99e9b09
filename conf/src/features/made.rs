//! Variables that the configuration makes out of others, whatever the directive: how they are declared, and their blocks read.
//!
//! All names are known before the first block is read, so that one may name another that stands below it, as in nginx.
//! Next: the directives, one file each; `declared/made`, what comes of them.

use crate::declared::made::{self, Made, Making};
use crate::reading::Reading;
use crate::template::{self, MadeId, Variable};
use crate::tree::{Directive, Word};
use crate::variables;

/// Reads one block: how the variable is made, and whether it is volatile.
pub type Make = fn(&Directive, &mut Reading<'_>) -> Option<(Making, bool)>;

pub fn name(directive: &Directive, reading: &mut Reading<'_>) {
    let Some(word) = directive.args.last() else { return };
    let Some(name) = word.text.strip_prefix('$').filter(|name| !name.is_empty()) else {
        reading
            .error(word.span, format!("invalid variable name \"{}\"", word.text))
            .help("write the name of the variable with a dollar sign, as in $name");
        return;
    };
    if variables::is_fixed(name) {
        reading
            .error(word.span, format!("the duplicate \"{name}\" variable"))
            .help("a built-in variable has this name; choose another name");
        return;
    }
    let names = &mut reading.declared.made_names;
    if let Some(known) = template::made(name, names) {
        let first = reading.declared.made[usize::from(known.0)].span;
        let help =
            format!("it is declared at {} already, and the later one is used", reading.sources.locate(first));
        reading.diagnostics.warning(word.span, format!("the duplicate \"{name}\" variable")).help(help);
        return;
    }
    if names.len() > usize::from(u16::MAX) {
        reading.error(word.span, "there are more than 65,536 variables of your own").once();
        return;
    }
    names.push(name.to_ascii_lowercase().into());
    reading.declared.made.push(Made { name: name.into(), span: word.span, volatile: false, making: None });
}

/// Call it once all names are known.
pub fn read(make: Make, directive: &Directive, reading: &mut Reading<'_>) {
    let making = make(directive, reading);
    let name = directive.args.last().and_then(|word| word.text.strip_prefix('$'));
    let id = name.and_then(|name| template::made(name, &reading.declared.made_names));
    if let (Some((making, volatile)), Some(id)) = (making, id) {
        let made = &mut reading.declared.made[usize::from(id.0)];
        (made.making, made.volatile) = (Some(making), volatile);
    }
}

/// A variable that always depends on itself has no value. If only one of its values leads back to it, a
/// request may still get another.
pub fn refuse_cycles(reading: &mut Reading<'_>) {
    let made = &reading.declared.made;
    let mut round = Vec::new();
    for at in 0..made.len() {
        let mut seen = vec![false; made.len()];
        let mut open = sources(made, at);
        while let Some(MadeId(next)) = open.pop() {
            let next = usize::from(next);
            if next < made.len() && !std::mem::replace(&mut seen[next], true) {
                open.extend(sources(made, next));
            }
        }
        if seen[at] {
            round.push((made[at].span, made[at].name.clone()));
        }
    }
    for (span, name) in round {
        reading
            .error(span, format!("cycle while evaluating variable \"{name}\""))
            .help("its value depends on the variable itself, possibly through others");
    }
}

fn sources(made: &[Made], at: usize) -> Vec<MadeId> {
    let source = made[at].making.as_ref().and_then(Making::source);
    let variables = source.into_iter().flat_map(|source| source.variables());
    variables
        .filter_map(|variable| if let Variable::Made(id) = variable { Some(*id) } else { None })
        .collect()
}

/// Each a key and its words; a line with a block is an error.
pub(super) fn lines<'t>(directive: &'t Directive, reading: &mut Reading<'_>) -> Vec<(&'t Word, &'t [Word])> {
    let entries = directive.block.iter().flatten();
    let lines = entries.filter_map(|entry| {
        if entry.block.is_some() {
            reading
                .error(entry.span, format!("\"{}\" cannot have a block here", entry.name.text))
                .help("write a key and its value, followed by a semicolon");
            return None;
        }
        Some((&entry.name, entry.args.as_slice()))
    });
    lines.collect()
}

pub(super) fn wrong_line(key: &Word, directive: &Directive, reading: &mut Reading<'_>) {
    let name = &directive.name.text;
    reading
        .error(key.span, format!("invalid number of the {name} parameters"))
        .help("write a key and one value; put values with spaces in quotes");
}

impl Reading<'_> {
    pub fn reads<'t>(&'t self, template: &'t template::Template) -> Vec<&'t Variable> {
        made::reads(&self.declared.made, template)
    }
}
