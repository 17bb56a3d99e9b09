//! `sub_filter`: texts of a body that others take the place of, also where they are cut in two.
//!
//! At each place the first text that fits is taken, in any case of its letters. Held back is only what may be the beginning of one:
//! less than the longest of them. Each text is looked for in time linear in the body, whatever it is (Knuth, Morris and Pratt, "Fast
//! pattern matching in strings"), for it may be the client's. Next: `chain`.

use super::body::{BodyFilter, Draft, ENOUGH, Taken};
use super::coding;
use crate::request::Request;
use crate::variables::value;
use memchr::memchr2;
use millstream_conf::model::Substitution;
use millstream_wire::FieldId;
use std::sync::Arc;

pub(super) fn begin(request: &Request, draft: &mut Draft) -> Option<Box<dyn BodyFilter>> {
    let settings = &request.location().settings.sub_filter;
    let fields = draft.headers.view();
    if settings.list.is_empty() || draft.length == Some(0) || draft.status == 206 {
        return None;
    }
    // What is coded has none of these texts.
    let is_coded = fields.get(FieldId::ContentEncoding).is_some();
    if is_coded || !coding::covers_type(settings.any_type, &settings.types, fields) {
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

/// A text to find, and the state of its search.
struct Text {
    from: Vec<u8>,
    /// Knuth-Morris-Pratt: for each prefix, by its last byte, the length of its longest border.
    borders: Vec<usize>,
    rule: usize,
    to: Option<Vec<u8>>,
    /// Bytes of the body searched.
    seen: usize,
    /// Bytes of the text matched at the end of those; all if it was found.
    known: usize,
}

fn text(request: &Request, rule: usize, substitution: &Substitution) -> Option<Text> {
    let mut from = value(&substitution.from, request);
    from.make_ascii_lowercase();
    let borders = borders(&from);
    (!from.is_empty()).then_some(Text { from, borders, rule, to: None, seen: 0, known: 0 })
}

fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; text.len()];
    let mut known = 0;
    for at in 1..text.len() {
        while known > 0 && text[known] != text[at] {
            known = borders[known - 1];
        }
        known += usize::from(text[known] == text[at]);
        borders[at] = known;
    }
    borders
}

impl Text {
    /// Searches from a position; stops behind the first match, or at the end of the input.
    fn find(&mut self, body: &[u8], from: usize) {
        while self.known > 0 && self.seen - self.known < from {
            self.known = self.borders[self.known - 1];
        }
        self.seen = self.seen.max(from);
        let (lower, upper) = (self.from[0], self.from[0].to_ascii_uppercase());
        while self.known < self.from.len() && self.seen < body.len() {
            if self.known == 0 {
                let Some(first) = memchr2(lower, upper, &body[self.seen..]) else {
                    self.seen = body.len();
                    return;
                };
                self.seen += first + 1;
                self.known = 1;
                continue;
            }
            let byte = body[self.seen].to_ascii_lowercase();
            while self.known > 0 && self.from[self.known] != byte {
                self.known = self.borders[self.known - 1];
            }
            self.known += usize::from(self.from[self.known] == byte);
            self.seen += 1;
        }
    }

    fn is_found(&self) -> bool {
        self.known == self.from.len()
    }

    /// Where the full or partial match starts.
    fn start(&self) -> usize {
        self.seen - self.known
    }
}

struct Search {
    texts: Vec<Text>,
    rules: Arc<[Substitution]>,
    once: bool,
    body: Vec<u8>,
    done: usize,
}

impl Search {
    fn new(texts: Vec<Text>, rules: Arc<[Substitution]>, once: bool) -> Search {
        Search { texts, rules, once, body: Vec::new(), done: 0 }
    }

    /// The leftmost text that matches or may still match; of several there the first in the list.
    fn first(&mut self, is_last: bool) -> Option<usize> {
        let mut first: Option<(usize, usize)> = None;
        for (at, text) in self.texts.iter_mut().enumerate() {
            text.find(&self.body, self.done);
            let is_there = text.is_found() || text.known > 0 && !is_last;
            if is_there && first.is_none_or(|(start, _)| text.start() < start) {
                first = Some((text.start(), at));
            }
        }
        first.map(|(_, at)| at)
    }

    /// Replaces up to a possible partial match. False if it stopped early, with enough output.
    fn replace(&mut self, request: &Request, is_last: bool, out: &mut Vec<u8>) -> bool {
        while out.len() < ENOUGH {
            let Some(at) = self.first(is_last) else {
                out.extend_from_slice(&self.body[self.done..]);
                self.done = self.body.len();
                return true;
            };
            let text = &mut self.texts[at];
            out.extend_from_slice(&self.body[self.done..text.start()]);
            self.done = text.start();
            if !text.is_found() {
                return true;
            }
            self.done = text.seen;
            let rule = &self.rules[text.rule];
            out.extend_from_slice(text.to.get_or_insert_with(|| value(&rule.to, request)));
            if self.once {
                self.texts.remove(at);
            }
        }
        false
    }

    fn put(&mut self, piece: &[u8]) {
        self.body.drain(..self.done);
        self.body.extend_from_slice(piece);
        for text in &mut self.texts {
            text.seen -= self.done;
        }
        self.done = 0;
    }
}

impl BodyFilter for Search {
    fn take(&mut self, request: &Request, piece: &mut &[u8], is_last: bool, out: &mut Vec<u8>) -> Taken {
        loop {
            if !self.replace(request, is_last && piece.is_empty(), out) {
                return Taken::Some;
            }
            if piece.is_empty() {
                return Taken::All;
            }
            self.put(std::mem::take(piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BodyFilter, Draft, Search, Taken, Text, begin, borders};
    use crate::fixture::{admitted, worker};
    use millstream_wire::Headers;

    /// The output for a body cut into two pieces at each position; all must agree.
    fn replaced(filters: &str, body: &str) -> String {
        let worker = worker(&format!("server {{ listen 80; location / {{ {filters} }} }}"));
        let request = admitted(&worker, "GET /?a=NeW&b=old HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut results = (0..=body.len()).map(|cut| {
            let mut headers = Headers::default();
            headers.push(b"Content-Type", b"text/html; charset=utf-8");
            let mut draft = Draft { status: 200, headers, length: None };
            let mut filter = begin(&request, &mut draft).expect("it has something to do");
            let mut out = Vec::new();
            for (mut piece, is_last) in [(&body.as_bytes()[..cut], false), (&body.as_bytes()[cut..], true)] {
                loop {
                    let mut some = Vec::new();
                    let taken = filter.take(&request, &mut piece, is_last, &mut some);
                    out.append(&mut some);
                    if taken == Taken::All {
                        break;
                    }
                }
            }
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
            ("sub_filter aaab 1; sub_filter aa 2; sub_filter_once off;", "aaaaab aaaa aab", "21 22 2b"),
            ("sub_filter abab 1; sub_filter b 2; sub_filter_once off;", "ababab abaab", "1a2 a2aa2"),
            (
                "sub_filter abcdef 1; sub_filter cd 2; sub_filter e 3; sub_filter_once off;",
                "abcde abcdef cde",
                "ab23 1 23",
            ),
        ] {
            assert_eq!(replaced(filters, body), expected, "{filters}");
        }
    }

    fn replaced_slowly(texts: &[(&str, &str)], body: &str) -> String {
        let (mut out, mut at) = (String::new(), 0);
        while at < body.len() {
            match texts.iter().find(|(from, _)| body[at..].starts_with(from)) {
                Some((from, to)) => {
                    out.push_str(to);
                    at += from.len();
                }
                None => {
                    out.push_str(&body[at..=at]);
                    at += 1;
                }
            }
        }
        out
    }

    proptest::proptest! {
        #[test]
        fn what_is_found_fast_is_what_is_found_slowly(
            froms in proptest::collection::vec("[ab]{1,5}", 1..4),
            body in "[abc]{0,40}",
        ) {
            let texts: Vec<_> = froms.iter().map(String::as_str).zip(["1", "2", "3"]).collect();
            let rules: Vec<_> = texts.iter().map(|(from, to)| format!("sub_filter {from} {to};")).collect();
            let directives = format!("{} sub_filter_once off;", rules.concat());
            assert_eq!(replaced(&directives, &body), replaced_slowly(&texts, &body), "{directives} {body}");
        }
    }

    #[test]
    fn a_text_that_fits_nearly_everywhere_costs_no_more_than_another() {
        let from = format!("{}b", "a".repeat(100_000));
        let worker = worker("server { listen 80; location / { sub_filter b c; } }");
        let request = admitted(&worker, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let rules = request.location().settings.sub_filter.list.clone();
        let from = from.into_bytes();
        let texts = vec![Text { borders: borders(&from), from, rule: 0, to: None, seen: 0, known: 0 }];
        let mut search = Search::new(texts, rules, false);
        let body = "a".repeat(3_000_000) + "b";
        let (mut piece, mut out) = (body.as_bytes(), Vec::new());
        // One by one that would be 300 thousand million bytes to compare.
        while search.take(&request, &mut piece, true, &mut out) != Taken::All {
            out.drain(..out.len() - 2);
        }
        assert!(out.ends_with(b"ac"));
    }
}
