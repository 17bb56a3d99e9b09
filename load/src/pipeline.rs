//! One connection of HTTP/1 as a client has it (RFC 9112): requests out, and answers off it as their bytes come, cut anywhere.
//!
//! Heads, framing and chunks are `millstream-wire`'s to judge. An answer whose head is byte for byte the one before it
//! means the same, so it is compared and not parsed again: nearly all answers of a load are such. What has not gone out is not
//! kept: it is sent from the targets' own bytes, small requests several at a time. Never panics, whatever comes.

#[cfg(test)]
mod tests;

use crate::exchange::{Answer, Asked, Broken, Came, Collected, Coming, Event, Exchange, HEAD};
use crate::plan::Target;
use crate::target::is_redirect;
use millstream_wire::Method;
use millstream_wire::h1::content::Content;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::{Progress, ResponseHead};
use millstream_wire::h2::error_code::ErrorCode;
use std::sync::Arc;

/// Bytes of small requests that are put together.
const GATHERED: usize = 64 * 1024;

#[derive(Debug, Default)]
pub struct Pipeline {
    partial: Vec<u8>,
    content: Option<Content>,
    coming: Coming,
    /// What the head of the answer that comes says of the connection, and where it leads, if it is a redirect.
    is_persistent: bool,
    location: Option<Arc<str>>,
    count: usize,
    /// How many of them, the newest, have not gone out whole.
    unsent: usize,
    /// Bytes of the oldest of those that have gone out.
    unsent_from: usize,
    kept: Option<Box<Collected>>,
}

/// What connections of one thread share: the head that came last, and room to parse and to gather in.
#[derive(Debug, Default)]
pub struct LastHead {
    head: ResponseHead,
    bytes: Vec<u8>,
    is_of_head: bool,
    /// Of an interim one nothing.
    meaning: Option<Meaning>,
    gathered: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Meaning {
    status: u16,
    framing: Framing,
    is_persistent: bool,
    location: Option<Arc<str>>,
}

impl Exchange for Pipeline {
    const HAS_STREAMS: bool = false;
    type Room = LastHead;

    #[inline]
    fn has_room(&self, wanted: u32) -> bool {
        self.count < wanted as usize
    }

    #[inline]
    fn open(&mut self, _number: u32, _target: &Target) {
        self.count += 1;
        self.unsent += 1;
    }

    #[inline]
    fn unsent<'s, 'a: 's>(&'s mut self, asked: &impl Asked<'a>, room: &'s mut LastHead) -> &'s [u8] {
        if self.unsent == 0 {
            return &[];
        }
        let place = self.count - self.unsent;
        let first = &asked(place).request[self.unsent_from..];
        if self.unsent == 1 || first.len() >= GATHERED {
            return first;
        }
        room.gathered.clear();
        room.gathered.extend_from_slice(first);
        for place in place + 1..self.count {
            let request = &asked(place).request;
            if room.gathered.len() + request.len() > GATHERED {
                break;
            }
            room.gathered.extend_from_slice(request);
        }
        &room.gathered
    }

    #[inline]
    fn sent<'a>(&mut self, count: usize, asked: &impl Asked<'a>) -> usize {
        self.unsent_from += count;
        let before = self.unsent;
        while self.unsent > 0 {
            let length = asked(self.gone_out()).request.len();
            if self.unsent_from < length {
                break;
            }
            self.unsent_from -= length;
            self.unsent -= 1;
        }
        before - self.unsent
    }

    fn is_held_up(&self) -> bool {
        self.unsent > 0
    }

    #[inline]
    fn gone_out(&self) -> usize {
        self.count - self.unsent
    }

    #[inline]
    fn read<'a>(&mut self, bytes: &[u8], asked: &impl Asked<'a>, room: &mut LastHead, now: u64) -> Came {
        if self.count == 0 {
            return Ok((bytes.len(), Some(Event::Surplus)));
        }
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let (length, is_whole) = match &mut self.content {
                None => self.head(rest, asked(0), room)?,
                Some(content) => {
                    let (length, data, is_whole) =
                        content.read(rest).map_err(|error| broken(error.what()))?;
                    self.coming.data(data);
                    if let Some(kept) = &mut self.kept {
                        kept.data(data);
                    }
                    (length, is_whole)
                }
            };
            at += length;
            let has_begun = is_whole || self.content.is_some() || !self.partial.is_empty();
            if self.coming.first_byte == 0 && has_begun {
                self.coming.first_byte = now;
            }
            if is_whole {
                return Ok((at, Some(Event::Answered(0, self.answered()))));
            }
        }
        Ok((at, None))
    }

    fn end(&mut self) -> Option<Answer> {
        let is_whole = matches!(self.content, Some(Content::Close));
        is_whole.then(|| Answer { is_persistent: false, ..self.answered() })
    }

    fn has_begun(&self, place: usize) -> bool {
        place == 0 && self.content.is_some()
    }

    fn cancel(&mut self, place: usize) {
        if place == 0 {
            (self.content, self.coming) = (None, Coming::default());
            self.partial.clear();
        }
        self.count = self.count.saturating_sub(1);
        self.unsent = self.unsent.min(self.count);
    }

    fn take_location(&mut self) -> Option<Arc<str>> {
        self.location.take()
    }

    fn kept(&mut self) -> &mut Option<Box<Collected>> {
        &mut self.kept
    }
}

impl Pipeline {
    /// How many bytes of a head were read, all or up to its end, and whether the answer is whole with it. Interim ones are
    /// passed over (RFC 9110 §15.2).
    #[inline]
    fn head(&mut self, bytes: &[u8], target: &Target, last: &mut LastHead) -> Result<(usize, bool), Broken> {
        let before = self.partial.len();
        let mut begun = bytes;
        if before > 0 {
            // Room for the longest head and the byte that shows that it is too long.
            let taken = bytes.len().min((HEAD.total + 1).saturating_sub(before));
            self.partial.extend_from_slice(&bytes[..taken]);
            begun = &self.partial;
        }
        let is_known =
            last.meaning.is_some() && last.is_of_head == target.is_head && begun.starts_with(&last.bytes);
        if !is_known && !last.learn(begun, target.is_head)? {
            if before == 0 {
                self.partial.extend_from_slice(bytes);
            }
            return Ok((self.partial.len() - before, false));
        }
        self.partial.clear();
        let length = last.bytes.len() - before;
        let Some(meaning) = &last.meaning else {
            self.coming.first_byte = 0;
            return Ok((length, false));
        };
        if let Some(kept) = &mut self.kept {
            let announced = if let Framing::Length(length) = meaning.framing { Some(length) } else { None };
            kept.head(last.head.view(&last.bytes), announced);
        }
        let first_byte = self.coming.first_byte;
        self.coming = Coming::to(target);
        (self.coming.status, self.coming.first_byte) = (meaning.status, first_byte);
        (self.is_persistent, self.location) = (meaning.is_persistent, meaning.location.clone());
        self.content = Content::of(meaning.framing);
        Ok((length, self.content.is_none()))
    }

    #[inline]
    fn answered(&mut self) -> Answer {
        self.content = None;
        self.count -= 1;
        // An answer to a request that is still being sent ends the connection (RFC 9112 §9.3).
        let is_early = self.unsent > self.count;
        self.unsent = self.unsent.min(self.count);
        std::mem::take(&mut self.coming).whole(self.is_persistent && !is_early)
    }
}

impl LastHead {
    fn learn(&mut self, bytes: &[u8], is_head: bool) -> Result<bool, Broken> {
        let head = &mut self.head;
        head.clear();
        match head.parse(bytes, &HEAD).map_err(|error| broken(error.what()))? {
            Progress::Partial if bytes.len() > HEAD.total => return Err(broken("too big header")),
            Progress::Partial => return Ok(false),
            Progress::Complete => {}
        }
        self.meaning = if head.is_interim() { None } else { Some(Meaning::of(head, bytes, is_head)?) };
        self.is_of_head = is_head;
        self.bytes.clear();
        self.bytes.extend_from_slice(&bytes[..head.length]);
        Ok(true)
    }
}

impl Meaning {
    fn of(head: &ResponseHead, bytes: &[u8], is_head: bool) -> Result<Meaning, Broken> {
        let fields = head.view(bytes);
        let method = if is_head { Method::Head } else { Method::Get };
        let framing = framing::response(method, head.version, head.status, fields)
            .map_err(|error| broken(error.what()))?;
        let location = fields.named(b"location").filter(|_| is_redirect(head.status));
        Ok(Meaning {
            status: head.status,
            framing,
            // Behind 101 another protocol begins.
            is_persistent: framing::is_persistent(head.version, fields) && head.status != 101,
            location: location.map(|value| String::from_utf8_lossy(value).trim().into()),
        })
    }
}

fn broken(what: &'static str) -> Broken {
    Broken(ErrorCode::ProtocolError, what)
}
