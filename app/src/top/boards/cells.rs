//! A cell of a table: its text, what it is sorted by, and whether it should be seen at once.

use super::super::figures;
use millstream_net::clock;
use millstream_wire::date;
use serde_json::Value;
use std::cmp::Ordering;

/// What a cell is sorted by.
#[derive(Debug, Clone, PartialEq)]
pub enum Rank {
    /// Letters, small and large ones as the same.
    Text,
    /// A figure; nothing is less than any.
    Figure(Option<f64>),
}

/// Whether a reader should see it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It is like any other.
    None,
    /// All is well.
    Good,
    /// It is not as usual.
    Odd,
    /// Something fails.
    Bad,
}

/// What stands in one place of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What it is sorted by.
    pub rank: Rank,
    /// How it is shown.
    pub mark: Mark,
}

impl Cell {
    /// A figure; a dash where there is none.
    pub fn of(figure: Option<f64>, told: impl FnOnce(f64) -> String) -> Cell {
        let text = figure.map_or_else(|| "–".to_owned(), told);
        Cell { text, rank: Rank::Figure(figure), mark: Mark::None }
    }

    /// Which of two comes first, the smaller first.
    pub fn order(&self, other: &Cell) -> Ordering {
        match (&self.rank, &other.rank) {
            (Rank::Figure(one), Rank::Figure(two)) => {
                let figure = |figure: &Option<f64>| figure.unwrap_or(f64::NEG_INFINITY);
                figure(one).total_cmp(&figure(two))
            }
            _ => self.text.to_lowercase().cmp(&other.text.to_lowercase()),
        }
    }
}

/// The number at a place of what was told.
pub fn number(told: &Value, place: &str) -> Option<f64> {
    told.pointer(place).and_then(Value::as_f64)
}

/// A text.
pub fn text(text: &str) -> Cell {
    Cell { text: text.to_owned(), rank: Rank::Text, mark: Mark::None }
}

/// The count at a place.
pub fn count(told: &Value, place: &str) -> Cell {
    Cell::of(number(told, place), figures::short)
}

/// The same of what should not happen.
pub fn failing(told: &Value, place: &str) -> Cell {
    let cell = count(told, place);
    let mark = if number(told, place).is_some_and(|count| count > 0.0) { Mark::Bad } else { Mark::None };
    Cell { mark, ..cell }
}

/// A time in milliseconds.
pub fn time(milliseconds: Option<f64>) -> Cell {
    Cell::of(milliseconds, figures::milliseconds)
}

/// Bytes that are used, and their bound where there is one.
pub fn size(used: Option<f64>, bound: Option<f64>) -> Cell {
    let of = bound.map_or_else(String::new, |bound| format!(" of {}", figures::bytes(bound)));
    Cell::of(used, |used| figures::bytes(used) + &of)
}

/// What a clock on the wall said at this moment, in milliseconds since 1970.
pub fn ago_clock(milliseconds: f64) -> String {
    // A cast of what is out of bounds gives the bound.
    let seconds = ((milliseconds / 1000.0) as i64).clamp(0, MOST_SECONDS);
    let moment = date::civil(seconds, clock::utc_offset(seconds));
    format!("{:02}:{:02}:{:02}", moment.hour, moment.minute, moment.second)
}

/// The end of the year 9999, in seconds since 1970.
const MOST_SECONDS: i64 = 253_402_300_799;
