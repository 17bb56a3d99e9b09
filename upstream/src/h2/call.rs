//! A call: one request and its answer, on a stream of a link.
//!
//! The connection of the exchange owns it. One that is dropped before both sides have ended is given up by RST_STREAM. Before: `link`, which
//! keeps a place for it; next: `exchange/connection`, which reads and writes it.

use super::link::Link;
use super::ongoing::{Answer, Ongoing};
use crate::error::ExchangeError;
use crate::held::Held;
use millstream_net::streams::Http2Stream;
use millstream_wire::Headers;
use millstream_wire::h2::error_code::ErrorCode;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Call {
    link: Rc<Link>,
    /// What it may send of its body before its window grows; the link reserves this until its head is sent.
    octets: u64,
    /// `None` until its head is sent, which assigns its number.
    ongoing: Option<Rc<Ongoing>>,
}

impl Call {
    /// The link must have reserved a slot and these octets.
    pub(super) fn new(link: Rc<Link>, octets: u64) -> Call {
        Call { link, octets, ongoing: None }
    }

    /// `is_last`: there is no body. `has_body`: the response may have one. Fails if the link accepts no more
    /// calls.
    pub(crate) fn start(&mut self, block: &[u8], is_last: bool, has_body: bool) -> Result<(), ExchangeError> {
        let ongoing = self.link.begin(self.octets, has_body).map_err(|lost| lost.error(false))?;
        ongoing.stream.head(block, is_last, u32::MAX);
        self.ongoing = Some(ongoing);
        Ok(())
    }

    pub(crate) fn stream(&self) -> Result<&Rc<Http2Stream>, ExchangeError> {
        match &self.ongoing {
            Some(ongoing) => Ok(&ongoing.stream),
            None => Err(ExchangeError::Write(io::ErrorKind::NotConnected.into())),
        }
    }

    pub(crate) fn unsent(&self) -> ExchangeError {
        // A response that has begun is read next, however its stream ended (RFC 9113 §8.1).
        let unheaded = self.ongoing.as_ref().filter(|ongoing| !ongoing.is_headed());
        match unheaded.and_then(|ongoing| ongoing.lost()) {
            Some(lost) => lost.error(false),
            None => ExchangeError::Write(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(crate) fn poll_head(&self, context: &Context<'_>) -> Poll<Result<Answer, ExchangeError>> {
        let Some(ongoing) = &self.ongoing else { return Poll::Pending };
        ongoing.poll_head(context).map_err(|lost| lost.error(false))
    }

    /// Whether a final response has begun to arrive.
    pub(crate) fn is_headed(&self) -> bool {
        self.ongoing.as_ref().is_some_and(|ongoing| ongoing.is_headed())
    }

    /// Whether the response has come whole, read or not.
    pub(crate) fn has_all(&self) -> bool {
        self.ongoing.as_ref().is_some_and(|ongoing| ongoing.stream.has_all())
    }

    pub(crate) fn poll_speaks(&self, context: &Context<'_>) -> Poll<()> {
        self.ongoing.as_ref().map_or(Poll::Pending, |ongoing| ongoing.poll_speaks(context))
    }

    /// 0 is the end of the body.
    pub(crate) fn poll_read_into(
        &self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        at_most: usize,
    ) -> Poll<Result<usize, ExchangeError>> {
        let Some(ongoing) = &self.ongoing else { return Poll::Pending };
        ongoing.stream.poll_read_into(context, buffer, at_most).map_err(|error| {
            match (error.kind(), ongoing.lost()) {
                (io::ErrorKind::InvalidData, _) => {
                    ExchangeError::BadFrame("a body that does not match its Content-Length")
                }
                (_, Some(lost)) => lost.error(true),
                (_, None) => ExchangeError::Read(error),
            }
        })
    }

    pub(crate) fn take_trailers(&self) -> Option<Headers> {
        self.ongoing.as_ref()?.take_trailers()
    }

    /// Dropped if the link holds a value already.
    pub(crate) fn hold(&self, value: Box<dyn Held>) {
        self.link.hold(value);
    }

    pub(crate) fn age(&self) -> (Instant, u64) {
        self.link.age()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        match self.ongoing.take() {
            None => self.link.release(self.octets),
            Some(ongoing) => {
                if !(ongoing.stream.has_said_all() && ongoing.stream.has_all()) {
                    ongoing.stream.reset(ErrorCode::Cancel);
                    self.link.doubt(&ongoing);
                }
                self.link.end(&ongoing);
            }
        }
    }
}
