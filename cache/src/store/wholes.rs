//! Of which responses pieces may be stored (`slice`): a change of any other leaves no rule behind.
//!
//! ```text
//!   asked for (Sliced) ──▶ stored (a few bits, for as long as the process runs)     files from before ──▶ surveyed once, then as stored
//! ```
//! It never gives "none" wrongly: until the files that were there at the start have been looked through, all may have pieces. That
//! is begun when a piece or a change first comes. A change that comes again before anybody has asked for a piece leaves no rule either:
//! the last one goes for whatever there is. Next: `purge`, which asks; `disk/survey`, which looks.

use super::Store;
use crate::purges::Rule;
use crate::tags::{Tag, Tags};
use foldhash::quality::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bits for stored responses, 256 KiB once the first is: with 66,000 stored, one in 270 others is mistaken
/// for one of them, and with a million every third.
const BITS: u64 = 1 << 21;
/// Changes remembered as the last event. One more forgets all, which costs them a rule at worst.
const MOST_OUTDATED: usize = 16_384;

#[derive(Debug, Default)]
pub(super) struct Wholes {
    /// Per process, so that no one knows which names share bits.
    hasher: RandomState,
    stored: OnceLock<Box<[AtomicU64]>>,
    events: Mutex<Events>,
    is_sought: AtomicBool,
    is_surveyed: AtomicBool,
}

#[derive(Debug, Default)]
struct Events {
    asked: HashMap<Tag, usize>,
    /// A rule has applied to all slices, and since then no one has asked for one.
    outdated: HashSet<Tag>,
}

impl Wholes {
    /// For a zone without existing files.
    pub(super) fn surveyed() -> Wholes {
        Wholes { is_surveyed: AtomicBool::new(true), ..Wholes::default() }
    }

    /// A response has changed: declares the rule for its slices, if there may be some.
    pub(super) fn outdate(&self, whole: Tag, declare: impl FnOnce() -> Rule) -> Option<Rule> {
        let mut events = self.events();
        // What is on its way is noted as stored before it is forgotten here, so the bits are read later.
        if !events.asked.contains_key(&whole) {
            if !self.may_be_stored(whole) || events.outdated.contains(&whole) {
                return None;
            }
            if events.outdated.len() == MOST_OUTDATED {
                events.outdated.clear();
            }
            events.outdated.insert(whole);
        }
        // Under the lock: what is asked for from now on is younger than the rule.
        Some(declare())
    }

    pub(super) fn note(&self, tags: &Tags) {
        let Some(whole) = tags.whole() else { return };
        let stored = self.stored.get_or_init(|| (0..BITS / 64).map(|_| AtomicU64::new(0)).collect());
        for bit in self.bits(whole) {
            stored[bit / 64].fetch_or(1 << (bit % 64), Ordering::Release);
        }
    }

    /// Asks for existing files to be searched; true for the first caller, if that is not done.
    pub(super) fn seek(&self) -> bool {
        !self.is_surveyed.load(Ordering::Relaxed)
            && !self.is_sought.load(Ordering::Relaxed)
            && !self.is_sought.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_sought(&self) -> bool {
        self.is_sought.load(Ordering::Acquire)
    }

    /// All existing files have been noted.
    pub(super) fn know_all(&self) {
        self.is_surveyed.store(true, Ordering::Release);
    }

    fn may_be_stored(&self, whole: Tag) -> bool {
        if !self.is_surveyed.load(Ordering::Acquire) {
            return true;
        }
        let Some(stored) = self.stored.get() else { return false };
        self.bits(whole).iter().all(|bit| stored[bit / 64].load(Ordering::Acquire) >> (bit % 64) & 1 != 0)
    }

    fn bits(&self, whole: Tag) -> [usize; 2] {
        let hash = self.hasher.hash_one(whole);
        [hash, hash >> 32].map(|hash| (hash % BITS) as usize)
    }

    /// Nothing panics half-way through a change of these.
    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response that is requested in slices. While this is held a change applies to slices that are arriving.
#[derive(Debug)]
pub struct Sliced {
    store: Arc<Store>,
    key: Box<[u8]>,
    tag: Tag,
}

impl Sliced {
    /// Call it before a response is requested in slices; the key is that of the whole.
    pub fn of(store: &Arc<Store>, key: Vec<u8>) -> Sliced {
        let tag = Tag::of_pieces(&key);
        store.seek_pieces();
        let mut events = store.wholes.events();
        events.outdated.remove(&tag);
        *events.asked.entry(tag).or_default() += 1;
        drop(events);
        Sliced { store: store.clone(), key: key.into(), tag }
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn tag(&self) -> Tag {
        self.tag
    }
}

impl Drop for Sliced {
    fn drop(&mut self) {
        let asked = &mut self.store.wholes.events().asked;
        if let Some(count) = asked.get_mut(&self.tag) {
            *count -= 1;
            if *count == 0 {
                asked.remove(&self.tag);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purges::{How, Scope};
    use crate::samples::{store, zone};

    fn piece_of(number: u64) -> Tags {
        Tags::NONE.of_piece(Tag(number)).expect("few")
    }

    fn leaves_rule(wholes: &Wholes, whole: Tag) -> bool {
        let rule = || Rule { number: 1, at: 1, how: How::Hard, scope: Scope::Pieces(whole.0) };
        wholes.outdate(whole, rule).is_some()
    }

    #[test]
    fn what_was_noted_is_always_known_and_little_else() {
        let wholes = Wholes::surveyed();
        wholes.note(&Tags::NONE);
        assert!(wholes.stored.get().is_none(), "no piece costs nothing");
        (0..66_000).for_each(|number| wholes.note(&piece_of(number)));
        assert!((0..66_000).all(|number| leaves_rule(&wholes, Tag(number))));
        let others = (1_000_000..1_010_000).filter(|number| leaves_rule(&wholes, Tag(*number))).count();
        assert!(others < 100, "{others} of 10,000");
        assert!(wholes.events().outdated.len() <= MOST_OUTDATED);
    }

    #[test]
    fn until_the_files_from_before_are_known_anything_may_be_there() {
        let wholes = Wholes::default();
        assert!(leaves_rule(&wholes, Tag(1)) && !wholes.is_sought());
        assert_eq!([wholes.seek(), wholes.seek(), wholes.is_sought()], [true, false, true]);
        wholes.note(&piece_of(2));
        wholes.know_all();
        assert_eq!([3, 2].map(|number| leaves_rule(&wholes, Tag(number))), [false, true]);
        assert!(!Wholes::surveyed().seek());
    }

    #[test]
    fn each_change_counts_while_somebody_asks_and_one_when_the_last_has_gone() {
        let store = store(&zone(None));
        let changes = |tag| [(); 2].map(|()| leaves_rule(&store.wholes, tag));
        let (first, second) = (Sliced::of(&store, b"key".to_vec()), Sliced::of(&store, b"key".to_vec()));
        let tag = first.tag();
        drop(first);
        assert_eq!([changes(tag), changes(Tag(7))], [[true; 2], [false; 2]]);
        drop(second);
        assert_eq!(changes(tag), [false; 2], "nothing was stored");
        store.note_piece(&Tags::NONE.of_piece(tag).expect("few"));
        assert_eq!(changes(tag), [true, false]);
        drop(Sliced::of(&store, b"key".to_vec()));
        assert_eq!(changes(tag), [true, false], "it was asked for again");
        assert!(store.wholes.events().asked.is_empty());
    }
}
