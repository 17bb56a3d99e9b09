//! An answer that is put together: what it says itself, and what subrequests answer, each in its place.
//!
//! Subrequests are asked as soon as they are known, a few of one page at a time, each in a task of its own, and go on until the bounded
//! pipe to here is full; what comes out of them goes on as it comes once everything before it has. The answer itself is looked at no
//! further than there is room for what comes of it. When the answer is dropped, they hear of it.

use super::Answerer;
use super::end::Inside;
use super::stint::Stint;
use crate::failure;
use crate::filter::addition::Addition;
use crate::filter::backlog::Backlog;
use crate::filter::body::ENOUGH;
use crate::filter::ssi::{Ask, Pause, Ssi};
use crate::page::PartPlace;
use crate::request::{Request, SubrequestPart};
use crate::variables::personal;
use millstream_conf::model::Level;
use millstream_net::pipe::{End, Pipe};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes of a subrequest's response that wait for their turn.
const ROOM: usize = 64 * 1024;
const LOOKED_AT_ONCE: usize = 16 * 1024;

pub(super) enum NextPart {
    Text(Vec<u8>),
    Nothing,
    Waits,
    Later,
    /// A subrequest's response was cut, and so is this one.
    Cut,
    End,
}

pub(super) struct Assembly {
    parts: VecDeque<Part>,
    /// Bytes of text among the parts.
    held: usize,
    ssi: Option<Box<Ssi>>,
    after: Option<Box<str>>,
    unread: Backlog,
    /// Whether the parser has more output for its input.
    is_full: bool,
    /// Whether parsing waits for the present parts to be sent (`wait="yes"`).
    waits: bool,
    is_closed: bool,
    has_ended: bool,
}

enum Part {
    Text(Vec<u8>),
    Unasked(Ask),
    Included(Included),
}

struct Included {
    inside: Rc<Inside>,
    /// Its place among the page's active subrequests.
    _place: PartPlace,
    variable: Option<(Vec<u8>, Vec<u8>)>,
}

impl Included {
    fn ask(request: &Request, answerer: Answerer, ask: Ask) -> Part {
        let wanted = if ask.variable.is_some() { SubrequestPart::Variable } else { SubrequestPart::Body };
        let mut sub = request.subrequest(&ask.path, wanted);
        sub.set_page(ask.query, request.sheet().below(ask.stub));
        let shows = personal::shown_by_answer(request);
        (sub.route.shows.path, sub.route.shows.query) = (shows, shows);
        let inside = Rc::new(Inside { pipe: Pipe::new(ROOM), wants_head: false, status: Cell::new(0) });
        answerer(sub, inside.clone());
        let variable = ask.variable.map(|name| (name, Vec::new()));
        Part::Included(Included { inside, _place: PartPlace::of(&request.sheet().page), variable })
    }

    /// Returns the bytes unless a variable takes them.
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

    fn ended(&mut self, request: &Request) {
        if let Some((name, value)) = self.variable.take()
            && self.inside.status.get() < 300
            && request.sheet().page.set(&name, value).is_err()
        {
            failure::log(
                request,
                Level::Error,
                format_args!("the SSI variables of this page need too much memory"),
            );
        }
    }
}

impl Drop for Included {
    fn drop(&mut self) {
        self.inside.pipe.leave();
    }
}

impl Assembly {
    /// Starts with the part before the response; `None` if there is nothing to assemble.
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
        Some(Box::new(Assembly {
            parts: before.into_iter().collect(),
            held: 0,
            ssi,
            after,
            unread: Backlog::default(),
            is_full: false,
            waits: false,
            is_closed: false,
            has_ended: false,
        }))
    }

    pub(super) fn held(&self) -> usize {
        self.held + self.unread.len()
    }

    pub(super) fn has_room(&self) -> bool {
        self.unread.len() < LOOKED_AT_ONCE
    }

    pub(super) fn put(&mut self, text: &[u8]) {
        self.unread.put(text);
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn next(
        &mut self,
        context: &mut Context<'_>,
        request: &Request,
        answerer: Answerer,
        stint: &mut Stint,
    ) -> NextPart {
        loop {
            self.waits &= !self.parts.is_empty();
            while self.may_look() {
                if stint.is_over() {
                    return NextPart::Later;
                }
                stint.worked(self.look(request, answerer));
            }
            self.conclude(request, answerer);
            self.ask_last(request, answerer);
            let Some(part) = self.parts.front_mut() else {
                return if self.has_ended { NextPart::End } else { NextPart::Nothing };
            };
            match part {
                Part::Text(text) => {
                    self.held -= text.len();
                    let text = std::mem::take(text);
                    self.parts.pop_front();
                    return NextPart::Text(text);
                }
                // Whatever else is under way: what all behind it waits for is asked.
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
                    }
                },
            }
        }
    }

    /// Whether there is input, and room for its output. Text behind a waiting subrequest waits too.
    fn may_look(&self) -> bool {
        (self.is_full || !self.unread.is_empty())
            && !self.waits
            && self.held < ENOUGH
            && !matches!(self.parts.back(), Some(Part::Unasked(_)))
    }

    fn look(&mut self, request: &Request, answerer: Answerer) -> usize {
        let given = self.unread.first(LOOKED_AT_ONCE);
        let (mut rest, mut own) = (given, Vec::new());
        let page = &request.sheet().page;
        let work_before = page.work();
        let pause = match &mut self.ssi {
            Some(ssi) => ssi.next(request, &mut rest, &mut own),
            None => {
                own.extend_from_slice(std::mem::take(&mut rest));
                Pause::Used
            }
        };
        let used = given.len() - rest.len();
        let work = usize::try_from(page.work() - work_before).unwrap_or(usize::MAX);
        let work = work.saturating_add(used + own.len());
        self.unread.advance(used);
        self.is_full = pause == Pause::Enough;
        self.push(own);
        if let Pause::Ask(ask) = pause {
            self.waits = ask.waits;
            self.include(request, answerer, ask);
        }
        work
    }

    fn push(&mut self, text: Vec<u8>) {
        self.held += text.len();
        match self.parts.back_mut() {
            _ if text.is_empty() => {}
            Some(Part::Text(before)) => before.extend_from_slice(&text),
            _ => self.parts.push_back(Part::Text(text)),
        }
    }

    fn include(&mut self, request: &Request, answerer: Answerer, ask: Ask) {
        self.parts.push_back(Part::Unasked(ask));
        self.ask_last(request, answerer);
    }

    fn ask_last(&mut self, request: &Request, answerer: Answerer) {
        if let Some(part) = self.parts.back_mut()
            && let Part::Unasked(ask) = part
            && request.sheet().page.has_place()
        {
            *part = Included::ask(request, answerer, std::mem::take(ask));
        }
    }

    fn conclude(&mut self, request: &Request, answerer: Answerer) {
        let is_looked_at = !self.waits && !self.is_full && self.unread.is_empty();
        let is_unasked = matches!(self.parts.back(), Some(Part::Unasked(_)));
        if self.has_ended || !self.is_closed || !is_looked_at || is_unasked {
            return;
        }
        if let Some(mut ssi) = self.ssi.take() {
            self.push(ssi.end().to_vec());
        }
        if let Some(path) = self.after.take() {
            self.include(request, answerer, Ask::path(&path));
        }
        self.has_ended = true;
    }
}
