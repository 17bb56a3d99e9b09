//! The variables that a configuration gives values to: as in nginx, each is known everywhere in it. And the variables that
//! directives define which only nginx knows, so that using one is not told beside the directive.
//!
//! Only names are looked for here, and numbered; the expressions are compiled, and errors found, where they stand.
//! Next: `template`, which is told of these names; `millstream-server`'s `slots`, which holds the values.

use std::collections::BTreeMap;

use crate::tree::Directive;
use crate::variables;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// In lower case, without the dollar.
    pub name: Box<str>,
    /// Set only by captures of server names and location paths.
    pub is_routed: bool,
    pub is_set: bool,
}

/// The name may be in any case, as in nginx.
pub fn number(slots: &[Slot], name: &str) -> Option<u16> {
    let at = slots.iter().position(|slot| slot.name.eq_ignore_ascii_case(name))?;
    u16::try_from(at).ok()
}

/// The variables of all `set`s and `auth_request_set`s and of all named captures.
pub fn collect(tree: &[Directive]) -> Vec<Slot> {
    let mut found = BTreeMap::new();
    gather(tree, &mut found);
    let slots = found.into_iter();
    slots.map(|(name, (is_routed, is_set))| Slot { name: name.into(), is_routed, is_set }).collect()
}

fn gather(tree: &[Directive], slots: &mut BTreeMap<String, (bool, bool)>) {
    for directive in tree {
        let mut names: Vec<Box<str>> = Vec::new();
        let words = directive.args.iter().map(|word| word.text.as_str());
        let kind = directive.name.text.as_str();
        match kind {
            "server_name" | "location" | "if" | "rewrite" => {
                words.for_each(|text| names_in(text, &mut names))
            }
            "map" => {
                let keys = directive.block.iter().flatten().map(|line| line.name.text.as_str());
                keys.for_each(|key| names_in(key, &mut names));
            }
            "set" | "auth_request_set" => {
                let name = words.take(1).filter_map(|word| word.strip_prefix('$'));
                // What is there without the configuration has its own way of being set.
                names.extend(name.filter(|name| !variables::is_fixed(name)).map(Box::from));
            }
            _ => {}
        }
        for name in names {
            let (is_routed, is_set) = slots.entry(name.to_ascii_lowercase()).or_insert((true, false));
            *is_routed &= matches!(kind, "server_name" | "location");
            *is_set |= kind == "set";
        }
        // Blocks in blocks are bounded by the parser.
        gather(directive.block.as_deref().unwrap_or_default(), slots);
    }
}

/// Unsupported directives that define a variable, with the index of its name among their words.
const DEFINING: &[(&str, usize)] = &[
    ("auth_jwt_claim_set", 0),
    ("auth_jwt_header_set", 0),
    ("js_set", 0),
    ("js_var", 0),
    ("keyval", 1),
    ("num_map", 1),
    ("perl_set", 0),
];

pub fn defined_elsewhere(tree: &[Directive]) -> Vec<Box<str>> {
    let mut names = Vec::new();
    for directive in tree {
        let name = directive.name.text.as_str();
        if let Some((_, place)) = DEFINING.iter().find(|(known, _)| *known == name) {
            let word = directive.args.get(*place);
            names.extend(word.and_then(|word| word.text.strip_prefix('$')).map(Box::from));
        }
        // Blocks in blocks are bounded by the parser.
        names.extend(defined_elsewhere(directive.block.as_deref().unwrap_or_default()));
    }
    names.sort();
    names.dedup();
    names
}

/// Finds `(?<name>`, `(?P<name>` and `(?'name'`.
fn names_in(text: &str, names: &mut Vec<Box<str>>) {
    for piece in text.split("(?").skip(1) {
        let piece = piece.strip_prefix('P').unwrap_or(piece);
        let (rest, close) = match (piece.strip_prefix('<'), piece.strip_prefix('\'')) {
            (Some(rest), _) => (rest, '>'),
            (_, Some(rest)) => (rest, '\''),
            _ => continue,
        };
        let Some((name, _)) = rest.split_once(close) else { continue };
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            names.push(name.into());
        }
    }
}
