//! What a right answer is, and whether the API lets its answers be kept: judged by what it says without a proxy.
//!
//! Pure: answers in, judgements with their sentences out. It never takes a step's word for its own rightness. Next:
//! `caching` (what the API says of keeping), `strangers` (requests of somebody else), `ladder::climb`, which asks.

mod caching;
mod marks;
mod telling_fields;
mod strangers;
#[cfg(test)]
mod tests;

pub use caching::{Caching, Keeps, caching, stream};
pub use marks::Marks;
pub use strangers::{Apart, Stranger, Telling, Who, mixed_up, strangers, tell_apart};
pub use telling_fields::changed;

use crate::plan::Expect;
use std::sync::Arc;

/// An answer that came without a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Direct {
    /// Its status.
    pub status: u16,
    /// Its header fields, in order.
    pub fields: Vec<(String, String)>,
    /// Its body, after transfer coding.
    pub body: Vec<u8>,
}

impl Direct {
    /// The values of a field, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = move |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        self.fields.iter().filter(named).map(|(_, value)| value.as_str())
    }

    /// The first value of a field.
    pub fn field<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }
}

/// How closely answers are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Status and every byte of the body.
    Body,
    /// Status, and on average a length like the API's: its bodies differ from one request to the next.
    StatusAndLength,
}

/// What every answer of every step is held to.
#[derive(Debug, Clone)]
pub struct Standard {
    /// How closely.
    pub how: How,
    /// What the generator compares each answer with.
    pub expect: Expect,
    /// The least and the greatest mean length of a body that passes.
    pub lengths: (f64, f64),
    /// The same in a sentence.
    pub words: String,
}

/// What two answers of the API, one after the other, say that a right answer is.
///
/// # Errors
/// One sentence, where the API's own answer is an error: there is nothing to measure then.
pub fn standard(first: &Direct, second: &Direct) -> Result<Standard, String> {
    for answer in [first, second] {
        if answer.status >= 400 {
            return Err(refused(answer));
        }
    }
    if first.status != second.status {
        let words = format!(
            "The API answers now {} and now {}, so an answer of a step counts as right by a status below 400 alone.",
            first.status, second.status
        );
        let expect = Expect::default();
        return Ok(Standard { how: How::StatusAndLength, expect, lengths: (0.0, f64::MAX), words });
    }
    if first.body != second.body {
        return Ok(loose(first, second, "Two answers of the API to the same request differ"));
    }
    let words = format!(
        "Every answer of every step is compared with the API's own: status {} and all {} bytes of its body.",
        first.status,
        first.body.len()
    );
    let expect = Expect {
        statuses: vec![first.status],
        body: Some(Arc::from(first.body.as_slice())),
        ..Expect::default()
    };
    Ok(Standard { how: How::Body, expect, lengths: (0.0, f64::MAX), words })
}

/// What is left to hold answers to where bodies change: `why` begins the sentence that says so.
pub fn loose(first: &Direct, second: &Direct, why: &str) -> Standard {
    let (least, most) = {
        let (one, other) = (first.body.len() as f64, second.body.len() as f64);
        (one.min(other), one.max(other))
    };
    // Half and twice: an empty page, an error page or somebody's login page is not taken for the API's answer.
    let lengths = (least / 2.0, most * 2.0);
    let words = format!(
        "{why}, so its body cannot be compared: an answer of a step counts as right by its status {} and a length like \
         the API's ({:.0} to {:.0} bytes on average).",
        first.status, lengths.0, lengths.1
    );
    let expect = Expect { statuses: vec![first.status], ..Expect::default() };
    Standard { how: How::StatusAndLength, expect, lengths, words }
}

impl Standard {
    /// Why a step's answers are wrong by their mean length; `None`: they are not.
    pub fn wrong_length(&self, mean: f64) -> Option<String> {
        let (least, most) = self.lengths;
        // Heads of different sizes are not counted, so what is outside is another page.
        (mean < least || mean > most).then(|| {
            format!(
                "its bodies are {mean:.0} bytes long on average, where the API's are {least:.0} to {most:.0}"
            )
        })
    }
}

/// Why an API that answers with an error is not measured, and what to do.
fn refused(answer: &Direct) -> String {
    let advice = match answer.status {
        401 | 403 => "give it what it wants with -H 'Authorization: …'",
        404 => "give the URL of a page that it has",
        405 => "choose the method with -m",
        429 => "it limits requests; take the limit off for this test",
        400..=499 => "give it a request that it accepts",
        _ => "mend it first",
    };
    format!(
        "the API itself answers {} to this request, so there is nothing to compare with: {advice}",
        answer.status
    )
}
