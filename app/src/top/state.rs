//! What is known of the server: the seconds of the last hour, the tables as they are and as they were, the last notes.
//!
//! Pure; bounded by the hour and by the longest event. Before: `events`; next: `charts` and `tables`, which read it.

use super::events::Event;
use serde_json::Value;

/// Seconds that are kept.
const HOUR: usize = 3600;
/// Notes that are kept: those that a Millstream sends, and some to spare.
const NOTES: usize = 200;
/// A larger figure is taken for this one, so that an hour of them has a sum.
const MOST: u64 = 1 << 50;

macro_rules! figures {
    ($($name:ident: $doc:literal;)*) => {
        /// The figures of a second; 0 if the server does not send them. Times are in microseconds.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Second { $(#[doc = $doc] pub $name: u64,)* }

        impl Second {
            /// Reads a row whose columns have these names.
            fn read(names: &[String], row: &Value) -> Second {
                let figure = |name: &str| {
                    let index = names.iter().position(|known| known == name)?;
                    Some(row.get(index)?.as_u64()?.min(MOST))
                };
                Second { $($name: figure(stringify!($name)).unwrap_or(0),)* }
            }
        }
    };
}

figures! {
    at: "The end of the interval, in seconds since 1970.";
    requests: "Client requests.";
    cached: "Requests that a cache handled.";
    hits: "Requests served only from the cache.";
    reached: "Requests sent to upstream servers.";
    without: "Requests that would have been sent to upstream servers without a cache.";
    p50: "The median response time.";
    p99: "The 99th percentile of response times.";
    errors: "Requests that failed.";
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Live,
    /// No figures come, for this reason.
    Away(String),
}

#[derive(Debug, Default)]
pub struct State {
    /// Each later than the one before.
    pub seconds: Vec<Second>,
    /// Null before the first.
    pub tables: Value,
    /// The tables of the frame before, since the last history: what counts have grown from.
    pub before: Option<Value>,
    /// The seconds between the two, once there are two.
    pub elapsed: f64,
    /// What happened, the latest first: objects with `at` (milliseconds since 1970), `well` and `text`.
    pub notes: Vec<Value>,
    /// Version, process and configuration.
    pub process: String,
    pub link: Link,
    names: Vec<String>,
    /// Whether the tables are those of a frame: frames are a second apart.
    has_frame: bool,
}

impl State {
    pub fn take(&mut self, event: Event) {
        self.link = Link::Live;
        match &event {
            Event::History(json) => self.begin(json),
            Event::Second(json) => self.go_on(&json["second"]),
        }
        let (Event::History(mut json) | Event::Second(mut json)) = event;
        let mut part = |name: &str| json.get_mut(name).map(Value::take).unwrap_or_default();
        self.tables = part("tables");
        if let Value::Array(mut notes) = part("notes") {
            notes.truncate(NOTES);
            self.notes = notes;
        }
    }

    fn begin(&mut self, json: &Value) {
        let names = json["names"].as_array().into_iter().flatten();
        self.names = names.map(|name| name.as_str().unwrap_or_default().to_owned()).collect();
        let rows = json["rows"].as_array().map_or(&[][..], Vec::as_slice);
        let last = &rows[rows.len().saturating_sub(HOUR)..];
        self.seconds = last.iter().map(|row| Second::read(&self.names, row)).collect();
        self.seconds.sort_by_key(|second| second.at);
        self.seconds.dedup_by_key(|second| second.at);
        (self.before, self.has_frame) = (None, false);
        let nginx = &json["nginx"];
        self.process = match (nginx["version"].as_str(), &nginx["pid"], &nginx["generation"]) {
            (Some(version), Value::Number(pid), Value::Number(generation)) => {
                format!("{version}, process {pid}, configuration {generation}")
            }
            _ => String::new(),
        };
    }

    fn go_on(&mut self, row: &Value) {
        let second = Second::read(&self.names, row);
        let before = self.seconds.last().map_or(0, |last| last.at);
        self.elapsed = if before == 0 { 1.0 } else { second.at.saturating_sub(before).max(1) as f64 };
        // A frame may come that is in the history already.
        while self.seconds.last().is_some_and(|last| last.at >= second.at) {
            self.seconds.pop();
        }
        if self.seconds.len() == HOUR {
            self.seconds.remove(0);
        }
        self.seconds.push(second);
        self.before = std::mem::replace(&mut self.has_frame, true).then(|| self.tables.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn history(rows: Value) -> Event {
        Event::History(
            json!({ "names": ["at", "requests", "later"], "rows": rows, "tables": {}, "notes": [] }),
        )
    }

    fn second(at: u64, requests: u64) -> Event {
        Event::Second(json!({ "second": [at, requests, 0], "tables": { "at": at }, "notes": [] }))
    }

    #[test]
    fn a_day_of_frames_takes_the_room_of_an_hour() {
        let mut state = State::default();
        state.take(history(json!([])));
        for at in 1..=86_400 {
            state.take(second(at, 1));
        }
        assert_eq!((state.seconds.len(), state.seconds[0].at), (HOUR, 86_400 - 3599));
        assert!(state.seconds.capacity() <= 2 * HOUR);
    }

    #[test]
    fn a_frame_that_is_in_the_history_is_not_counted_twice() {
        let mut state = State::default();
        state.take(history(json!([[1, 5, 0], [2, 6, 0]])));
        state.take(second(2, 7));
        state.take(second(5, 8));
        let counts: Vec<_> = state.seconds.iter().map(|second| (second.at, second.requests)).collect();
        assert_eq!(counts, [(1, 5), (2, 7), (5, 8)]);
        assert_eq!((state.elapsed, state.before), (3.0, Some(json!({ "at": 2 }))));
    }

    #[test]
    fn after_a_new_history_growth_is_known_from_the_second_frame_on() {
        let mut state = State::default();
        for _ in 0..2 {
            state.take(history(json!([[1, 5, 0]])));
            assert!(state.before.is_none());
            state.take(second(2, 1));
            assert!(state.before.is_none(), "the tables of a history are those of no whole second");
            state.take(second(3, 1));
            assert!(state.before.is_some());
        }
    }

    #[test]
    fn what_is_no_figure_counts_as_none() {
        let mut state = State::default();
        for told in [json!("x"), json!([1]), json!({ "second": "x", "tables": 5, "notes": {} })] {
            state.take(Event::Second(told));
        }
        state.take(Event::History(json!({ "names": 7, "rows": [["a"], null, 3] })));
        assert_eq!(state.seconds, [Second::default()]);
    }
}
