//! Changes to the text of one file: words replaced, directives taken out, words put in. Every other byte stays as it is, comments too.
//!
//! Text in, text out; what is to be changed is `rewriting`'s matter. No change adds a line in the middle, so a line has the same number in
//! both files.

use millstream_conf::lexer;
use millstream_conf::source::Span;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edit {
    start: usize,
    end: usize,
    text: String,
}

impl Edit {
    pub(super) fn word(span: Span, word: &str) -> Edit {
        Edit { start: span.start as usize, end: span.end as usize, text: lexer::quoted(word) }
    }

    pub(super) fn inside(block: Span, text: &str) -> Edit {
        Edit { start: block.end as usize, end: block.end as usize, text: format!(" {text}") }
    }

    pub(super) fn end(file: &[u8], text: &str) -> Edit {
        let line_end = if file.last().is_some_and(|&last| last != b'\n') { "\n" } else { "" };
        Edit { start: file.len(), end: file.len(), text: format!("{line_end}{text}") }
    }

    /// Comments out a directive without a block, or removes it if it shares its line.
    pub(super) fn take_out(file: &[u8], span: Span) -> Edit {
        let (start, end) = (span.start as usize, span.end as usize);
        let before = file[..start].iter().rev().take_while(|&&byte| byte != b'\n');
        let after = file[end..].iter().take_while(|&&byte| byte != b'\n');
        let is_alone = before.chain(after).all(u8::is_ascii_whitespace);
        let written = String::from_utf8_lossy(&file[start..end]);
        let text = match is_alone {
            true => format!("# {}", written.replace('\n', "\n# ")),
            // The lines below keep their numbers.
            false => "\n".repeat(written.matches('\n').count()),
        };
        Edit { start, end, text }
    }
}

/// Of two edits of the same bytes the first wins.
pub(super) fn apply(file: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut edits = edits.to_vec();
    edits.sort();
    edits.dedup();
    let mut text = Vec::with_capacity(file.len() + 256);
    let mut at = 0;
    for edit in edits.iter().filter(|edit| edit.end <= file.len()) {
        if edit.start < at {
            continue;
        }
        text.extend_from_slice(&file[at..edit.start]);
        text.extend_from_slice(edit.text.as_bytes());
        at = edit.end;
    }
    text.extend_from_slice(&file[at..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_conf::source::FileId;

    fn span(file: &str, word: &str) -> Span {
        let start = file.find(word).expect("it is there");
        Span { file: FileId(0), start: start as u32, end: (start + word.len()) as u32 }
    }

    #[test]
    fn what_is_changed_leaves_all_else_and_the_numbers_of_lines() {
        let file = "user www-data;\npid /run/nginx.pid; # the pid\nhttp {\n  a 1; b\n 2; c 3;\n}";
        let edits = [
            Edit::word(span(file, "/run/nginx.pid"), "/run/my own.pid"),
            Edit::word(span(file, "/run/nginx.pid"), "/run/my own.pid"),
            Edit::take_out(file.as_bytes(), span(file, "user www-data;")),
            Edit::take_out(file.as_bytes(), span(file, "b\n 2;")),
            Edit::inside(span(file, "http {"), "x y;"),
            Edit::end(file.as_bytes(), "# end\n"),
        ];
        let expected =
            "# user www-data;\npid \"/run/my own.pid\"; # the pid\nhttp { x y;\n  a 1; \n c 3;\n}\n# end\n";
        assert_eq!(String::from_utf8_lossy(&apply(file.as_bytes(), &edits)), expected);
    }
}
