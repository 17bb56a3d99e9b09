//! Any bytes as a configuration: parsed, split where a `;` is missing, every word compiled as a template, as values
//! and as an expression. Nothing may panic, no span may leave its file, and every finding must be printable.
//!
//! An `include` finds nothing: the prefix is a directory that does not exist. Beside it: `request_head`, `chunked`.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::include::{self, ConfPrefix};
use millstream_conf::slots::Slot;
use millstream_conf::source::Sources;
use millstream_conf::tree::{Directive, Word};
use millstream_conf::{parser, regular_expression, template, value};

fuzz_target!(|text: &[u8]| {
    // Absolute includes would read this machine's files, and `/dev/stdin` would wait for ever.
    if text.windows(7).any(|window| window == b"include") {
        return;
    }
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let prefix = ConfPrefix::of(Path::new("/nonexistent/nginx.conf"));
    let mut tree = include::parse_text("input", text, &prefix, &mut sources, &mut diagnostics);
    parser::split_unterminated(&mut tree, &sources, &mut diagnostics, &|name| name.starts_with('p'));
    let mut words = Vec::new();
    collect(&tree, text.len() as u32, &mut words);
    for word in words.into_iter().take(100) {
        let slots = [Slot { name: "name".into(), is_routed: true, is_set: false }];
        let scope = template::Scope { slots: &slots, made: &["made".into()], defined_elsewhere: &[] };
        let compiled = template::compile(word, &scope, &mut diagnostics);
        if template::is_literal(&word.text) {
            assert_eq!(compiled.as_literal(), Some(word.text.as_str()));
        }
        let _ = (value::size(&word.text), value::offset(&word.text), value::duration(&word.text));
        let _ = (value::flag(&word.text), value::number(&word.text));
        if let Some(expression) = word.text.strip_prefix('~') {
            regular_expression::compile(expression, false, word.span, &mut diagnostics);
        }
    }
    for finding in diagnostics.sorted() {
        if let Some(span) = finding.span {
            assert!(span.start <= span.end && span.end as usize <= text.len());
        }
        assert!(!finding.render(&sources).is_empty());
    }
});

/// All words of the tree, their spans checked on the way.
fn collect<'a>(tree: &'a [Directive], length: u32, words: &mut Vec<&'a Word>) {
    for directive in tree {
        assert!(directive.span.start < directive.span.end && directive.span.end <= length);
        for word in std::iter::once(&directive.name).chain(&directive.args) {
            assert!(word.span.start < word.span.end && word.span.end <= length);
            words.push(word);
        }
        collect(directive.block.as_deref().unwrap_or_default(), length, words);
    }
}
