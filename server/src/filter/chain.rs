//! What an answer's body goes through before it is coded: a list of filters, empty for most answers.
//!
//! ```text
//! body → gunzip → sub_filter → (addition) → charset → ssi → coding → framing
//! ```
//! Each filter sees the head as the one before leaves it, and says with it whether it has anything to do; then it is given the body
//! piece by piece. What it holds back has a bound, and so has what comes of one step: a filter that has more to say than that is asked
//! again before it is given more, and what it was not given waits. The order is nginx's. Next: the filters; `client/answer`, which has
//! the chain of the answer that is on its way and takes from it what there is room for.

use super::addition::{self, Addition};
use super::backlog::Backlog;
use super::body::{BodyFilter, Draft, Taken};
use super::ssi::{self, Ssi};
use super::{charset, gunzip, sub_filter};
use crate::request::Request;
use millstream_conf::model::Phases;
use millstream_wire::{Fields, Headers};

const FILTERED_AT_ONCE: usize = 16 * 1024;

pub struct Chain(Vec<ChainLink>);

struct ChainLink {
    filter: Box<dyn BodyFilter>,
    backlog: Backlog,
    is_full: bool,
    is_last: bool,
    has_ended: bool,
}

impl ChainLink {
    fn new(filter: Box<dyn BodyFilter>) -> ChainLink {
        ChainLink { filter, backlog: Backlog::default(), is_full: false, is_last: false, has_ended: false }
    }

    fn is_behind(&self) -> bool {
        !self.has_ended && (self.is_full || self.is_last || !self.backlog.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainStep {
    Done(usize),
    Dry,
    Ended,
    Broken,
}

type Begin = fn(&Request, &mut Draft) -> Option<Box<dyn BodyFilter>>;

pub struct Changes {
    pub chain: Option<Chain>,
    pub addition: Option<Addition>,
    pub ssi: Option<Box<Ssi>>,
    pub draft: Draft,
}

const BEFORE_ADDITION: [Begin; 2] = [gunzip::begin, sub_filter::begin];
const BEHIND_ADDITION: [Begin; 1] = [charset::begin];

/// Whether the location has filters, or trailers evaluated at the end.
pub fn is_there(request: &Request) -> bool {
    request.location().settings.phases.has(Phases::FILTERS)
}

pub fn of(request: &Request, status: u16, fields: Fields<'_>, length: Option<u64>) -> Option<Changes> {
    if !is_there(request) {
        return None;
    }
    let mut draft = Draft { status, headers: Headers::from(fields), length };
    let mut filters: Vec<_> = BEFORE_ADDITION.iter().filter_map(|begin| begin(request, &mut draft)).collect();
    let addition = addition::begin(request, &mut draft);
    filters.extend(BEHIND_ADDITION.iter().filter_map(|begin| begin(request, &mut draft)));
    let chain = (!filters.is_empty()).then(|| Chain(filters.into_iter().map(ChainLink::new).collect()));
    let ssi = ssi::begin(request, &mut draft);
    let is_changed = chain.is_some() || addition.is_some() || ssi.is_some();
    is_changed.then_some(Changes { chain, addition, ssi, draft })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    None,
    Bytes,
    Length,
}

/// For a response of 200: tells whether it supports ranges.
pub fn change(request: &Request, fields: Fields<'_>, length: Option<u64>) -> Change {
    match of(request, 200, fields, length) {
        None => Change::None,
        Some(changes) if changes.draft.length == length => Change::Bytes,
        Some(_) => Change::Length,
    }
}

impl Chain {
    pub fn put(&mut self, piece: &[u8]) {
        if let Some(first) = self.0.first_mut() {
            first.backlog.put(piece);
        }
    }

    pub fn close(&mut self) {
        if let Some(first) = self.0.first_mut() {
            first.is_last = true;
        }
    }

    pub fn held(&self) -> usize {
        self.0.iter().map(|link| link.backlog.len()).sum()
    }

    /// Runs the last filter that has input; appends the chain's output.
    pub fn step(&mut self, request: &Request, out: &mut Vec<u8>) -> ChainStep {
        let Some(at) = self.0.iter().rposition(ChainLink::is_behind) else {
            let has_ended = self.0.last().is_none_or(|last| last.has_ended);
            return if has_ended { ChainStep::Ended } else { ChainStep::Dry };
        };
        let (before, behind) = self.0.split_at_mut(at + 1);
        let (link, next) = (&mut before[at], behind.first_mut());
        let given = link.backlog.first(FILTERED_AT_ONCE);
        let is_last = link.is_last && given.len() == link.backlog.len();
        let mut piece = given;
        let mut end = next.map(|next| (next.backlog.end(), &mut next.is_last));
        let out = end.as_mut().map_or(out, |(backlog, _)| backlog);
        let came_before = out.len();
        let taken = link.filter.take(request, &mut piece, is_last, out);
        let (used, came) = (given.len() - piece.len(), out.len() - came_before);
        link.backlog.advance(used);
        link.is_full = taken == Taken::Some;
        match taken {
            Taken::Broken => return ChainStep::Broken,
            Taken::All if is_last => {
                link.has_ended = true;
                if let Some((_, is_last)) = end {
                    *is_last = true;
                }
            }
            Taken::All | Taken::Some => {}
        }
        ChainStep::Done(used + came)
    }
}

#[cfg(test)]
mod tests {
    use super::super::body::ENOUGH;
    use super::*;
    use crate::fixture::{admitted, worker};

    #[test]
    fn of_much_that_comes_of_little_only_some_comes_at_a_time_whatever_the_filters() {
        let filters =
            "gunzip on; sub_filter a $arg_to; sub_filter b $arg_to; sub_filter_once off; charset utf-8;
            source_charset koi8-r;";
        let worker = worker(&format!(
            "charset_map koi8-r utf-8 {{ C0 D18E; C1 D0B0; }} server {{ listen 80; location / {{ {filters} }} }}"
        ));
        let to = "c".repeat(5000);
        let request = admitted(&worker, &format!("GET /?to={to} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, &[b'a'; 3000]).expect("memory takes it");
        let body = encoder.finish().expect("memory takes it");
        let mut headers = Headers::default();
        headers.push(b"Content-Type", b"text/html");
        headers.push(b"Content-Encoding", b"gzip");
        let changes =
            of(&request, 200, headers.view(), Some(body.len() as u64)).expect("they have something to do");
        let mut chain = changes.chain.expect("they are filters");
        assert_eq!(chain.0.len(), 3);
        chain.put(&body);
        chain.close();
        let mut length = 0;
        let last = loop {
            let mut out = Vec::new();
            let step = chain.step(&request, &mut out);
            assert!(out.len() <= 2 * ENOUGH, "{}", out.len());
            assert!(chain.held() <= 3 * ENOUGH, "{}", chain.held());
            length += out.len();
            if !matches!(step, ChainStep::Done(_)) {
                break step;
            }
        };
        assert_eq!((last, length), (ChainStep::Ended, 3000 * 5000));
    }
}
