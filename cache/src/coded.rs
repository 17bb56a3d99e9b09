//! The coded forms of one body (gzip, br, zstd): a list that only grows, read without a lock.
//!
//! Most entries have none and the others one or two, so it is a chain of boxes of which an empty one takes two words. It lives and
//! dies with its entry. Next: `entry`, which has one; `file_format`, which writes it down.

use crate::footprint::allocated;
use crate::loan::Held;
use millstream_wire::Coding;
use std::sync::OnceLock;

/// At most one body of each coding.
#[derive(Debug, Default)]
pub(crate) struct CodedBodies(OnceLock<Box<CodedBody>>);

#[derive(Debug)]
struct CodedBody {
    coding: Coding,
    body: Held,
    next: CodedBodies,
}

impl CodedBodies {
    #[inline]
    pub(crate) fn find(&self, coding: Coding) -> Option<&Held> {
        self.iter().find(|(known, _)| *known == coding).map(|(_, body)| body)
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Coding, &Held)> {
        std::iter::successors(self.0.get(), |coded| coded.next.0.get())
            .map(|coded| (coded.coding, &coded.body))
    }

    /// False if that coding exists already.
    pub(crate) fn add(&self, coding: Coding, body: Held) -> bool {
        let mut coded = Box::new(CodedBody { coding, body, next: CodedBodies::default() });
        let mut place = self;
        loop {
            match place.0.get() {
                Some(there) if there.coding == coding => return false,
                Some(there) => place = &there.next,
                None => match place.0.set(coded) {
                    Ok(()) => return true,
                    // Another one has come first.
                    Err(refused) => coded = refused,
                },
            }
        }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.iter().map(|(_, body)| CodedBodies::cost_of(body.len())).sum()
    }

    pub(crate) fn cost_of(length: usize) -> u64 {
        allocated(length) + allocated(size_of::<CodedBody>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn each_coding_is_kept_once_and_all_are_counted() {
        let list = CodedBodies::default();
        assert_eq!((list.find(Coding::Br).is_none(), list.cost()), (true, 0));
        for (coding, text) in [(Coding::Gzip, "g"), (Coding::Zstd, "zz"), (Coding::Br, "bbb")] {
            assert!(list.add(coding, Bytes::from(text).into()));
            assert!(!list.add(coding, Bytes::from("other").into()));
            assert_eq!(list.find(coding).map(|body| &body[..]), Some(text.as_bytes()));
        }
        let lengths: Vec<_> = list.iter().map(|(coding, body)| (coding.name(), body.len())).collect();
        assert_eq!(lengths, [("gzip", 1), ("zstd", 2), ("br", 3)]);
        assert_eq!(list.cost(), (1..4).map(CodedBodies::cost_of).sum());
    }

    #[test]
    fn those_that_come_at_the_same_time_are_all_kept() {
        let list = CodedBodies::default();
        let added = std::thread::scope(|scope| {
            let add = |coding| list.add(coding, Bytes::from_static(b"x").into());
            let threads: Vec<_> =
                (0..12).map(|number| scope.spawn(move || add(Coding::ALL[number % 3]))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|added| *added).count()
        });
        assert_eq!((added, list.iter().count()), (3, 3));
    }
}
