//! Priorities of requests that have yet to come: a PRIORITY_UPDATE frame may be ahead of its request (RFC 9218 §7.1).
//!
//! Before: `frames`, which hears them; next: `heads`, which asks.

use millstream_wire::h2::priority::Priority;

#[derive(Debug, Default)]
pub(super) struct EarlyPriorities {
    said: Vec<(u32, Priority)>,
}

impl EarlyPriorities {
    /// Keeps the latest of each stream, for at most `most` streams.
    pub(super) fn add(&mut self, stream: u32, priority: Priority, most: usize) {
        if let Some((_, said)) = self.said.iter_mut().find(|(known, _)| *known == stream) {
            *said = priority;
        } else if self.said.len() < most {
            self.said.push((stream, priority));
        }
    }

    /// Also drops lower streams, which will never open (RFC 9113 §5.1.1).
    pub(super) fn take(&mut self, stream: u32) -> Option<Priority> {
        let said = self.said.iter().find(|(known, _)| *known == stream).map(|(_, priority)| *priority);
        self.said.retain(|(known, _)| *known > stream);
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_no_more_than_a_bound_is_kept() {
        let of = |urgency| Priority { urgency, incremental: false };
        let mut early = EarlyPriorities::default();
        for (stream, urgency) in [(5, 1), (3, 2), (5, 6), (9, 0)] {
            early.add(stream, of(urgency), 2);
        }
        assert_eq!(
            [1, 3, 3, 5, 9].map(|stream| early.take(stream)),
            [None, Some(of(2)), None, Some(of(6)), None]
        );
        early.add(3, of(2), 2);
        early.add(5, of(2), 2);
        assert_eq!(early.take(7), None);
        assert!(early.said.is_empty());
    }
}
