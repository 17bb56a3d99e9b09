//! What has come of a call's answer: heads, the body by way of its stream, trailers; or why there is none.
//!
//! The link puts it in as it comes. Before: `lost`; next: `link`, which has those that are on their way; `call`, which takes it out.

use super::lost::Lost;
use crate::error::MAX_INTERIM;
use millstream_net::streams::Http2Stream;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::{FieldId, Headers, octets};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

#[derive(Debug)]
pub(crate) struct Answer {
    /// Below 200 it is interim.
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) is_last: bool,
}

/// What has arrived of a response and is not yet taken.
#[derive(Debug, Default)]
pub(super) struct Said {
    heads: VecDeque<Answer>,
    /// Interim responses that have come, taken or not.
    interim: u32,
    /// Whether a final head has come, so that the next block is the trailers.
    is_headed: bool,
    trailers: Option<Headers>,
    lost: Option<Lost>,
}

#[derive(Debug)]
pub(super) struct Ongoing {
    pub(super) stream: Rc<Http2Stream>,
    said: RefCell<Said>,
    /// False for a HEAD.
    has_body: bool,
    /// The server's activity count at its start ([`super::link::Link::hear`]).
    pub(super) heard: u64,
}

impl Ongoing {
    pub(super) fn new(stream: Rc<Http2Stream>, has_body: bool, heard: u64) -> Rc<Ongoing> {
        Rc::new(Ongoing { stream, said: RefCell::default(), has_body, heard })
    }

    pub(super) fn is_headed(&self) -> bool {
        self.said.borrow().is_headed
    }

    /// The error follows "upstream sent ".
    pub(super) fn head(&self, answer: Answer) -> Result<(), &'static str> {
        let mut said = self.said.borrow_mut();
        let is_interim = answer.status < 200;
        if is_interim && (answer.is_last || answer.status == 101) {
            // RFC 9113 §8.1, §8.6.
            return Err("an interim response that ends its stream or switches the protocol");
        }
        said.interim += u32::from(is_interim);
        if said.interim > MAX_INTERIM {
            return Err("too many interim responses");
        }
        if !is_interim {
            said.is_headed = true;
            // RFC 9110 §6.4.1: what these announce is not on its way.
            let is_bodiless = !self.has_body || matches!(answer.status, 204 | 304);
            if let (false, Some(length)) = (is_bodiless, length(&answer.headers)?) {
                if answer.is_last && length > 0 {
                    // RFC 9113 §8.1.1.
                    return Err("a body that does not match its Content-Length");
                }
                self.stream.announce(length);
            }
        }
        said.heads.push_back(answer);
        drop(said);
        self.stream.wake();
        Ok(())
    }

    pub(super) fn trailers(&self, trailers: Headers) {
        self.said.borrow_mut().trailers = Some(trailers);
    }

    /// The first reason counts. A server that has responded has begun, whatever it refuses then.
    pub(super) fn lose(&self, lost: Lost) {
        let mut said = self.said.borrow_mut();
        let has_begun = said.is_headed || said.interim > 0;
        said.lost.get_or_insert(match lost {
            Lost::Refused if has_begun => Lost::Reset(ErrorCode::RefusedStream),
            lost => lost,
        });
        drop(said);
        self.stream.leave();
    }

    pub(super) fn poll_head(&self, context: &Context<'_>) -> Poll<Result<Answer, Lost>> {
        let mut said = self.said.borrow_mut();
        if let Some(answer) = said.heads.pop_front() {
            return Poll::Ready(Ok(answer));
        }
        match said.lost {
            Some(lost) => Poll::Ready(Err(lost)),
            None => {
                self.stream.waits(context);
                Poll::Pending
            }
        }
    }

    pub(super) fn poll_speaks(&self, context: &Context<'_>) -> Poll<()> {
        let said = self.said.borrow();
        if !said.heads.is_empty() || said.lost.is_some() {
            return Poll::Ready(());
        }
        self.stream.waits(context);
        Poll::Pending
    }

    pub(super) fn lost(&self) -> Option<Lost> {
        self.said.borrow().lost
    }

    pub(super) fn take_trailers(&self) -> Option<Headers> {
        self.said.borrow_mut().trailers.take()
    }
}

/// `None` without a Content-Length.
fn length(headers: &Headers) -> Result<Option<u64>, &'static str> {
    let mut values = headers.view().all(FieldId::ContentLength);
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|value| value != first) {
        return Err("different Content-Length fields");
    }
    octets::decimal(first).map(Some).ok_or("an invalid Content-Length field")
}
