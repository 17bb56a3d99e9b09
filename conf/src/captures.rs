//! The named captures of a configuration: as in nginx, each is a variable everywhere in it.
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
