//! An answer that is put together: what it says itself, and what subrequests answer, each in its place.
//!
//! Subrequests are asked at once, each in a task of its own, and go on until the bounded pipe to here is full; what comes out of
//! them goes on as it comes once everything before it has. When the answer is dropped, they hear of it. Before:
//! `filter/chain`, which says what is asked; next: `sending`, which sends it; `serve/subrequest`, which answers.

use super::end::Inside;
use super::sending::Answer;
use super::{Answerer, Client};
use crate::filter::addition::Addition;
use crate::request::{Request, Wanted};
use millstream_net::pipe::{End, Pipe};
use millstream_wire::{Fields, Headers};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes of a subrequest's answer that wait for their turn.
const ROOM: usize = 64 * 1024;
/// Bytes framed before they are written even though more is there.
const AT_ONCE: usize = 32 * 1024;

/// How far putting together has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Assembled {
    /// All that is known by now is framed.
    All,
    /// There is more than is framed at once.
    Some,
    /// A subrequest has not answered yet.
    Waits,
    /// What a subrequest answers broke off, and so does this.
    Cut,
}

/// The parts that are not framed yet.
pub(super) struct Assembly {
    parts: VecDeque<Part>,
    /// Bytes in them.
    held: usize,
    /// What is asked for behind the last.
    after: Option<Box<str>>,
    /// Whether there are no more, and the fields that follow them.
    end: Option<Option<Headers>>,
}

enum Part {
    Text(Vec<u8>),
    Included(Included),
}

/// A subrequest whose answer is read here.
struct Included(Rc<Inside>);

impl Included {
    fn ask(request: &mut Request, answerer: Answerer, path: &str) -> Included {
        let inside = Rc::new(Inside { pipe: Pipe::new(ROOM), wants_head: false, status: Cell::new(0) });
        answerer(request.subrequest(path.as_bytes(), Wanted::Body), inside.clone());
        Included(inside)
    }
}

impl Drop for Included {
    fn drop(&mut self) {
        self.0.pipe.leave();
    }
}

impl Assembly {
    /// Begins with what stands before the answer itself.
    pub(super) fn begin(addition: Addition, request: &mut Request, answerer: Answerer) -> Box<Assembly> {
        let Addition { before, after } = addition;
        let before = before.map(|path| Part::Included(Included::ask(request, answerer, &path)));
        Box::new(Assembly { parts: before.into_iter().collect(), held: 0, after, end: None })
    }
}

impl Client {
    /// Ends the body: nothing more is pushed. Trailer fields are sent where it is chunked.
    pub fn end(&mut self, request: &mut Request, trailers: Option<Fields<'_>>) {
        let Some(answer) = &mut self.answer else { return };
        if !answer.end_chain(request) {
            return;
        }
        let Some(assembly) = &mut answer.assembly else { return answer.finish(request, trailers) };
        if let Some(path) = assembly.after.take() {
            assembly.parts.push_back(Part::Included(Included::ask(request, self.answerer, &path)));
        }
        assembly.end = Some(trailers.map(|fields| Headers::copied_from(fields, |_, _, _| true)));
    }
}

impl Answer {
    /// Bytes that wait for what stands before them.
    pub(super) fn held(&self) -> usize {
        self.assembly.as_ref().map_or(0, |assembly| assembly.held)
    }

    /// Takes some of the answer itself, once it has gone through the filters.
    pub(super) fn put(&mut self, request: &mut Request, text: &[u8]) {
        match &mut self.assembly {
            Some(assembly) if !assembly.parts.is_empty() => {
                assembly.held += text.len();
                assembly.parts.push_back(Part::Text(text.to_vec()));
            }
            _ => self.code(request, text),
        }
    }

    /// Frames what is there, in its order.
    pub(super) fn assemble(&mut self, context: &mut Context<'_>, request: &mut Request) -> Assembled {
        while let Some(assembly) = &mut self.assembly {
            let read = match assembly.parts.front_mut() {
                None => match assembly.end.take() {
                    None => return Assembled::All,
                    Some(trailers) => {
                        self.assembly = None;
                        self.finish(request, trailers.as_ref().map(Headers::view));
                        return Assembled::All;
                    }
                },
                Some(_) if self.out.len() - self.written >= AT_ONCE => return Assembled::Some,
                Some(Part::Text(text)) => {
                    assembly.held -= text.len();
                    let text = std::mem::take(text);
                    assembly.parts.pop_front();
                    text
                }
                Some(Part::Included(included)) => match included.0.pipe.poll_read(context) {
                    Poll::Pending => return Assembled::Waits,
                    Poll::Ready(Ok(bytes)) => bytes,
                    Poll::Ready(Err(End::Cut)) => return Assembled::Cut,
                    Poll::Ready(Err(End::Whole)) => {
                        assembly.parts.pop_front();
                        continue;
                    }
                },
            };
            self.code(request, &read);
        }
        Assembled::All
    }
}
