//! The four pictures at the top: what each shows, and the last seconds cut into as many steps as there is room for.
//!
//! Pure. Next: `draw/picture`, which makes bars of the steps.

use super::figures::{milliseconds, short, whole};
use super::seen::{Figures, Seen};

/// What a line of a chart shows of some seconds; `None` where it cannot be told.
type Shows = fn(&[Figures]) -> Option<f64>;

/// A chart.
#[derive(Debug)]
pub struct Chart {
    /// Its name.
    pub name: &'static str,
    /// What is drawn in front: the part that matters, or what is the least of the two.
    pub front: Series,
    /// What is drawn behind.
    pub back: Option<Series>,
    /// The top, where it is always the same.
    pub top: Option<f64>,
    /// Whether what stands in front is a failure.
    pub is_failure: bool,
    /// How a value is told.
    pub unit: fn(f64) -> String,
}

/// A line of a chart.
#[derive(Debug)]
pub struct Series {
    /// What it is; empty where the chart's name says so.
    pub name: &'static str,
    shows: Shows,
}

/// All of them.
pub const CHARTS: &[Chart] = &[
    Chart {
        name: "Requests/s",
        front: Series { name: "failed", shows: |of| per_second(of, |second| second.errors) },
        back: Some(Series { name: "", shows: |of| per_second(of, |second| second.requests) }),
        top: None,
        is_failure: true,
        unit: short,
    },
    Chart {
        name: "To the API/s",
        front: Series { name: "", shows: |of| per_second(of, |second| second.reached) },
        back: Some(Series { name: "without the cache", shows: |of| per_second(of, |second| second.without) }),
        top: None,
        is_failure: false,
        unit: short,
    },
    Chart {
        name: "Median",
        front: Series { name: "", shows: median },
        back: Some(Series { name: "99 %", shows: slowest }),
        top: None,
        is_failure: false,
        unit: |microseconds| milliseconds(microseconds / 1000.0),
    },
    Chart {
        name: "From the cache",
        front: Series { name: "", shows: ratio },
        back: None,
        top: Some(100.0),
        is_failure: false,
        unit: |percent| format!("{percent:.0} %"),
    },
];

/// The values of a chart's lines, a step each, the latest last.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// In front.
    pub front: Vec<Option<f64>>,
    /// Behind; as many, or none at all.
    pub back: Vec<Option<f64>>,
    /// What the highest place stands for.
    pub top: f64,
}

fn sum(of: &[Figures], figure: fn(&Figures) -> u64) -> f64 {
    of.iter().map(figure).sum::<u64>() as f64
}

fn per_second(of: &[Figures], figure: fn(&Figures) -> u64) -> Option<f64> {
    (!of.is_empty()).then(|| sum(of, figure) / of.len() as f64)
}

/// The mean of the medians, each second counting as its requests.
fn median(of: &[Figures]) -> Option<f64> {
    let requests = sum(of, |second| second.requests);
    let weighed = of.iter().map(|second| second.p50 as f64 * second.requests as f64).sum::<f64>();
    (requests > 0.0).then(|| weighed / requests)
}

fn slowest(of: &[Figures]) -> Option<f64> {
    let asked = of.iter().filter(|second| second.requests > 0);
    asked.map(|second| second.p99 as f64).reduce(f64::max)
}

fn ratio(of: &[Figures]) -> Option<f64> {
    let cached = sum(of, |second| second.cached);
    (cached > 0.0).then(|| sum(of, |second| second.hits) / cached * 100.0)
}

/// The seconds from so many before the last one on.
fn lately(seen: &Seen, seconds: u64) -> &[Figures] {
    let all = seen.seconds.as_slice();
    let since = all.last().map_or(0, |last| last.at.saturating_sub(seconds));
    &all[all.partition_point(|second| second.at <= since)..]
}

impl Chart {
    /// The last seconds in at most so many steps. Steps begin at whole multiples of their size, so that bars move as one and do not
    /// flicker.
    pub fn steps(&self, seen: &Seen, seconds: u64, room: usize) -> Steps {
        let room = room.max(1) as u64;
        let size = seconds.div_ceil(room).max(1);
        let count = seconds.div_ceil(size).min(room);
        let of = lately(seen, seconds);
        let last = of.last().map_or(0, |second| second.at / size);
        let step = |index: u64| {
            // There is nothing before the first second of 1970.
            let Some(number) = (last + 1 + index).checked_sub(count) else { return &[][..] };
            let from = of.partition_point(|second| second.at / size < number);
            let until = of.partition_point(|second| second.at / size <= number);
            &of[from..until.max(from)]
        };
        let line = |series: &Series| (0..count).map(|index| (series.shows)(step(index))).collect::<Vec<_>>();
        let front = line(&self.front);
        let back = self.back.as_ref().map(line).unwrap_or_default();
        let highest = front.iter().chain(&back).flatten().copied().fold(0.0, f64::max);
        Steps { front, back, top: self.top.unwrap_or_else(|| ceiling(highest)) }
    }

    /// What it shows of the last second, in words: the chart's own value, and its other line's name and value.
    pub fn told(&self, seen: &Seen) -> (String, Option<(&'static str, String)>) {
        let of = lately(seen, 1);
        let value = |series: &Series| (series.shows)(of).map_or_else(|| "–".to_owned(), self.unit);
        let (own, other) = match &self.back {
            Some(back) if back.name.is_empty() => (back, Some(&self.front)),
            back => (&self.front, back.as_ref()),
        };
        (value(own), other.map(|other| (other.name, value(other))))
    }
}

/// A round number at or above a value.
fn ceiling(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0];
    steps.iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

/// What the cache is worth, in words.
#[derive(Debug, PartialEq, Eq)]
pub struct Story {
    /// What reached the API just now, and what would have.
    pub now: String,
    /// The same in fewer words.
    pub short: String,
    /// What it was spared in a longer time; empty where that is nothing.
    pub longer: String,
}

/// Tells what the cache is worth; `span` is the longer time.
pub fn story(seen: &Seen, (seconds, span): (u64, &str)) -> Story {
    let sums = |seconds| {
        let of = lately(seen, seconds);
        let sum = |figure: fn(&Figures) -> u64| of.iter().map(figure).sum::<u64>();
        (sum(|second| second.reached), sum(|second| second.without))
    };
    let (reached, without) = sums(30);
    let (now, would) = (whole(reached), whole(without));
    let (reached, without) = sums(seconds);
    let spared = without.saturating_sub(reached);
    Story {
        now: format!("In 30 s {now} reached the API; without the cache {would} would have."),
        short: format!("30 s: {now} to the API, {would} without"),
        longer: match spared {
            0 => String::new(),
            spared => format!("The last {span} spared it {}.", whole(spared)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::Event;
    use super::*;
    use serde_json::{Value, json};

    fn seen(rows: &[[u64; 3]]) -> Seen {
        let mut seen = Seen::default();
        let rows: Vec<Value> = rows.iter().map(|row| json!(row)).collect();
        seen.take(Event::History(json!({ "names": ["at", "reached", "without"], "rows": rows })));
        seen
    }

    #[test]
    fn steps_keep_their_seconds_while_time_goes_on() {
        let rows: Vec<[u64; 3]> = (1..=40).map(|at| [at, at, 2 * at]).collect();
        let chart = &CHARTS[1];
        let at = |last: usize| chart.steps(&seen(&rows[..last]), 60, 20).front;
        let (now, then) = (at(40), at(38));
        assert_eq!(now.len(), 20);
        // A step has three seconds; 39, 40 are in the last, 36 to 38 in the one before.
        assert_eq!((now[19], now[18]), (Some(39.5), Some(37.0)));
        assert_eq!(then[19], Some(37.0));
        assert_eq!(now[..3], [None; 3], "before the first second there is nothing");
    }

    #[test]
    fn few_places_show_all_of_the_time_and_many_leave_some_empty() {
        let seen = seen(&[[3590, 1, 2], [3600, 3, 8]]);
        for (room, expected) in [(1, 1), (7, 7), (60, 60), (200, 60), (0, 1)] {
            let steps = CHARTS[1].steps(&seen, 60, room);
            assert_eq!((steps.front.len(), steps.back.len()), (expected, expected), "{room} places");
        }
        assert_eq!(CHARTS[1].steps(&seen, 60, 60).top, 10.0);
        assert_eq!(CHARTS[3].steps(&Seen::default(), 60, 5).front, [None; 5]);
    }

    #[test]
    fn a_chart_tells_its_last_second_and_the_story_what_was_spared() {
        let seen = seen(&[[10, 5, 1000], [11, 2, 3000]]);
        assert_eq!(CHARTS[1].told(&seen), ("2".to_owned(), Some(("without the cache", "3,000".to_owned()))));
        assert_eq!(CHARTS[3].told(&seen), ("–".to_owned(), None));
        let Story { now, short, longer } = story(&seen, (3600, "hour"));
        assert_eq!(now, "In 30 s 7 reached the API; without the cache 4,000 would have.");
        assert_eq!(short, "30 s: 7 to the API, 4,000 without");
        assert_eq!(longer, "The last hour spared it 3,993.");
        assert!(CHARTS.iter().all(|chart| !chart.told(&Seen::default()).0.is_empty()));
    }
}
