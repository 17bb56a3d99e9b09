//! Words that the manual, help, errors and reports do not use, because the field has others (response, report, started, no one).
//!
//! Looked at are the sentences of `docs/` and of the pages beside the sources, and the texts in the code of the product. A text in backticks is
//! a name, and so is one without a space.

use super::crates;
use crate::source_text::texts;
use crate::tree::File;

/// Word, and what stands in its place.
const WORDS: [(&str, &str); 22] = [
    ("answer", "response"),
    ("answers", "responses, or responds"),
    ("answered", "served, responded"),
    ("answering", "responding"),
    ("say", "specify, report"),
    ("says", "specifies, reports"),
    ("said", "specified, reported"),
    ("saying", "specifying"),
    ("tell", "report, show"),
    ("tells", "reports, shows"),
    ("told", "reported"),
    ("telling", "reporting"),
    ("begun", "started"),
    ("beside", "next to, compared with"),
    ("whoever", "anyone who"),
    ("nobody", "no one"),
    ("anybody", "anyone"),
    ("everybody", "everyone"),
    ("in vain", "without effect, failed"),
    ("by and by", "eventually"),
    ("comes of it", "is the result"),
    ("has a part in", "is handled by"),
];

/// Pages whose sentences users read.
fn is_page(path: &str) -> bool {
    let is_markdown = path.ends_with(".md") && !path.starts_with("docs/decisions/");
    is_markdown && (!path.contains('/') || path.starts_with("docs/") || path.starts_with("examples/"))
}

/// Code whose texts users read: all of the product but its tests.
fn is_product(file: &File) -> bool {
    file.path.ends_with(".rs") && crates::floor(file.top()).is_some() && !file.is_test()
}

/// A breach for each such word.
pub(super) fn check(files: &[File]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut look = |path: &str, number: usize, text: &str| {
        let text = text.to_ascii_lowercase();
        for (word, instead) in WORDS.iter().filter(|(word, _)| has(&text, word)) {
            breaches.push(format!("{path}:{number}: \"{word}\" is not a word of the manual: {instead}"));
        }
    };
    for file in files {
        if is_page(&file.path) {
            for (number, line) in sentences(&file.text) {
                look(&file.path, number, &line);
            }
        } else if is_product(file) {
            for (number, text) in texts(&file.text).into_iter().filter(|(_, text)| text.contains(' ')) {
                look(&file.path, number, &without_names(&text));
            }
        }
    }
    breaches
}

/// The lines of a page that are no code, without what stands in backticks.
fn sentences(page: &str) -> Vec<(usize, String)> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if !is_fenced && !is_fence && !line.starts_with("    ") {
            lines.push((number + 1, without_names(line)));
        }
    }
    lines
}

/// A text without what stands in backticks, braces and tags, and without single words in quotes.
fn without_names(text: &str) -> String {
    let mut plain = String::new();
    let mut until = None;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        match until {
            Some(end) if c == end => until = None,
            Some(_) => {}
            None => match c {
                '`' => until = Some('`'),
                '{' => until = Some('}'),
                '<' => until = Some('>'),
                '"' if names(rest) => until = Some('"'),
                c => plain.push(c),
            },
        }
    }
    plain
}

/// Whether a single word stands between quotes, of which the first is behind.
fn names(rest: &str) -> bool {
    rest.split_once('"').is_some_and(|(word, _)| !word.contains(' '))
}

/// Whether a word or words stand by themselves in a text in lower case.
fn has(text: &str, words: &str) -> bool {
    let is_letter =
        |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.' | '/'));
    text.match_indices(words).any(|(at, _)| {
        let (before, behind) = (text[..at].chars().next_back(), text[at + words.len()..].chars().next());
        !is_letter(before) && !behind.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_the_manual_does_not_use_are_found_in_sentences_and_texts_alone() {
        let found = |path: &str, text: &str| check(&[File { path: path.into(), text: text.into() }]).len();
        assert_eq!(
            found("docs/a.md", "The API Answers.\n\n    it answers\n```\nnobody\n```\n`whoever`\n"),
            1
        );
        assert_eq!(
            found("conf/src/a.rs", "// nobody\nfn f() { g(\"nobody\", \"it says so\", \"{told} of\") }"),
            1
        );
        assert_eq!(found("conf/src/tests.rs", "fn f() { g(\"it says so\") }"), 0);
        assert_eq!(found("docs/decisions/1.md", "Nobody."), 0);
    }
}
