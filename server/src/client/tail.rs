//! A body that is all there, and what is left of it where the socket did not take it at once.
//!
//! A slow client holds what is left by name where that can be, so that its memory can go to others. Next: `answer`, which writes it.

use bytes::{Buf, Bytes};
use millstream_cache::{Held, Loan, Whereabouts};
use std::ops::Range;
use std::os::fd::AsFd;
use std::rc::Rc;

/// What is left of a body that the socket did not take at once.
#[derive(Default)]
pub(super) enum Tail {
    #[default]
    None,
    /// A small one, or one that is nobody's but the answer's.
    Bytes(Bytes),
    /// One that the kernel sends from a file.
    File(Rc<dyn AsFd>, Range<u64>),
    /// One that is held by name, so that a slow client does not hold its memory.
    Lent(Loan, Range<u64>),
}

impl Tail {
    pub(super) fn length(&self) -> usize {
        match self {
            Tail::None => 0,
            Tail::Bytes(bytes) => bytes.len(),
            Tail::File(_, part) | Tail::Lent(_, part) => {
                usize::try_from(part.end - part.start).unwrap_or(usize::MAX)
            }
        }
    }

    /// The bytes, where they are in memory: for one write, not to be held.
    pub(super) fn bytes(&self) -> Option<Bytes> {
        match self {
            Tail::None => Some(Bytes::new()),
            Tail::File(..) => None,
            Tail::Bytes(bytes) => Some(bytes.clone()),
            Tail::Lent(loan, part) => match loan.part(part.clone()) {
                Whereabouts::Memory(bytes) => Some(bytes),
                Whereabouts::File(..) => None,
            },
        }
    }

    pub(super) fn advance(&mut self, count: usize) {
        match self {
            Tail::None => {}
            Tail::Bytes(bytes) => bytes.advance(count),
            Tail::File(_, part) | Tail::Lent(_, part) => part.start += count as u64,
        }
        if self.length() == 0 {
            *self = Tail::None;
        }
    }
}

/// A body that is all there, for `Client::poll_whole`.
pub struct WholeBody<'a> {
    /// Its bytes.
    pub bytes: &'a Bytes,
    /// What holds them for a slow client, where that is not the bytes themselves, and where in it they begin.
    pub held: Option<(&'a Held, u64)>,
    /// The same bytes as a file.
    pub file: Option<&'a Rc<dyn AsFd>>,
}

impl WholeBody<'_> {
    /// What is left of it behind so many bytes.
    pub(super) fn rest(&self, sent: usize) -> Tail {
        if let Some(file) = self.file {
            return Tail::File(file.clone(), sent as u64..self.bytes.len() as u64);
        }
        match self.held.and_then(|(held, at)| Some((held.lend()?, at))) {
            Some((loan, at)) => Tail::Lent(loan, at + sent as u64..at + self.bytes.len() as u64),
            None => Tail::Bytes(self.bytes.slice(sent..)),
        }
    }
}
