//! The four charts at the top: what each shows, and the last seconds cut into as many steps as there is room for.
//!
//! Pure. Next: `draw/chart`, which makes bars of the steps.

use super::figures::{milliseconds, short, whole};
use super::state::{Second, State};

/// What a line of a chart shows of some seconds; `None` if they have no such figure.
type Shows = fn(&[Second]) -> Option<f64>;

#[derive(Debug)]
pub struct Chart {
    pub name: &'static str,
    /// What is drawn in front: the part that matters, or the smaller of the two.
    pub front: Series,
    /// What is drawn behind.
    pub back: Option<Series>,
    /// The top, if it is always the same.
    pub top: Option<f64>,
    /// Whether what is in front is a failure.
    pub is_failure: bool,
    pub format: fn(f64) -> String,
}

/// A line of a chart.
#[derive(Debug)]
pub struct Series {
    /// Empty if the chart's name says it.
    pub name: &'static str,
    shows: Shows,
}

const fn series(name: &'static str, shows: Shows) -> Series {
    Series { name, shows }
}

const fn chart(name: &'static str, front: Series, back: Option<Series>, format: fn(f64) -> String) -> Chart {
    Chart { name, front, back, top: None, is_failure: false, format }
}

pub const CHARTS: &[Chart] = &[
    Chart {
        is_failure: true,
        ..chart(
            "Requests/s",
            series("failed", |of| per_second(of, |second| second.errors)),
            Some(series("", |of| per_second(of, |second| second.requests))),
            short,
        )
    },
    chart(
        "To the API/s",
        series("", |of| per_second(of, |second| second.reached)),
        Some(series("without the cache", |of| per_second(of, |second| second.without))),
        short,
    ),
    chart("Median", series("", median), Some(series("99 %", slowest)), |microseconds| {
        milliseconds(microseconds / 1000.0)
    }),
    Chart {
        top: Some(100.0),
        ..chart("From the cache", series("", hit_percent), None, |percent| format!("{percent:.0} %"))
    },
];

/// The values of a chart's lines, the latest last.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    pub front: Vec<Option<f64>>,
    /// As many, or none at all.
    pub back: Vec<Option<f64>>,
    /// What the full height stands for.
    pub top: f64,
}

fn sum(of: &[Second], figure: fn(&Second) -> u64) -> u64 {
    of.iter().map(figure).sum()
}

fn per_second(of: &[Second], figure: fn(&Second) -> u64) -> Option<f64> {
    (!of.is_empty()).then(|| sum(of, figure) as f64 / of.len() as f64)
}

/// The mean of the medians, each second weighted by its requests.
fn median(of: &[Second]) -> Option<f64> {
    let requests = sum(of, |second| second.requests) as f64;
    let weighted = of.iter().map(|second| second.p50 as f64 * second.requests as f64).sum::<f64>();
    (requests > 0.0).then(|| weighted / requests)
}

fn slowest(of: &[Second]) -> Option<f64> {
    let busy = of.iter().filter(|second| second.requests > 0);
    busy.map(|second| second.p99 as f64).reduce(f64::max)
}

fn hit_percent(of: &[Second]) -> Option<f64> {
    let cached = sum(of, |second| second.cached) as f64;
    (cached > 0.0).then(|| sum(of, |second| second.hits) as f64 / cached * 100.0)
}

/// The seconds from so many before the last one on.
fn lately(state: &State, seconds: u64) -> &[Second] {
    let all = state.seconds.as_slice();
    let since = all.last().map_or(0, |last| last.at.saturating_sub(seconds));
    &all[all.partition_point(|second| second.at <= since)..]
}

impl Chart {
    /// The last seconds in at most so many steps. Steps begin at whole multiples of their size, so that bars move as one and do not
    /// flicker.
    pub fn steps(&self, state: &State, seconds: u64, room: usize) -> Steps {
        let room = room.max(1) as u64;
        let size = seconds.div_ceil(room).max(1);
        let count = seconds.div_ceil(size).min(room);
        let of = lately(state, seconds);
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

    /// The last second in words: the chart's own value, and its other line's name and value.
    pub fn latest(&self, state: &State) -> (String, Option<(&'static str, String)>) {
        let of = lately(state, 1);
        let value = |series: &Series| (series.shows)(of).map_or_else(|| "–".to_owned(), self.format);
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

/// What the cache saves, in words.
#[derive(Debug, PartialEq, Eq)]
pub struct Savings {
    /// What reached the API just now, and what would have without the cache.
    pub now: String,
    /// The same in fewer words.
    pub short: String,
    /// What the API was spared in a longer time; empty if that is nothing.
    pub longer: String,
}

/// What the cache saves; `span` is the longer time.
pub fn savings(state: &State, (seconds, span): (u64, &str)) -> Savings {
    let sums = |seconds| {
        let of = lately(state, seconds);
        (sum(of, |second| second.reached), sum(of, |second| second.without))
    };
    let (reached, without) = sums(30);
    let (now, would) = (whole(reached), whole(without));
    let (reached, without) = sums(seconds);
    Savings {
        now: format!("In 30 s, {now} requests reached the API; without the cache: {would}."),
        short: format!("30 s: {now} to the API, {would} without"),
        longer: match without.saturating_sub(reached) {
            0 => String::new(),
            spared => format!("In the last {span}, the cache saved {} requests.", whole(spared)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::Event;
    use super::*;
    use serde_json::{Value, json};

    fn state(rows: &[[u64; 3]]) -> State {
        let mut state = State::default();
        let rows: Vec<Value> = rows.iter().map(|row| json!(row)).collect();
        state.take(Event::History(json!({ "names": ["at", "reached", "without"], "rows": rows })));
        state
    }

    #[test]
    fn steps_keep_their_seconds_while_time_goes_on() {
        let rows: Vec<[u64; 3]> = (1..=40).map(|at| [at, at, 2 * at]).collect();
        let chart = &CHARTS[1];
        let at = |last: usize| chart.steps(&state(&rows[..last]), 60, 20).front;
        let (now, then) = (at(40), at(38));
        assert_eq!(now.len(), 20);
        // A step has three seconds; 39, 40 are in the last, 36 to 38 in the one before.
        assert_eq!((now[19], now[18]), (Some(39.5), Some(37.0)));
        assert_eq!(then[19], Some(37.0));
        assert_eq!(now[..3], [None; 3], "before the first second there is nothing");
    }

    #[test]
    fn few_places_show_all_of_the_time_and_many_leave_some_empty() {
        let state = state(&[[3590, 1, 2], [3600, 3, 8]]);
        for (room, expected) in [(1, 1), (7, 7), (60, 60), (200, 60), (0, 1)] {
            let steps = CHARTS[1].steps(&state, 60, room);
            assert_eq!((steps.front.len(), steps.back.len()), (expected, expected), "{room} places");
        }
        assert_eq!(CHARTS[1].steps(&state, 60, 60).top, 10.0);
        assert_eq!(CHARTS[3].steps(&State::default(), 60, 5).front, [None; 5]);
    }

    #[test]
    fn a_chart_has_its_last_second_and_the_savings_what_was_spared() {
        let state = state(&[[10, 5, 1000], [11, 2, 3000]]);
        assert_eq!(
            CHARTS[1].latest(&state),
            ("2".to_owned(), Some(("without the cache", "3,000".to_owned())))
        );
        assert_eq!(CHARTS[3].latest(&state), ("–".to_owned(), None));
        let Savings { now, short, longer } = savings(&state, (3600, "hour"));
        assert_eq!(now, "In 30 s, 7 requests reached the API; without the cache: 4,000.");
        assert_eq!(short, "30 s: 7 to the API, 4,000 without");
        assert_eq!(longer, "In the last hour, the cache saved 3,993 requests.");
        assert!(CHARTS.iter().all(|chart| !chart.latest(&State::default()).0.is_empty()));
    }
}
