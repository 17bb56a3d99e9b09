//! What the API answers without a proxy: asked before anything is measured, so that a mistake costs a sentence.
//!
//! A handful of requests, one after the other. What they mean is `correctness`'s to say. Next: `climb`.

use super::asking;
use crate::correctness::{self, Caching, Direct, How, Keeps, Standard, Telling};
use crate::plan::Target;
use crate::probe::{self, Answer};
use crate::step::{self, MICRO};
use crate::target::{self, Ask, Permission};
use crate::verdict::Once;
use millstream_cache::Now;
use std::time::Duration;

/// The longest wait for one answer of the API.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest body that is compared; one that is longer is taken for endless.
pub(super) const LARGEST: usize = 64 << 20;

/// Single requests that are timed where the API is quick.
const SAMPLES: usize = 5;

/// From here on an API is slow, and two requests must do.
const SLOW: Duration = Duration::from_millis(100);

/// How often it is asked whether its body is another one now: it may be one of two.
const AGAIN: usize = 5;

/// Why bodies are no longer compared.
pub(super) const CHANGED: &str = "The API's own body changed while it was asked";

/// What is known of the API before the climb.
#[derive(Debug)]
pub(super) struct Known {
    /// The request, to the API itself.
    pub target: Target,
    /// Its first answer.
    pub own: Direct,
    pub standard: Standard,
    pub caching: Caching,
    /// Single requests, timed.
    pub samples: Vec<Once>,
    /// Strangers whom it answers differently, and their requests.
    pub strangers: Vec<(Telling, Target)>,
    /// What is to be said of all that.
    pub notes: Vec<String>,
}

/// Asks the API.
///
/// # Errors
/// One sentence: it is not there, answers with an error, or cannot be put behind a proxy.
pub(super) fn know(ask: &Ask, may: Permission) -> Result<Known, String> {
    let target = target::resolve(ask, may).map_err(|error| error.to_string())?;
    if target.tls.is_some() {
        return Err(format!(
            "\"{}\": the proxies of the ladder speak plain HTTP to the API; give the address where it does",
            ask.url
        ));
    }
    let once = || probe::once(&target, PATIENCE, LARGEST).map_err(|error| error.to_string());
    let first = once()?;
    let second = once()?;
    let mut samples = vec![timed(&first), timed(&second)];
    while samples.len() < SAMPLES && second.total < SLOW {
        samples.push(timed(&once()?));
    }
    let method = if ask.method.is_empty() { "GET".to_owned() } else { ask.method.clone() };
    let mut notes = Vec::new();
    let (own, again) = (seen(first), seen(second.clone()));
    let mut standard = correctness::standard(&own, &again)?;
    if ask.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"))
        && standard.how == How::Body
    {
        standard =
            correctness::loose(&own, &again, "Who asks for compression gets other bytes from step to step");
        // A compressed body may be as short as it likes.
        standard.lengths.0 = 1.0;
    }
    if own.status >= 300 {
        let to = own.field("location").map_or(String::new(), |to| format!(" to {to}"));
        notes.push(format!("The API answers {}{to}: is that the page that you mean?", own.status));
    }
    let caching = correctness::caching(&own, &method, &ask.fields, Now::read());
    let mut known = Known { target, own, standard, caching, samples, strangers: Vec::new(), notes };
    if known.caching.keeps != Keeps::No {
        asking::ask_as_strangers(&mut known, ask, may);
    }
    Ok(known)
}

impl Known {
    /// How long one request takes when nobody else asks, the median.
    pub(super) fn alone(&self) -> Duration {
        let mut totals: Vec<f64> = self.samples.iter().map(|once| once.total).collect();
        totals.sort_by(f64::total_cmp);
        Duration::from_secs_f64(totals.get(totals.len() / 2).copied().unwrap_or(0.0))
    }

    /// Whether it says itself that its answers may be shared for longer than the microcache keeps any.
    pub(super) fn outlives_micro(&self) -> bool {
        let micro = step::seconds(MICRO).unwrap_or(0);
        matches!(self.caching.keeps, Keeps::Seconds(seconds) if seconds > micro)
    }

    /// Once more without a proxy, which waits until whoever asked before has been answered.
    pub(super) fn once_more(&self) -> Option<Duration> {
        probe::once(&self.target, PATIENCE, LARGEST).ok().map(|answer| answer.total)
    }

    /// Whether it now answers with another body than before, if only now and then.
    pub(super) fn has_changed(&self) -> bool {
        (0..AGAIN).any(|_| {
            let now = probe::once(&self.target, PATIENCE, LARGEST);
            now.is_ok_and(|answer| answer.status == self.own.status && answer.body != self.own.body)
        })
    }

    /// From now on bodies are not compared: the API's own turned out to differ.
    pub(super) fn loosen(&mut self, why: &str) {
        self.standard = correctness::loose(&self.own, &self.own, why);
        asking::ask_again(self);
    }
}

/// The answer without its times.
pub(super) fn seen(answer: Answer) -> Direct {
    Direct { status: answer.status, fields: answer.fields, body: answer.body }
}

/// The times of an answer.
pub(super) fn timed(answer: &Answer) -> Once {
    Once {
        connect: answer.connect.as_secs_f64(),
        first_byte: answer.first_byte.as_secs_f64(),
        total: answer.total.as_secs_f64(),
        body_bytes: answer.body.len() as f64,
    }
}
