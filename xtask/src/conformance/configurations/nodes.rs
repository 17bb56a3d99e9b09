//! A configuration as a tree that can be edited and written again; words that nobody edits stay as they were written.

use millstream_conf::diagnostics::{Diagnostics, Severity};
use millstream_conf::parser;
use millstream_conf::source::Sources;
use millstream_conf::tree::{Directive, Word as Read};
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    raw: String,
}

impl Word {
    pub(super) fn new(text: impl Into<String>) -> Word {
        let text = text.into();
        let plain = !text.is_empty() && !text.contains([' ', '\t', ';', '{', '}', '"', '\'', '\\', '#']);
        let raw = if plain {
            text.clone()
        } else {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        };
        Word { text, raw }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) words: Vec<Word>,
    pub(super) block: Option<Vec<Node>>,
}

impl Node {
    pub(super) fn new(words: &[&str]) -> Node {
        Node { words: words.iter().map(|word| Word::new(*word)).collect(), block: None }
    }

    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", |word| &word.text)
    }

    /// From 1.
    pub(super) fn argument(&self, number: usize) -> Option<&str> {
        self.words.get(number).map(|word| word.text.as_str())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.block.iter().flatten().any(|node| node.name() == name)
    }
}

pub(super) fn parse(path: &str, text: &str) -> Result<Vec<Node>, String> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add(PathBuf::from(path), text.as_bytes().to_vec());
    let tree = parser::parse(file, &sources, &mut diagnostics);
    if let Some(error) = diagnostics.sorted().into_iter().find(|found| found.severity == Severity::Error) {
        let place = error.span.map_or_else(|| path.to_owned(), |span| sources.locate(span));
        return Err(format!("{place}: {}", error.message));
    }
    Ok(tree.iter().map(|directive| node(directive, text)).collect())
}

fn node(directive: &Directive, text: &str) -> Node {
    let word = |word: &Read| {
        let raw = text.get(word.span.start as usize..word.span.end as usize).unwrap_or(&word.text);
        Word { text: word.text.clone(), raw: raw.to_owned() }
    };
    let words = std::iter::once(&directive.name).chain(&directive.args).map(word).collect();
    let block = directive.block.as_ref().map(|block| block.iter().map(|inner| node(inner, text)).collect());
    Node { words, block }
}

pub(super) fn written(nodes: &[Node]) -> String {
    let mut out = String::new();
    write(nodes, 0, &mut out);
    out
}

fn write(nodes: &[Node], depth: usize, out: &mut String) {
    for node in nodes {
        out.push_str(&"    ".repeat(depth));
        let words: Vec<&str> = node.words.iter().map(|word| word.raw.as_str()).collect();
        out.push_str(&words.join(" "));
        match &node.block {
            Some(block) => {
                out.push_str(" {\n");
                write(block, depth + 1, out);
                out.push_str(&"    ".repeat(depth));
                out.push_str("}\n");
            }
            None => out.push_str(";\n"),
        }
    }
}
