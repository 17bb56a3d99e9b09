//! `map`: a variable that has its value by what a text is.
//!
//! Which key is taken first and what is refused is nginx's to the letter. Next: `declared/made/map`, what comes of it.

use std::collections::HashMap;

use super::context::HTTP;
use super::made::{lines, wrong_line};
use super::{Apply, Row, idle, often};
use crate::declared::made::Making;
use crate::declared::made::map::Map;
use crate::host_names::HostNames;
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::{Directive, Word};

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("map", HTTP, (2, 2), "string $variable { key value; … }", "",
        "Creates a variable whose value depends on a string with variables, as in `map $http_upgrade $connection_upgrade { default upgrade; \"\" \
        close; }`. Keys are case-insensitive. After `hostnames;`, keys may be `*.example.com`, `.example.com` and `www.example.*`, and a dot at the \
        end of the string is ignored. `~` and `~*` begin a regular expression, whose captures may be used in the value. The exact key takes \
        precedence, then the longest `*.name`, the longest `name.*`, the first matching regular expression, and `default`. A leading backslash \
        escapes a key such as `\\default`. Values may contain variables. `include` reads lines from a file. With `volatile;`, the value is not \
        cached during a request.",
        Apply::Make(read)),
    idle("map_hash_max_size", HTTP, (1, 1), "size",
        "The maximum size of the hash table of a `map`.",
        "hash tables grow as needed"),
    idle("map_hash_bucket_size", HTTP, (1, 1), "size",
        "The bucket size of the hash table of a `map`.",
        "hash tables grow as needed"),
];

struct MapDraft {
    map: Map,
    volatile: bool,
    known: HashMap<Box<str>, u32>,
}

fn read(directive: &Directive, reading: &mut Reading<'_>) -> Option<(Making, bool)> {
    let map = Map {
        source: reading.template(&directive.args[0]),
        hostnames: false,
        keys: HostNames::default(),
        expressions: Vec::new(),
        default: None,
        values: Vec::new(),
    };
    let mut draft = MapDraft { map, volatile: false, known: HashMap::new() };
    for (key, words) in lines(directive, reading) {
        match (key.text.as_str(), words) {
            ("hostnames", []) => draft.map.hostnames = true,
            ("volatile", []) => draft.volatile = true,
            (_, [value]) => draft.line(key, value, reading),
            _ => wrong_line(key, directive, reading),
        }
    }
    Some((draft.map.into(), draft.volatile))
}

impl MapDraft {
    fn line(&mut self, key: &Word, word: &Word, reading: &mut Reading<'_>) {
        let value = self.value(word, reading);
        if key.text == "default" {
            if self.map.default.replace(value).is_some() {
                reading
                    .error(key.span, "duplicate default map parameter")
                    .help("keep one of them; write \\default for a key with that name");
            }
            return;
        }
        if let Some(source) = key.text.strip_prefix('~') {
            let (source, ignore_case) = match source.strip_prefix('*') {
                Some(source) => (source, true),
                None => (source, false),
            };
            if let Some(regex) = reading.regex(key, source, ignore_case) {
                self.map.expressions.push((regex, value));
            }
            return;
        }
        let text = key.text.strip_prefix('\\').unwrap_or(&key.text);
        let keys = &mut self.map.keys;
        let added = if self.map.hostnames { keys.add(text, value) } else { keys.add_exact(text, value) };
        if let Err(unfit) = added {
            let (message, help) = unfit.sentence(text);
            reading.error(key.span, message).help(help);
        }
    }

    fn value(&mut self, word: &Word, reading: &mut Reading<'_>) -> u32 {
        if let Some(&known) = self.known.get(word.text.as_str()) {
            return known;
        }
        let index = self.map.values.len() as u32;
        let value: Template = reading.template(word);
        self.map.values.push(value);
        self.known.insert(word.text.as_str().into(), index);
        index
    }
}
