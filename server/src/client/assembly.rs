//! An answer that is put together: what it says itself, and what subrequests answer, each in its place.
//!
//! Subrequests are asked as soon as they are known, a few at a time, each in a task of its own, and go on until the bounded pipe to here
//! is full; what comes out of them goes on as it comes once everything before it has. When the answer is dropped, they hear of it.
//! Before: `filter/chain`, which says what is asked; next: `answer`, which frames it; `serve/subrequest`, which answers.

use super::Answerer;
use super::end::Inside;
use crate::failure;
use crate::filter::addition::Addition;
use crate::filter::ssi::{Ask, Ssi};
use crate::request::{Request, SubrequestPart};
use millstream_conf::model::Level;
use millstream_net::pipe::{End, Pipe};
use millstream_wire::{Fields, Headers};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes of a subrequest's answer that wait for their turn.
const ROOM: usize = 64 * 1024;
/// Subrequests of one answer that are under way at a time.
const AT_A_TIME: usize = 16;

/// What comes next of an answer.
pub(super) enum NextPart {
    /// Some of its body.
    Text(Vec<u8>),
    /// Nothing yet, until more is put in.
    Nothing,
    /// A subrequest has not answered yet.
    Waits,
    /// What a subrequest answers broke off, and so does this.
    Cut,
    /// The fields behind its body: that has ended.
    End(Option<Headers>),
}

/// An answer that is put together.
pub(super) struct Assembly {
    parts: VecDeque<Part>,
    /// Bytes that are held.
    held: usize,
    /// Finds what is to be asked.
    ssi: Option<Box<Ssi>>,
    /// What is asked for behind all else.
    after: Option<Box<str>>,
    /// What is not looked at before the last part is there.
    unread: Option<Vec<u8>>,
    /// The fields behind the body, once all of that was put in.
    closing: Option<Option<Headers>>,
    /// The same, once all of it is a part.
    end: Option<Option<Headers>>,
}

enum Part {
    Text(Vec<u8>),
    Unasked(Ask),
    Included(Included),
}

/// A subrequest whose answer is read here.
struct Included {
    inside: Rc<Inside>,
    /// The variable that gets the answer, and what it gets.
    variable: Option<(Vec<u8>, Vec<u8>)>,
}

impl Included {
    fn ask(request: &Request, answerer: Answerer, ask: Ask) -> Part {
        let wanted = if ask.variable.is_some() { SubrequestPart::Variable } else { SubrequestPart::Body };
        let mut sub = request.subrequest(&ask.path, wanted);
        sub.set_page(ask.query, request.sheet().below(ask.stub));
        let inside = Rc::new(Inside { pipe: Pipe::new(ROOM), wants_head: false, status: Cell::new(0) });
        answerer(sub, inside.clone());
        Part::Included(Included { inside, variable: ask.variable.map(|name| (name, Vec::new())) })
    }

    /// Takes some of what a variable gets; gives it back where it goes out.
    fn take(&mut self, request: &Request, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let Some((name, value)) = &mut self.variable else { return Some(bytes) };
        if value.len() + bytes.len() > request.location().settings.ssi.variable_size {
            let name = String::from_utf8_lossy(name).into_owned();
            let what = format_args!("too big subrequest response for the variable \"{name}\"");
            failure::log(request, Level::Error, what);
            // What is too long is none.
            self.inside.pipe.leave();
            return None;
        }
        value.extend_from_slice(&bytes);
        None
    }

    /// The answer has ended.
    fn ended(&mut self, request: &Request) {
        if let Some((name, value)) = self.variable.take()
            && self.inside.status.get() < 300
            && request.sheet().page.set(&name, value).is_err()
        {
            failure::log(request, Level::Error, format_args!("there is no room for more SSI variables"));
        }
    }
}

impl Drop for Included {
    fn drop(&mut self) {
        self.inside.pipe.leave();
    }
}

impl Assembly {
    /// Begins with what stands before the answer itself; nothing where that is all of it.
    pub(super) fn begin(
        addition: Option<Addition>,
        ssi: Option<Box<Ssi>>,
        request: &Request,
        answerer: Answerer,
    ) -> Option<Box<Assembly>> {
        if addition.is_none() && ssi.is_none() {
            return None;
        }
        let Addition { before, after } = addition.unwrap_or_default();
        let before = before.map(|path| Included::ask(request, answerer, Ask::path(&path)));
        let parts = before.into_iter().collect();
        Some(Box::new(Assembly { parts, held: 0, ssi, after, unread: None, closing: None, end: None }))
    }

    /// Bytes that wait here.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Takes some of the answer itself, once it has gone through the filters.
    pub(super) fn put(&mut self, request: &Request, answerer: Answerer, text: &[u8]) {
        if let Some(unread) = &mut self.unread {
            self.held += text.len();
            return unread.extend_from_slice(text);
        }
        let Some(mut ssi) = self.ssi.take() else { return self.push(text.to_vec()) };
        let mut rest = text;
        while !rest.is_empty() && self.unread.is_none() {
            let mut own = Vec::new();
            let ask = ssi.next(request, &mut rest, &mut own);
            self.push(own);
            if let Some(ask) = ask {
                if ask.waits {
                    self.held += rest.len();
                    self.unread = Some(rest.to_vec());
                }
                self.include(request, answerer, ask);
            }
        }
        self.ssi = Some(ssi);
    }

    /// Nothing more is put in.
    pub(super) fn close(&mut self, request: &Request, answerer: Answerer, trailers: Option<Fields<'_>>) {
        self.closing = Some(trailers.map(|fields| Headers::copied_from(fields, |_, _, _| true)));
        self.conclude(request, answerer);
    }

    /// What comes next.
    pub(super) fn next(
        &mut self,
        context: &mut Context<'_>,
        request: &Request,
        answerer: Answerer,
    ) -> NextPart {
        loop {
            let Some(part) = self.parts.front_mut() else {
                match self.unread.take() {
                    None => return self.end.take().map_or(NextPart::Nothing, NextPart::End),
                    Some(unread) => {
                        self.held -= unread.len();
                        self.put(request, answerer, &unread);
                        self.conclude(request, answerer);
                        continue;
                    }
                }
            };
            match part {
                Part::Text(text) => {
                    self.held -= text.len();
                    let text = std::mem::take(text);
                    self.parts.pop_front();
                    return NextPart::Text(text);
                }
                Part::Unasked(ask) => *part = Included::ask(request, answerer, std::mem::take(ask)),
                Part::Included(included) => match included.inside.pipe.poll_read(context) {
                    Poll::Pending => return NextPart::Waits,
                    Poll::Ready(Ok(bytes)) => {
                        if let Some(bytes) = included.take(request, bytes) {
                            return NextPart::Text(bytes);
                        }
                    }
                    Poll::Ready(Err(End::Cut)) if included.variable.is_none() => return NextPart::Cut,
                    Poll::Ready(Err(end)) => {
                        if end == End::Whole {
                            included.ended(request);
                        }
                        self.parts.pop_front();
                        self.ask_next(request, answerer);
                    }
                },
            }
        }
    }

    fn push(&mut self, text: Vec<u8>) {
        if !text.is_empty() {
            self.held += text.len();
            self.parts.push_back(Part::Text(text));
        }
    }

    fn include(&mut self, request: &Request, answerer: Answerer, ask: Ask) {
        let under_way = self.parts.iter().filter(|part| matches!(part, Part::Included(_))).count();
        self.parts.push_back(match under_way < AT_A_TIME {
            true => Included::ask(request, answerer, ask),
            false => Part::Unasked(ask),
        });
    }

    /// Asks for the first that was not, in the place of one that has ended.
    fn ask_next(&mut self, request: &Request, answerer: Answerer) {
        let next = self.parts.iter_mut().find(|part| matches!(part, Part::Unasked(_)));
        if let Some(part) = next
            && let Part::Unasked(ask) = part
        {
            *part = Included::ask(request, answerer, std::mem::take(ask));
        }
    }

    /// The last parts, once nothing is left to be looked at.
    fn conclude(&mut self, request: &Request, answerer: Answerer) {
        if self.unread.is_some() {
            return;
        }
        let Some(trailers) = self.closing.take() else { return };
        if let Some(mut ssi) = self.ssi.take() {
            self.push(ssi.end().to_vec());
        }
        if let Some(path) = self.after.take() {
            self.include(request, answerer, Ask::path(&path));
        }
        self.end = Some(trailers);
    }
}
