//! An outcome for programs: JSON with a version, its published schema, and the way back.
//!
//! The first field names what the file is and which version of it. The schema in `docs/bench.schema.json` is made from
//! the types by `cargo xtask docs`. A file that is read may be anything: what is wrong with it is said in one sentence.

use super::text::per_second;
use crate::outcome::{NotReached, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::io::Read as _;
use std::path::Path;

/// What `millstream bench` writes.
pub const BENCH: Kind = Kind { name: "millstream.bench", version: 1 };

/// The largest file that is read: far more than the longest run writes.
const LARGEST: u64 = 64 << 20;

/// More requests than a generator sends in a lifetime; whole numbers up to there are exact as an `f64`.
const LARGEST_COUNT: u64 = 1 << 53;
/// Seconds of the longest run, far more than can be asked for.
const LARGEST_TIME: f64 = 1e9;

/// A kind of JSON file. The version counts up when a field goes or changes its meaning; a new field needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Whose it is: `millstream.bench`.
    pub name: &'static str,
    /// Which version this program writes and reads.
    pub version: u32,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.name, self.version)
    }
}

/// The file of `millstream bench --json`.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(title = "A run of millstream bench")]
struct Document<'a> {
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

/// Why a file cannot be read, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError(String);

impl fmt::Display for JsonError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for JsonError {}

/// The JSON of an outcome, indented, with an end of line.
pub fn write(outcome: &Outcome) -> String {
    let document = Document {
        requests_per_second: outcome.rate(),
        bytes_per_second: per_second(outcome.counts.bytes_read, outcome.seconds),
        error_share: outcome.error_share(),
        lost_share: outcome.lost_share(),
        kept_up: outcome.kept_up(),
        not_reached: outcome.not_reached(),
        outcome,
    };
    write_versioned(BENCH, &document)
}

/// The JSON of a value with its kind as the first field. The value must be a struct: its fields stand beside `schema`.
pub fn write_versioned(kind: Kind, value: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: String,
        #[serde(flatten)]
        value: &'a T,
    }
    let versioned = Versioned { schema: kind.to_string(), value };
    let text =
        serde_json::to_string_pretty(&versioned).expect("plain data with text for keys is always JSON");
    harmless(&text) + "\n"
}

/// Outside of strings JSON has no control characters but ends of lines; within them serde_json leaves DEL and C1 as they
/// are, which a terminal obeys (`--json -`).
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out
}

/// The outcome of a text that [`write()`] made; one whose numbers no run can have is refused.
pub fn read(text: &str) -> Result<Outcome, JsonError> {
    let outcome: Outcome = read_versioned(BENCH, text)?;
    match impossible(&outcome) {
        Some(what) => Err(JsonError(format!("not as {BENCH} has it: {what}"))),
        None => Ok(outcome),
    }
}

/// What no run can have found, if there is any such thing in it: arithmetic with it would give nonsense.
fn impossible(outcome: &Outcome) -> Option<&'static str> {
    let counts = &outcome.counts;
    let is_count = |number: u64| number <= LARGEST_COUNT;
    let is_time = |seconds: f64| (0.0..=LARGEST_TIME).contains(&seconds);
    let are_errors = counts.errors.kinds().iter().all(|(_, number)| is_count(*number));
    let are_counts = is_count(counts.answers) && is_count(counts.unfinished) && are_errors;
    let are_slices = outcome.slices.iter().all(|slice| {
        is_time(slice.at) && is_time(slice.seconds) && slice.seconds > 0.0 && is_count(slice.answers)
    });
    match () {
        () if !is_time(outcome.seconds) => Some("so many seconds are no length of a run"),
        () if !are_counts => Some("more requests than any run can have"),
        () if !are_slices => Some("a slice that is no part of a run"),
        () => None,
    }
}

/// The outcome of a file; the error begins with its name.
pub fn read_file(path: &Path) -> Result<Outcome, JsonError> {
    let named = |error: String| JsonError(format!("{}: {error}", path.display()));
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
        .map_err(|error| named(error.to_string()))?;
    if text.len() as u64 > LARGEST {
        return Err(named(format!("larger than {} MB, which no run writes", LARGEST >> 20)));
    }
    read(&text).map_err(|error| named(error.0))
}

/// The value of a text that [`write_versioned`] made with the same kind.
pub fn read_versioned<T: DeserializeOwned>(kind: Kind, text: &str) -> Result<T, JsonError> {
    let value: Value = serde_json::from_str(text).map_err(|error| JsonError(format!("not JSON: {error}")))?;
    let found = value.get("schema").and_then(Value::as_str).ok_or_else(|| {
        JsonError(format!("no file of {}: it has no text in \"schema\", where {kind} belongs", kind.name))
    })?;
    match found.split_once('/') {
        Some((name, version)) if name == kind.name && version == kind.version.to_string() => {}
        Some((name, version)) if name == kind.name => {
            return Err(JsonError(format!(
                "version {} of {name}; this program reads version {} only: measure again, or use the program that wrote it",
                shortened(version),
                kind.version
            )));
        }
        _ => return Err(JsonError(format!("a file of {}, not of {}", shortened(found), kind.name))),
    }
    serde_json::from_value(value).map_err(|error| JsonError(format!("not as {kind} has it: {error}")))
}

/// The published schema of [`write()`]'s text, as JSON Schema 2020-12, with an end of line.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(Document<'static>);
    let properties =
        schema.ensure_object().entry("properties").or_insert_with(|| Value::Object(Default::default()));
    if let Some(properties) = properties.as_object_mut() {
        let kind = serde_json::json!({ "description": "What this file is, and which version of it.", "const": BENCH.to_string() });
        properties.insert("schema".to_owned(), kind);
    }
    if let Some(required) = schema.ensure_object().get_mut("required").and_then(Value::as_array_mut) {
        required.insert(0, Value::from("schema"));
    }
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

/// Text of a file for a message: no more than a few words of it, and nothing that commands a terminal.
fn shortened(text: &str) -> String {
    text.chars().take(40).map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests;
