//! Counted of each URL where several are asked for: which of them is slow, and which gives the errors.
//!
//! Of a log with more distinct requests than [`ROWS`] the ones asked for most have rows of their own and the others share
//! one, so that a thread's room has a bound (27 kB a row, of which a URL touches little). What never got as far as a URL, such as a connection that was
//! refused, is in no row. Next: `drive::worker`, which fills it; `report`, which shows it.

use super::Counted;
use crate::histogram;
use crate::outcome::{OfUrl, percentile};
use crate::plan::Plan;
use std::cmp::Reverse;
use std::collections::HashMap;

/// URLs with a row of their own, at the most.
const ROWS: usize = 250;
/// Mark of the one that the others share.
const OTHERS: u8 = u8::MAX;
/// Significant decimal digits of a latency: 1 % apart.
const DIGITS: u8 = 2;

/// One thread's figures; without rows where there is only one URL.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByUrl {
    /// Of each target its row, or [`OTHERS`]: those of one URL share one.
    row_of: Vec<u8>,
    /// Each with a target that has its URL; the last without one is of all others.
    rows: Vec<(Option<usize>, Counted)>,
    others: usize,
}

impl ByUrl {
    pub(crate) fn of(plan: &Plan) -> ByUrl {
        // Of each URL its first target, and how often it is asked for; of each target which URL it has.
        let (mut known, mut urls) = (HashMap::new(), Vec::<(usize, u64)>::new());
        let targets = plan.targets.iter().enumerate();
        let url_of = targets.map(|(place, target)| {
            *known.entry(target.url.as_str()).or_insert_with(|| {
                urls.push((place, 0));
                urls.len() - 1
            })
        });
        let url_of: Vec<usize> = url_of.collect();
        if urls.len() < 2 {
            return ByUrl::default();
        }
        plan.order.iter().for_each(|place| urls[url_of[*place as usize]].1 += 1);
        let mut own: Vec<usize> = (0..urls.len()).collect();
        // Stable: of those asked for as often the first ones.
        own.sort_by_key(|url| Reverse(urls[*url].1));
        own.truncate(ROWS);
        let mut rows = vec![OTHERS; urls.len()];
        own.iter().zip(0..).for_each(|(url, row)| rows[*url] = row);
        let others = (own.len() < urls.len()).then_some(None);
        let places = own.iter().map(|url| Some(urls[*url].0)).chain(others);
        ByUrl {
            rows: places.map(|place| (place, Counted::of(histogram::of_digits(DIGITS)))).collect(),
            row_of: url_of.into_iter().map(|url| rows[url]).collect(),
            others: urls.len() - own.len(),
        }
    }

    #[inline]
    pub(crate) fn row(&mut self, place: u32) -> Option<&mut Counted> {
        let row = match *self.row_of.get(place as usize)? {
            OTHERS => self.rows.last_mut(),
            row => self.rows.get_mut(usize::from(row)),
        };
        row.map(|(_, figures)| figures)
    }

    pub(crate) fn clear(&mut self) {
        self.rows.iter_mut().for_each(|(_, figures)| figures.clear());
    }

    pub(crate) fn add(&mut self, other: &ByUrl) {
        self.rows.iter_mut().zip(&other.rows).for_each(|((_, row), (_, more))| row.add(more));
    }

    /// The rows, those first in which the requests spent most time together, that of the others last.
    pub(crate) fn found(&self, plan: &Plan) -> Vec<OfUrl> {
        let told = |(place, figures): &(Option<usize>, Counted)| OfUrl {
            url: place.map(|place| plan.targets[place].url.clone()),
            urls: if place.is_some() { 1 } else { self.others },
            answers: figures.answers,
            errors: figures.errors.total(),
            mean: figures.latency.mean(),
            p50: percentile(&figures.latency, 50.0),
            p99: percentile(&figures.latency, 99.0),
            max: figures.latency.max(),
        };
        let mut found: Vec<OfUrl> = self.rows.iter().map(told).collect();
        let spent = |row: &OfUrl| row.mean * row.answers as f64;
        found.sort_by(|one, other| {
            one.url.is_none().cmp(&other.url.is_none()).then(spent(other).total_cmp(&spent(one)))
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Failure;
    use crate::report::samples;

    fn plan(urls: usize, order: &[u32]) -> Plan {
        let plan = samples::plan();
        let target = |number: usize| {
            let url = format!("http://127.0.0.1/{number}");
            crate::plan::Target { url, ..plan.targets[0].clone() }
        };
        Plan { targets: (0..urls).map(target).collect(), order: order.to_vec(), ..plan }
    }

    fn answered(by_url: &mut ByUrl, place: u32, nanoseconds: u64) {
        by_url.row(place).expect("it has one").answered(nanoseconds);
    }

    fn failed(by_url: &mut ByUrl, place: u32) {
        by_url.row(place).expect("it has one").errors.count(Failure::Status);
    }

    #[test]
    fn a_single_url_has_no_row() {
        let plan = plan(1, &[]);
        let mut by_url = ByUrl::of(&plan);
        assert!(by_url.row(0).is_none());
        assert_eq!(by_url.found(&plan), []);
    }

    #[test]
    fn threads_add_up_and_what_took_most_time_comes_first() {
        let plan = plan(3, &[]);
        let (mut one, mut other) = (ByUrl::of(&plan), ByUrl::of(&plan));
        (0..10).for_each(|_| answered(&mut one, 0, 1_000_000));
        failed(&mut one, 1);
        one.clear();
        (0..4).for_each(|_| answered(&mut one, 0, 1_000_000));
        (0..2).for_each(|_| answered(&mut other, 2, 9_000_000));
        failed(&mut other, 2);
        one.add(&other);
        let found = one.found(&plan);
        let told: Vec<(&str, u64, u64, u64)> = found
            .iter()
            .map(|of| (of.url.as_deref().unwrap_or_default(), of.answers, of.errors, of.max / 1_000))
            .collect();
        assert_eq!(
            told,
            [
                ("http://127.0.0.1/2", 2, 1, 9),
                ("http://127.0.0.1/0", 4, 0, 1),
                ("http://127.0.0.1/1", 0, 0, 0)
            ]
        );
    }

    #[test]
    fn of_more_urls_than_rows_the_most_asked_have_their_own_and_the_others_one_together() {
        let last = ROWS as u32 + 9;
        let order: Vec<u32> = (0..=last).chain([last, last]).collect();
        let plan = plan(ROWS + 10, &order);
        let mut by_url = ByUrl::of(&plan);
        order.iter().for_each(|place| answered(&mut by_url, *place, 2_000_000));
        let found = by_url.found(&plan);
        assert_eq!(found.len(), ROWS + 1);
        assert_eq!(
            (found[0].url.as_deref(), found[0].answers),
            (Some(plan.targets[last as usize].url.as_str()), 3)
        );
        let others = found.last().unwrap();
        assert_eq!((others.url.as_deref(), others.urls, others.answers), (None, 10, 10));
    }
}
