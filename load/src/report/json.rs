//! An outcome for programs: JSON with a version, its published schema, and the way back.
//!
//! The first field names what the file is and which version of it. The schema in `docs/bench.schema.json` is made from
//! the types by `cargo xtask docs`. A file that is read may be anything: what is wrong with it is said in one sentence.

use super::table::printable;
use crate::outcome::{NotReached, Outcome};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// What `millstream bench` writes.
pub const BENCH: Kind = "millstream.bench/2";

/// The largest file that is read: far more than the longest run writes.
const LARGEST: u64 = 64 << 20;

/// More requests than a generator sends in a lifetime; whole numbers up to there are exact as an `f64`.
const LARGEST_COUNT: u64 = 1 << 53;
/// Seconds of the longest run, far more than can be asked for.
const LARGEST_TIME: f64 = 1e9;

/// A kind of JSON file: whose it is, and its version. That counts up when a field goes or changes its meaning; a new field needs none.
pub type Kind = &'static str;

/// The file of `millstream bench --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "A run of millstream bench"))]
struct Document<'a> {
    /// What this file is, and which version of it.
    #[cfg_attr(feature = "schema", schemars(extend("const" = BENCH)))]
    schema: Kind,
    /// Answers as expected per second: `counts.answers / seconds`.
    requests_per_second: f64,
    /// Bytes read per second, heads included.
    bytes_per_second: f64,
    /// The share of requests that ended in an error, 0 to 1; in an open loop of all that were due.
    error_share: f64,
    /// The share of requests that came to nothing good, 0 to 1: errors, and in an open loop what was due and had no answer at
    /// the end.
    lost_share: f64,
    /// Open loop: the share of requests due that were not late at the end, 0 to 1; what the rate and the latency put on its way
    /// is not late. Below 0.99 the rate was not reached. 1 in a closed loop.
    kept_up: f64,
    /// Open loop: that the rate was not reached, and why; `null`: it was, or there was none.
    not_reached: Option<NotReached>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

pub fn write(outcome: &Outcome) -> String {
    text(&Document {
        schema: BENCH,
        requests_per_second: outcome.rate(),
        bytes_per_second: outcome.per_second(outcome.counts.bytes_read),
        error_share: outcome.error_share(),
        lost_share: outcome.lost_share(),
        kept_up: outcome.kept_up(),
        not_reached: outcome.not_reached(),
        outcome,
    })
}

/// The JSON of a value with its kind as the first field. The value must be a struct: its fields stand beside `schema`.
pub fn write_versioned(kind: Kind, value: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: Kind,
        #[serde(flatten)]
        value: &'a T,
    }
    text(&Versioned { schema: kind, value })
}

/// Times of JSON are microseconds, whatever they are here; `serialize_with` for seconds.
pub(crate) fn seconds_as_us<S: Serializer>(seconds: &f64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(seconds * 1e6)
}

/// The same for seconds that may be unknown.
pub(crate) fn maybe_seconds_as_us<S: Serializer>(seconds: &Option<f64>, out: S) -> Result<S::Ok, S::Error> {
    seconds.map(|seconds| seconds * 1e6).serialize(out)
}

/// The same for milliseconds.
pub(crate) fn milliseconds_as_us<S: Serializer>(milliseconds: &f64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(milliseconds * 1e3)
}

/// Outside of strings JSON has no control characters but ends of lines; within them serde_json leaves DEL and C1 as they
/// are, which a terminal obeys (`--json -`).
fn text(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("plain data with text for keys is always JSON");
    let mut out = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out + "\n"
}

/// The outcome of a text that [`write()`] made; one whose numbers no run can have is refused. Errors: what is wrong with the
/// text.
pub fn read(text: &str) -> Result<Outcome, String> {
    // No more than a few words of a file, and nothing that commands a terminal.
    let shortened = |text: &str| printable(&text.chars().take(40).collect::<String>());
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let (own, own_version) = BENCH.split_once('/').unwrap_or((BENCH, ""));
    let Some(found) = value.get("schema").and_then(Value::as_str) else {
        return Err(format!("not a file of {own}: its \"schema\" must be {BENCH}"));
    };
    match found.split_once('/') {
        _ if found == BENCH => {}
        Some((name, version)) if name == own => {
            return Err(format!(
                "version {} of {own}; this program reads version {own_version} only: measure again, or use the program that wrote it",
                shortened(version)
            ));
        }
        _ => return Err(format!("a file of {}, not of {own}", shortened(found))),
    }
    let read = serde_json::from_value(value).map_err(|error| error.to_string());
    let read = read.and_then(|outcome| impossible(&outcome).map_or(Ok(outcome), |what| Err(what.to_owned())));
    read.map_err(|what| format!("the file does not match {BENCH}: {what}"))
}

/// What no run can have found, if there is any such thing in it: arithmetic with it would give nonsense.
fn impossible(outcome: &Outcome) -> Option<&'static str> {
    let counts = &outcome.counts;
    let is_count = |number: u64| number <= LARGEST_COUNT;
    let is_time = |seconds: f64| (0.0..=LARGEST_TIME).contains(&seconds);
    let are_errors = counts.errors.kinds().iter().all(|(_, number, _)| is_count(*number));
    let are_counts = is_count(counts.answers) && is_count(counts.unfinished) && are_errors;
    let are_slices = outcome.slices.iter().all(|slice| {
        is_time(slice.at) && is_time(slice.seconds) && slice.seconds > 0.0 && is_count(slice.answers)
    });
    let what = [
        (is_time(outcome.seconds), "invalid duration of a run"),
        (are_counts, "too many requests for a run"),
        (are_slices, "invalid slice of a run"),
    ];
    what.into_iter().find(|(is_possible, _)| !is_possible).map(|(_, what)| what)
}

/// The outcome of a file; the error begins with its name. Errors: it cannot be read, or is none of `millstream bench`.
pub fn read_file(path: &Path) -> Result<Outcome, String> {
    let mut text = String::new();
    let length = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    let outcome = match length {
        Err(error) => Err(error.to_string()),
        Ok(length) if length as u64 > LARGEST => {
            Err(format!("larger than {} MB, the maximum", LARGEST >> 20))
        }
        Ok(_) => read(&text),
    };
    outcome.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(feature = "schema")]
pub fn schema() -> String {
    text(&schemars::schema_for!(Document<'static>))
}

#[cfg(test)]
mod tests;
