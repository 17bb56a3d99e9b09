//! Places in a response whose value may differ without meaning, or must never be shared.
//!
//! A body's digest leaves these places out; they are compared one by one. Before: `shape`, `names`; next: `json` and `text`.

use crate::hash::Key;
use crate::names::Suggestion;
use crate::shape::Shape;

/// What the value in a place may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarkKind {
    /// The time of the response.
    Time,
    RequestId,
    Duration,
    Counter,
    /// Not a value: in which order an array has its elements.
    Order,
    /// Random, and by its name no request id.
    Random,
}

impl MarkKind {
    /// `None`: an ordinary value.
    pub(crate) fn of(shape: Shape, suggestion: Suggestion) -> Option<MarkKind> {
        match (shape, suggestion) {
            (Shape::Clock, Suggestion::Clock) => None,
            (Shape::Clock, _) => Some(MarkKind::Time),
            // By its name alone: a random value may look like a word or a number.
            (_, Suggestion::RequestId) => Some(MarkKind::RequestId),
            (Shape::Token, _) | (_, Suggestion::Secret) => Some(MarkKind::Random),
            (Shape::Integer, Suggestion::Counter) => Some(MarkKind::Counter),
            (Shape::Integer | Shape::Decimal, Suggestion::Duration) => Some(MarkKind::Duration),
            _ => None,
        }
    }

    pub(crate) fn is_harmless(self) -> bool {
        self != MarkKind::Random
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            MarkKind::Time => "a time",
            MarkKind::RequestId => "a request id",
            MarkKind::Duration => "a duration",
            MarkKind::Counter => "a counter",
            MarkKind::Order => "the order of a list",
            MarkKind::Random => "a random value",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) place: u32,
    pub(crate) value: u32,
    pub(crate) kind: MarkKind,
}

/// Marks of each sort (values that are harmless, random ones, orders) that one response may have; more are part of its digest.
const MOST: usize = 8;

/// The marks of a response while it is read.
#[derive(Default)]
pub(crate) struct Marks {
    list: Vec<Mark>,
}

impl Marks {
    /// Those of a head, and behind them those of its body.
    pub(crate) fn before(self, of_body: Box<[Mark]>) -> Box<[Mark]> {
        let mut marks = self.finish().into_vec();
        marks.extend(of_body);
        marks.into()
    }

    /// Whether the value is kept as a mark, and is not to be digested.
    pub(crate) fn add(&mut self, key: &Key, place: u64, value: &[u8], kind: MarkKind) -> bool {
        let place = place as u32;
        // Of a counter, whether it grows is to be known.
        let number = || std::str::from_utf8(value).ok().and_then(|text| text.parse::<u32>().ok());
        let value = match kind {
            MarkKind::Counter => number().unwrap_or_else(|| key.value(value)),
            _ => key.value(value),
        };
        self.keep(Mark { place, value, kind })
    }

    /// The same for the order of an array, as a hash of it.
    pub(crate) fn add_order(&mut self, place: u64, order: u64) -> bool {
        self.keep(Mark { place: place as u32, value: order as u32, kind: MarkKind::Order })
    }

    fn keep(&mut self, Mark { place, value, kind }: Mark) -> bool {
        // Several values of one place, as in a list: together.
        if let Some(mark) = self.list.iter_mut().find(|mark| mark.place == place && mark.kind == kind) {
            mark.value = mark.value.wrapping_add(value);
            return true;
        }
        let sort = |kind: MarkKind| (kind.is_harmless(), kind == MarkKind::Order);
        let of_this_sort = self.list.iter().filter(|mark| sort(mark.kind) == sort(kind)).count();
        if of_this_sort < MOST {
            self.list.push(Mark { place, value, kind });
        }
        of_this_sort < MOST
    }

    pub(crate) fn finish(mut self) -> Box<[Mark]> {
        self.list.sort_unstable_by_key(|mark| (mark.place, mark.kind));
        self.list.into()
    }
}
