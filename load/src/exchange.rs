//! Reads answers off a connection as their bytes come, cut anywhere: pure, no sockets, no clock.
//!
//! Heads, framing and chunks are `millstream-wire`'s to judge. An answer whose head is byte for byte the one before it
//! means the same, so it is compared and not parsed again: nearly all answers of a load run are such. Never panics,
//! whatever comes; never keeps a body. Next: `drive`, `probe`.

#[cfg(test)]
mod tests;

use crate::target::is_redirect;
use millstream_wire::Method;
use millstream_wire::h1::content::Content;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::{HeadLimits, Progress, ResponseHead};
use std::sync::Arc;

/// How large an answer's head may be. More than servers send; less than would hurt.
pub const HEAD: HeadLimits = HeadLimits { line: 64 * 1024, total: 128 * 1024, fields: 1000 };

/// What came is not an HTTP/1 answer; the connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// What an answer is read against.
#[derive(Debug, Clone, Copy, Default)]
pub struct Awaited<'a> {
    /// The request was a HEAD.
    pub is_head: bool,
    /// What the body must be, transfer coding taken off.
    pub body: Option<&'a [u8]>,
}

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Whether the connection can carry another.
    pub is_persistent: bool,
    /// Whether its body is the awaited one; true where any will do.
    pub is_body_right: bool,
    /// Bytes of its body.
    pub body: u64,
}

/// Where a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Between answers, or within a head.
    BeforeAnswer,
    /// Within a body.
    ShortBody,
    /// Behind a body that goes on until the connection ends.
    Answered(Answer),
}

/// What the head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Meaning {
    status: u16,
    framing: Framing,
    is_persistent: bool,
}

/// What connections of one thread share: room to parse in, and the head that came last.
#[derive(Debug, Default)]
pub struct Heads {
    head: ResponseHead,
    last: Vec<u8>,
    last_is_head: bool,
    meaning: Option<Meaning>,
    /// Where it leads, if it is a redirect.
    location: Option<Arc<str>>,
}

/// The side of a connection that answers come in on.
#[derive(Debug, Default)]
pub struct Reader {
    state: State,
    status: u16,
    is_persistent: bool,
    is_body_right: bool,
    body: u64,
    /// See [`Reader::passed_interim`].
    passed_interim: bool,
    /// Where the answer leads, if it is a redirect.
    location: Option<Arc<str>>,
}

#[derive(Debug, Default)]
enum State {
    /// No byte of a head is kept.
    #[default]
    Head,
    /// The beginning of one is.
    Partial(Box<Partial>),
    /// The end of its body is still to come.
    Body(Content),
}

#[derive(Debug, Default)]
struct Partial {
    bytes: Vec<u8>,
    head: ResponseHead,
}

impl Reader {
    /// Reads on: how many bytes are consumed, and the answer that ends there. Without an answer all are consumed.
    ///
    /// # Errors
    /// The bytes are no answer.
    #[inline]
    pub fn read(
        &mut self,
        bytes: &[u8],
        awaited: Awaited<'_>,
        heads: &mut Heads,
    ) -> Result<(usize, Option<Answer>), Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if matches!(self.state, State::Head | State::Partial(_)) {
                let (length, meaning) = self.head(rest, awaited.is_head, heads)?;
                at += length;
                match meaning {
                    Some(meaning) if self.begin(meaning) => return Ok((at, Some(self.whole(awaited)))),
                    Some(_) => {}
                    // The head is whole and means nothing: an interim one.
                    None => self.passed_interim |= matches!(self.state, State::Head),
                }
                continue;
            }
            let (length, is_whole) = self.content(rest, awaited)?;
            at += length;
            if is_whole {
                return Ok((at, Some(self.whole(awaited))));
            }
        }
        Ok((at, None))
    }

    /// The connection has ended; what that means here.
    pub fn end(&mut self, awaited: Awaited<'_>) -> End {
        match std::mem::take(&mut self.state) {
            State::Head | State::Partial(_) => End::BeforeAnswer,
            State::Body(Content::Close) => {
                End::Answered(Answer { is_persistent: false, ..self.whole(awaited) })
            }
            State::Body(_) => End::ShortBody,
        }
    }

    /// Forgets what came: for a new connection.
    pub fn clear(&mut self) {
        self.state = State::Head;
        (self.passed_interim, self.location) = (false, None);
    }

    /// Whether a part of an answer has come, and its end has not.
    #[inline]
    pub fn has_begun(&self) -> bool {
        !matches!(self.state, State::Head)
    }

    /// Whether an interim answer ended since this was last asked: what came before was not the answer.
    #[inline]
    pub fn passed_interim(&mut self) -> bool {
        std::mem::take(&mut self.passed_interim)
    }

    /// Where the answer that ended last leads; none where it is no redirect, or does not say.
    pub fn take_location(&mut self) -> Option<Arc<str>> {
        self.location.take()
    }

    /// How many bytes of a head were read, all or up to its end, and what it says if it is whole. Interim answers are
    /// skipped (RFC 9110 §15.2).
    #[inline]
    fn head(
        &mut self,
        bytes: &[u8],
        is_head: bool,
        heads: &mut Heads,
    ) -> Result<(usize, Option<Meaning>), Malformed> {
        if matches!(self.state, State::Head) {
            if let Some(meaning) = heads.meaning
                && heads.last_is_head == is_head
                && bytes.starts_with(&heads.last)
            {
                if heads.location.is_some() {
                    self.location.clone_from(&heads.location);
                }
                return Ok((heads.last.len(), Some(meaning)));
            }
            heads.head.clear();
            return match heads.head.parse(bytes, &HEAD).map_err(|_| Malformed)? {
                Progress::Complete => {
                    let learned = heads.learn(bytes, is_head);
                    self.location.clone_from(&heads.location);
                    learned
                }
                Progress::Partial => {
                    let head = std::mem::take(&mut heads.head);
                    self.state = State::Partial(Box::new(Partial { bytes: bytes.to_vec(), head }));
                    Ok((bytes.len(), None))
                }
            };
        }
        let State::Partial(partial) = &mut self.state else { return Ok((0, None)) };
        let before = partial.bytes.len();
        // Room for the longest head and the byte that shows that it is too long.
        let taken = bytes.len().min((HEAD.total + 1).saturating_sub(before));
        partial.bytes.extend_from_slice(&bytes[..taken]);
        match partial.head.parse(&partial.bytes, &HEAD).map_err(|_| Malformed)? {
            Progress::Partial if partial.bytes.len() > HEAD.total => Err(Malformed),
            Progress::Partial => Ok((taken, None)),
            Progress::Complete => {
                let length = partial.head.length - before;
                let meaning = meaning(&partial.head, &partial.bytes, is_head)?;
                self.location = location(&partial.head, &partial.bytes);
                self.state = State::Head;
                Ok((length, meaning))
            }
        }
    }

    /// Takes what a head says; whether the answer is whole with it.
    #[inline]
    fn begin(&mut self, meaning: Meaning) -> bool {
        (self.status, self.is_persistent) = (meaning.status, meaning.is_persistent);
        (self.body, self.is_body_right) = (0, true);
        let Some(content) = Content::of(meaning.framing) else { return true };
        self.state = State::Body(content);
        false
    }

    /// Reads of the body; how many bytes, and whether it ends there.
    #[inline]
    fn content(&mut self, bytes: &[u8], awaited: Awaited<'_>) -> Result<(usize, bool), Malformed> {
        let State::Body(content) = &mut self.state else { return Ok((0, false)) };
        let (consumed, data, is_whole) = content.read(bytes).map_err(|_| Malformed)?;
        if let Some(expected) = awaited.body
            && self.is_body_right
        {
            let from = usize::try_from(self.body).unwrap_or(usize::MAX);
            self.is_body_right =
                from.checked_add(data.len()).and_then(|to| expected.get(from..to)) == Some(data);
        }
        self.body += data.len() as u64;
        Ok((consumed, is_whole))
    }

    /// The answer that ends here; the next one may follow.
    #[inline]
    fn whole(&mut self, awaited: Awaited<'_>) -> Answer {
        self.state = State::Head;
        // An answer without a body on purpose (HEAD, 304) has none to be wrong.
        let is_length_right = awaited.is_head
            || self.status == 304
            || awaited.body.is_none_or(|body| body.len() as u64 == self.body);
        Answer {
            status: self.status,
            // Behind 101 another protocol begins.
            is_persistent: self.is_persistent && self.status != 101,
            is_body_right: self.is_body_right && is_length_right,
            body: self.body,
        }
    }
}

impl Heads {
    /// Remembers the head that was just parsed, at the start of these bytes.
    fn learn(&mut self, bytes: &[u8], is_head: bool) -> Result<(usize, Option<Meaning>), Malformed> {
        let length = self.head.length;
        let meaning = meaning(&self.head, bytes, is_head)?;
        self.meaning = meaning;
        self.location = location(&self.head, bytes);
        self.last_is_head = is_head;
        self.last.clear();
        self.last.extend_from_slice(&bytes[..length]);
        Ok((length, meaning))
    }
}

/// Where a redirect leads.
fn location(head: &ResponseHead, bytes: &[u8]) -> Option<Arc<str>> {
    if !is_redirect(head.status) {
        return None;
    }
    let fields = head.view(bytes);
    let mut locations = fields.iter().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"location"));
    locations.next().map(|(_, _, value)| String::from_utf8_lossy(value).trim().into())
}

/// What a whole head says; `None` for an interim one.
fn meaning(head: &ResponseHead, bytes: &[u8], is_head: bool) -> Result<Option<Meaning>, Malformed> {
    if head.is_interim() {
        return Ok(None);
    }
    let method = if is_head { Method::Head } else { Method::Get };
    let fields = head.view(bytes);
    let framing = framing::response(method, head.version, head.status, fields).map_err(|_| Malformed)?;
    Ok(Some(Meaning {
        status: head.status,
        framing,
        is_persistent: framing::is_persistent(head.version, fields),
    }))
}
