//! What a right answer is, and whether the API lets its answers be kept: judged by what it says without a proxy.
//!
//! Pure: answers in, judgements with their sentences out. It never takes a step's word for its own rightness. Next:
//! `caching` (what the API says of keeping), `strangers` (requests of somebody else), `ladder::climb`, which asks.

mod caching;
mod difference;
mod strangers;
#[cfg(test)]
mod tests;

pub use caching::{Caching, Keeps, caching, stream};
pub use difference::{Difference, changed};
pub use strangers::{Apart, Telling, Who, mixed_up, strangers, tell_apart};

use crate::plan::Expect;
use crate::probe::Reply;
use std::sync::Arc;

pub fn values<'a>(answer: &'a Reply, name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = answer.fields.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.as_str())
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Status and every byte of the body.
    #[default]
    Body,
    /// Status, and on average a length like the API's: its bodies differ from one request to the next.
    StatusAndLength,
}

#[derive(Debug, Clone)]
pub struct Standard {
    pub how: How,
    pub expect: Expect,
    /// The least and the greatest mean length of a body that passes.
    pub lengths: (f64, f64),
    pub words: String,
}

/// What two answers of the API, one after the other, say that a right answer is. Errors: one sentence, where the API's own
/// answer is an error: there is nothing to measure then.
pub fn standard(first: &Reply, second: &Reply) -> Result<Standard, String> {
    if let Some(failed) = [first, second].into_iter().find(|answer| answer.status >= 400) {
        return Err(refused(failed.status));
    }
    let status = first.status;
    let (how, expect, words) = if status != second.status {
        let words = format!(
            "The API sometimes responds with {status} and sometimes with {}, so a step's response counts as correct \
             if its status is below 400.",
            second.status
        );
        (How::StatusAndLength, Expect::default(), words)
    } else if first.body != second.body {
        return Ok(loose(first, second, "Two responses of the API to the same request differ"));
    } else {
        let body = first.body.as_slice();
        let words = format!(
            "Every response of every step is compared with the API's own: status {status} and all {} bytes of its body.",
            body.len()
        );
        let expect = Expect { statuses: vec![status], body: Some(Arc::from(body)), ..Expect::default() };
        (How::Body, expect, words)
    };
    Ok(Standard { how, expect, lengths: (0.0, f64::MAX), words })
}

/// What is left to hold answers to where bodies change: `why` begins the sentence that says so.
pub fn loose(first: &Reply, second: &Reply, why: &str) -> Standard {
    let (one, other) = (first.body.len() as f64, second.body.len() as f64);
    // Half and twice: an empty page, an error page or somebody's login page is not taken for the API's answer.
    let (least, most) = (one.min(other) / 2.0, one.max(other) * 2.0);
    let status = first.status;
    let words = format!(
        "{why}, so its body cannot be compared: a step's response counts as correct if its status is {status} and its length is like the API's \
        ({least:.0} to {most:.0} bytes on average)."
    );
    let expect = Expect { statuses: vec![status], ..Expect::default() };
    Standard { how: How::StatusAndLength, expect, lengths: (least, most), words }
}

impl Standard {
    /// Why a single answer of a step is not the API's `own`; `None`: it is, as far as status and body say.
    pub fn wrong_page(&self, own: &Reply, given: &Reply) -> Option<String> {
        let (theirs, ours) = (given.body.len(), own.body.len());
        if self.how == How::Body && given.body != own.body && given.status == own.status {
            return Some(format!("its body differs from the API's ({theirs} bytes instead of {ours})"));
        }
        let is_right = self.expect.allows(given.status);
        (!is_right).then(|| format!("it responds with {} and the API with {}", given.status, own.status))
    }

    /// Why a step's answers are wrong by their mean length; `None`: they are not.
    pub fn wrong_length(&self, mean: f64) -> Option<String> {
        let (least, most) = self.lengths;
        // Heads of different sizes are not counted, so what is outside is another page.
        (mean < least || mean > most).then(|| {
            format!(
                "its bodies have {mean:.0} bytes on average, compared with {least:.0} to {most:.0} of the API"
            )
        })
    }
}

fn refused(status: u16) -> String {
    let advice = match status {
        401 | 403 => "send credentials with -H 'Authorization: …'",
        404 => "specify the URL of an existing page",
        405 => "choose the method with -m",
        429 => "the API limits requests; remove the limit for this test",
        400..=499 => "specify a request that the API accepts",
        _ => "fix the API first",
    };
    format!(
        "the API itself responds with {status} to this request, so there is nothing to compare with: {advice}"
    )
}
