//! A body that is all there, and what is left of it where the socket did not take it at once.
//!
//! A slow client holds what is left by name where that can be, so that its memory can go to others.

use bytes::{Buf, Bytes};
use millstream_cache::{Held, Loan, Whereabouts};
use std::ops::Range;
use std::os::fd::AsFd;
use std::rc::Rc;

/// What the socket did not take at once.
#[derive(Default)]
pub(super) enum Tail {
    #[default]
    None,
    Bytes(Bytes),
    File(Rc<dyn AsFd>, Range<u64>),
    /// Held by name, so that a slow client does not hold its memory.
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

    /// For one write; `None` if they are not in memory.
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

pub struct WholeBody<'a> {
    pub bytes: &'a [u8],
    /// What can be kept of the bytes without a copy.
    pub shared: Option<&'a Bytes>,
    /// What holds it for a slow client, if not the bytes themselves, and their offset in it.
    pub held: Option<(&'a Held, u64)>,
    pub file: Option<&'a Rc<dyn AsFd>>,
}

impl WholeBody<'_> {
    pub(super) fn rest(&self, sent: usize) -> Tail {
        if let Some(file) = self.file {
            return Tail::File(file.clone(), sent as u64..self.bytes.len() as u64);
        }
        match self.held.and_then(|(held, at)| Some((held.lend()?, at))) {
            Some((loan, at)) => Tail::Lent(loan, at + sent as u64..at + self.bytes.len() as u64),
            None => Tail::Bytes(match self.shared {
                Some(shared) => shared.slice(sent..),
                None => Bytes::copy_from_slice(&self.bytes[sent..]),
            }),
        }
    }
}
