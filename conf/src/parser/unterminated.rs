//! Directives that swallowed the next one because the `;` at the end of a line is missing.
//!
//! To the grammar `root /srv` and a line end and `index a.html;` is one directive with three words, so this pass
//! asks who knows the names. It takes a line for a directive of its own only where its first word is such a name
//! and stands no deeper than the directive before it: a continued line is indented.

use super::indentation;
use crate::diagnostics::Diagnostics;
use crate::source::{Sources, Span};
use crate::tree::Directive;

/// Splits such directives in the whole tree, and reports each at the place of the missing `;`. `is_name`
/// tells names of directives. Call it once, after the includes are spliced.
pub fn split_unterminated(
    tree: &mut Vec<Directive>,
    sources: &Sources,
    diagnostics: &mut Diagnostics,
    is_name: &dyn Fn(&str) -> bool,
) {
    let mut index = 0;
    while index < tree.len() {
        if let Some(at) = swallowed(&tree[index], sources, is_name) {
            let rest = split(&mut tree[index], at, diagnostics);
            tree.insert(index + 1, rest);
        }
        if let Some(block) = &mut tree[index].block {
            split_unterminated(block, sources, diagnostics, is_name);
        }
        index += 1;
    }
}

/// The first of its words that is the name of the next directive.
fn swallowed(directive: &Directive, sources: &Sources, is_name: &dyn Fn(&str) -> bool) -> Option<usize> {
    let text = &sources.file(directive.name.span.file).text;
    let column = indentation(text, directive.name.span.start)?;
    let begins_a_directive = |span: Span| indentation(text, span.start).is_some_and(|own| own <= column);
    directive
        .args
        .iter()
        .position(|word| !word.quoted && is_name(&word.text) && begins_a_directive(word.span))
}

/// Cuts a directive before its word `at`; the part cut off takes the block with it.
fn split(directive: &mut Directive, at: usize, diagnostics: &mut Diagnostics) -> Directive {
    let mut rest = directive.args.split_off(at).into_iter();
    let last = directive.args.last().unwrap_or(&directive.name).span;
    let name = rest.next().expect("`swallowed` found the word at this index");
    let span = Span { start: name.span.start, ..directive.span };
    let next = Directive { name, args: rest.collect(), block: directive.block.take(), span };
    directive.span.end = last.end;
    let after = Span { start: last.end, ..last };
    diagnostics
        .error(after, format!("directive \"{}\" is not terminated by \";\"", directive.name.text))
        .help("put a \";\" here");
    next
}
