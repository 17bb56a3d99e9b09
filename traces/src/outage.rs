//! When a collector failed and came back, told once each.
//!
//! Pure: it says what is to be told and tells nothing. Next: `exporter`, which does.

#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Spans lost since exports started to fail; `None` while they succeed.
    lost: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    Began,
    /// With the number of spans lost.
    Ended(u64),
}

impl Outage {
    /// Records one export; returns what to log.
    pub(crate) fn note(&mut self, went_well: bool, spans: u64) -> Option<News> {
        match (went_well, &mut self.lost) {
            (true, None) => None,
            (true, Some(lost)) => {
                let lost = *lost;
                self.lost = None;
                Some(News::Ended(lost))
            }
            (false, Some(lost)) => {
                *lost += spans;
                None
            }
            (false, none) => {
                *none = Some(spans);
                Some(News::Began)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_when_it_begins_and_when_it_ends() {
        let mut outage = Outage::default();
        let told: Vec<_> =
            [true, false, false, true, true, false].map(|went_well| outage.note(went_well, 5)).into();
        assert_eq!(told, [None, Some(News::Began), None, Some(News::Ended(10)), None, Some(News::Began)]);
    }
}
