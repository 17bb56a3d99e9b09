//! A cell of a table: its text, what it is sorted by, and whether it should be noticed.

use super::super::figures;
use millstream_net::clock;
use millstream_wire::date;
use serde_json::Value;
use std::cmp::Ordering;

/// What a cell is sorted by.
#[derive(Debug, Clone, PartialEq)]
pub enum Rank {
    /// Its letters, regardless of case.
    Text,
    /// A figure; one that is missing is less than any other.
    Figure(Option<f64>),
}

/// Whether a reader should notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    None,
    Good,
    Odd,
    Bad,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    pub rank: Rank,
    pub mark: Mark,
}

impl Cell {
    /// A figure; a dash if there is none.
    pub fn of(figure: Option<f64>, format: impl FnOnce(f64) -> String) -> Cell {
        let text = figure.map_or_else(|| "–".to_owned(), format);
        Cell { text, rank: Rank::Figure(figure), mark: Mark::None }
    }

    pub fn order(&self, other: &Cell) -> Ordering {
        match (&self.rank, &other.rank) {
            (Rank::Figure(one), Rank::Figure(two)) => {
                one.unwrap_or(f64::NEG_INFINITY).total_cmp(&two.unwrap_or(f64::NEG_INFINITY))
            }
            _ => self.text.to_lowercase().cmp(&other.text.to_lowercase()),
        }
    }
}

pub fn number(json: &Value, pointer: &str) -> Option<f64> {
    json.pointer(pointer).and_then(Value::as_f64)
}

pub fn text(text: &str) -> Cell {
    Cell { text: text.to_owned(), rank: Rank::Text, mark: Mark::None }
}

pub fn count(json: &Value, pointer: &str) -> Cell {
    Cell::of(number(json, pointer), figures::short)
}

/// The count of something that should not happen.
pub fn failing(json: &Value, pointer: &str) -> Cell {
    let cell = count(json, pointer);
    let has_failed = matches!(cell.rank, Rank::Figure(Some(count)) if count > 0.0);
    Cell { mark: if has_failed { Mark::Bad } else { Mark::None }, ..cell }
}

pub fn time(milliseconds: Option<f64>) -> Cell {
    Cell::of(milliseconds, figures::milliseconds)
}

/// Bytes in use, and their bound if there is one.
pub fn size(used: Option<f64>, bound: Option<f64>) -> Cell {
    let bound = bound.map_or_else(String::new, |bound| format!(" of {}", figures::bytes(bound)));
    Cell::of(used, |used| figures::bytes(used) + &bound)
}

/// The local time of a moment in milliseconds since 1970.
pub fn clock_time(milliseconds: f64) -> String {
    /// The end of the year 9999.
    const LAST: i64 = 253_402_300_799;
    // A cast of what is out of bounds gives the bound.
    let seconds = ((milliseconds / 1000.0) as i64).clamp(0, LAST);
    let moment = date::civil(seconds, clock::utc_offset(seconds));
    format!("{:02}:{:02}:{:02}", moment.hour, moment.minute, moment.second)
}
