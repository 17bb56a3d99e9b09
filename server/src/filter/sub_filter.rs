//! `sub_filter`: texts of a body that others take the place of, also where they are cut in two.
//!
//! At each place the first text that fits is taken, in any case of its letters. Held back is only what may be the beginning of one:
//! less than the longest of them. Next: `chain`.

use super::body::{BodyFilter, Draft};
use super::coding;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::Substitution;
use millstream_wire::FieldId;
use std::sync::Arc;

/// Begins, where the answer is of a type in which texts are replaced.
pub(super) fn begin(request: &Request, draft: &mut Draft) -> Option<Box<dyn BodyFilter>> {
    let settings = &request.location().settings.sub_filter;
    let fields = draft.headers.view();
    if settings.list.is_empty() || draft.length == Some(0) || draft.status == 206 {
        return None;
    }
    // What is coded has none of these texts.
    let is_coded = fields.get(FieldId::ContentEncoding).is_some();
    // `*` is for answers without a type too.
    let is_listed = |media| coding::lists(&settings.types, media);
    if is_coded || !(settings.any_type || fields.get(FieldId::ContentType).is_some_and(is_listed)) {
        return None;
    }
    let texts: Vec<Text> =
        settings.list.iter().enumerate().filter_map(|(at, rule)| text(request, at, rule)).collect();
    if texts.is_empty() {
        return None;
    }
    draft.rewrite(settings.last_modified);
    Some(Box::new(Search::new(texts, settings.list.clone(), settings.once)))
}

/// A text that is looked for.
struct Text {
    /// In lower case.
    from: Vec<u8>,
    /// Which rule it is.
    rule: usize,
    /// What stands for it, once it was found.
    to: Option<Vec<u8>>,
}

fn text(request: &Request, rule: usize, substitution: &Substitution) -> Option<Text> {
    let mut from = value(&substitution.from, request);
    from.make_ascii_lowercase();
    (!from.is_empty()).then_some(Text { from, rule, to: None })
}

struct Search {
    texts: Vec<Text>,
    rules: Arc<[Substitution]>,
    once: bool,
    /// The bytes that some text begins with.
    first: [bool; 256],
    /// What may be the beginning of a text.
    held: Vec<u8>,
}

/// What is at a place.
enum Here {
    /// The beginning of none.
    Nothing,
    /// A whole text, by its place in the list.
    Text(usize),
    /// Perhaps one, of which more is to come.
    Beginning,
}

impl Search {
    fn new(texts: Vec<Text>, rules: Arc<[Substitution]>, once: bool) -> Search {
        let mut search = Search { texts, rules, once, first: [false; 256], held: Vec::new() };
        search.note_first();
        search
    }

    fn note_first(&mut self) {
        self.first = [false; 256];
        for text in &self.texts {
            self.first[usize::from(text.from[0])] = true;
            self.first[usize::from(text.from[0].to_ascii_uppercase())] = true;
        }
    }

    fn here(&self, rest: &[u8], is_last: bool) -> Here {
        for (at, text) in self.texts.iter().enumerate() {
            let common = rest.len().min(text.from.len());
            if !rest[..common].eq_ignore_ascii_case(&text.from[..common]) {
                continue;
            }
            if common == text.from.len() {
                return Here::Text(at);
            }
            if !is_last {
                return Here::Beginning;
            }
        }
        Here::Nothing
    }

    /// Replaces in a text; gives how much of it is done with.
    fn replace(&mut self, request: &Request, text: &[u8], is_last: bool, out: &mut Vec<u8>) -> usize {
        let (mut copied, mut at) = (0, 0);
        while let Some(next) = text[at..].iter().position(|&byte| self.first[usize::from(byte)]) {
            at += next;
            match self.here(&text[at..], is_last) {
                Here::Nothing => at += 1,
                Here::Beginning => {
                    out.extend_from_slice(&text[copied..at]);
                    return at;
                }
                Here::Text(found) => {
                    out.extend_from_slice(&text[copied..at]);
                    at += self.texts[found].from.len();
                    copied = at;
                    self.put(request, found, out);
                }
            }
        }
        out.extend_from_slice(&text[copied..]);
        text.len()
    }

    fn put(&mut self, request: &Request, found: usize, out: &mut Vec<u8>) {
        let text = &mut self.texts[found];
        let rule = &self.rules[text.rule];
        out.extend_from_slice(text.to.get_or_insert_with(|| value(&rule.to, request)));
        if self.once {
            self.texts.remove(found);
            self.note_first();
        }
    }
}

impl BodyFilter for Search {
    fn take(&mut self, request: &Request, piece: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let done = self.replace(request, piece, false, out);
            self.held.extend_from_slice(&piece[done..]);
            return;
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        let done = self.replace(request, &text, false, out);
        self.held.extend_from_slice(&text[done..]);
    }

    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> bool {
        let text = std::mem::take(&mut self.held);
        self.replace(request, &text, true, out);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Draft, begin};
    use crate::fixture::{admitted, worker};
    use millstream_wire::Headers;

    /// What comes of a body in two pieces, cut at each place; all must be the same.
    fn replaced(filters: &str, body: &str) -> String {
        let worker = worker(&format!("server {{ listen 80; location / {{ {filters} }} }}"));
        let request = admitted(&worker, "GET /?a=NeW&b=old HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut results = (0..=body.len()).map(|cut| {
            let mut headers = Headers::default();
            headers.push(b"Content-Type", b"text/html; charset=utf-8");
            let mut draft = Draft { status: 200, headers, length: None };
            let mut filter = begin(&request, &mut draft).expect("it has something to do");
            let mut out = Vec::new();
            for piece in [&body.as_bytes()[..cut], &body.as_bytes()[cut..]] {
                filter.take(&request, piece, &mut out);
            }
            assert!(filter.end(&request, &mut out));
            String::from_utf8(out).expect("it is UTF-8")
        });
        let first = results.next().expect("there is a cut at 0");
        results.for_each(|other| assert_eq!(other, first, "{filters}"));
        first
    }

    #[test]
    fn texts_are_replaced_wherever_they_are_cut() {
        for (filters, body, expected) in [
            ("sub_filter foo bar;", "a foo b foo", "a bar b foo"),
            ("sub_filter FoO bar; sub_filter_once off;", "fOo foofoo fo", "bar barbar fo"),
            ("sub_filter aab X; sub_filter_once off;", "aaab aaaab aa", "aX aaX aa"),
            ("sub_filter ab 1; sub_filter abc 2; sub_filter_once off;", "abc ab abcd", "1c 1 1cd"),
            ("sub_filter abcd 1; sub_filter bc 2; sub_filter_once off;", "abc abcd abc", "a2 1 a2"),
            ("sub_filter a 1; sub_filter b 2;", "abab", "12ab"),
            ("sub_filter $arg_a \"<$arg_b>\"; sub_filter_once off;", "new NEW", "<old> <old>"),
            ("sub_filter $arg_none x; sub_filter b \"\";", "abc", "ac"),
            ("sub_filter é e; sub_filter_once off;", "é É", "e É"),
        ] {
            assert_eq!(replaced(filters, body), expected, "{filters}");
        }
    }
}
