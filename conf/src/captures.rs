//! The named captures of a configuration: as in nginx, each is a variable everywhere in it. And the variables that directives
//! define which only nginx knows, so that using one is not told beside the directive.
//!
//! Only names are looked for here; the expressions are compiled, and their errors found, where they stand.
//! Next: `regular_expression`; `template`, which is told of these names.

use crate::tree::Directive;

/// The names of all captures in the expressions of `server_name` and `location`.
pub fn collect(tree: &[Directive]) -> Vec<Box<str>> {
    let mut names = Vec::new();
    for directive in tree {
        if matches!(directive.name.text.as_str(), "server_name" | "location") {
            let expressions = directive.args.iter().map(|word| word.text.as_str());
            expressions.for_each(|text| names_in(text, &mut names));
        }
        // Blocks in blocks are bounded by the parser.
        names.extend(collect(directive.block.as_deref().unwrap_or_default()));
    }
    names.sort();
    names.dedup();
    names
}

/// Directives that define a variable and are not there yet, with the place of its name among their words, counted from the
/// end where it is negative; the names of captures in those without a place.
const DEFINING: &[(&str, Option<isize>)] = &[
    ("auth_jwt_claim_set", Some(0)),
    ("auth_jwt_header_set", Some(0)),
    ("auth_request_set", Some(0)),
    ("geo", Some(-1)),
    ("if", None),
    ("js_set", Some(0)),
    ("js_var", Some(0)),
    ("keyval", Some(1)),
    ("map", Some(1)),
    ("num_map", Some(1)),
    ("perl_set", Some(0)),
    ("rewrite", None),
    ("set", Some(0)),
    ("split_clients", Some(1)),
];

/// The variables that directives define which are not there yet.
pub fn defined_elsewhere(tree: &[Directive]) -> Vec<Box<str>> {
    let mut names = Vec::new();
    for directive in tree {
        let name = directive.name.text.as_str();
        match DEFINING.iter().find(|(known, _)| *known == name) {
            Some((_, Some(place))) => {
                let count = directive.args.len();
                let at =
                    if *place < 0 { count.checked_add_signed(*place) } else { usize::try_from(*place).ok() };
                let word = at.and_then(|at| directive.args.get(at));
                names.extend(word.and_then(|word| word.text.strip_prefix('$')).map(Box::from));
            }
            Some((_, None)) => directive.args.iter().for_each(|word| names_in(&word.text, &mut names)),
            None => {}
        }
        if name == "map" {
            let keys = directive.block.iter().flatten().map(|entry| entry.name.text.as_str());
            keys.for_each(|key| names_in(key, &mut names));
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
