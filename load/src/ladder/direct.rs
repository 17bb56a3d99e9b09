//! What the API answers without a proxy, to the user and as somebody else: asked before anything is measured, so that a mistake costs a
//! sentence.
//!
//! A handful of requests, one after the other. What they mean is `correctness`'s to say. Strangers are bounded in time: where the API is
//! slow, those that are left over are named. Next: `climb`; `measuring`, which asks each step as the same strangers.

use crate::correctness::{self, Apart, Caching, How, Keeps, Standard, Telling, Who, values};
use crate::plan::Target;
use crate::probe::{Reply, once_unless};
use crate::step::{self, MICRO};
use crate::stop::Stop;
use crate::target::{self, Ask, Permission};
use crate::unmeasured::Unmeasured;
use crate::verdict::Once;
use millstream_cache::Now;
use millstream_net::clock;
use std::time::Duration;

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What asking as all strangers may take.
const ALL: Duration = Duration::from_secs(20);

/// Requests that a stranger takes where nothing is different: its own, and with changing bodies two more.
const OF_BODY: u32 = 1;
const OF_WORDS: u32 = 3;

const CHANGED: &str = "The API's own body changed during the measurement";

const ONLY_WORDS: &str = "Whether the API responds differently to other clients was judged by the status and by the \
words that stay the same in its bodies. Differences in the parts that change with every request remain unnoticed, and \
so does a cache that mixes up clients in these parts.";

#[derive(Debug)]
pub(super) struct Known {
    /// The request, to the API itself: to that one of its addresses where it answered.
    pub target: Target,
    pub own: Reply,
    pub again: Reply,
    pub standard: Standard,
    pub caching: Caching,
    pub once: Once,
    pub strangers: Vec<(Telling, Target)>,
    pub notes: Vec<String>,
}

/// Asks the API at the target's addresses; from its first answer on, at the one that answered. Then as each stranger, of
/// whom those are kept whom it answers differently. Errors: one sentence: it is not there, answers with an error, or cannot
/// be put behind a proxy. Or the user wants to stop.
pub(super) fn know(mut target: Target, ask: &Ask, may: Permission, stop: &Stop) -> Result<Known, Unmeasured> {
    let own = once_unless(stop, &target, PATIENCE)??;
    // RFC 8305 §5: an address that refuses is passed over, by the load and by the proxies as well.
    target.addresses = vec![own.address];
    let again = once_unless(stop, &target, PATIENCE)??;
    let samples = vec![Once::of(&own), Once::of(&again)];
    let once = Once::ask(samples, || Ok::<_, Unmeasured>(once_unless(stop, &target, PATIENCE)??))?;
    let mut standard = correctness::standard(&own, &again)?;
    let names_coding = ask.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
    if names_coding && standard.how == How::Body {
        standard = correctness::loose(&own, &again, "A compressed response differs from step to step");
        // A compressed body may be as short as it likes.
        standard.lengths.0 = 1.0;
    }
    let mut notes = Vec::new();
    if own.status >= 300 {
        let to = own.field("location").map_or(String::new(), |to| format!(" to {to}"));
        notes.push(format!(
            "The API responds with {}{to}: check that this is the page you want to measure.",
            own.status
        ));
    }
    let method = target.request.split(|byte| *byte == b' ').next().unwrap_or_default();
    let caching = correctness::caching(&own, method, &ask.fields, Now::read());
    let mut known = Known { target, own, again, standard, caching, once, strangers: Vec::new(), notes };
    let stranger = |(field, fields): (String, _)| {
        let target = target::resolve(&Ask { fields, ..ask.clone() }, may).ok()?;
        // Resolved anew, it may be another of several addresses, which would answer for itself.
        Some((field, Target { addresses: known.target.addresses.clone(), ..target }))
    };
    let strangers: Vec<_> = correctness::strangers(&ask.fields).into_iter().filter_map(stranger).collect();
    go_through(&mut known, &strangers, stop)?;
    Ok(known)
}

/// From now on bodies are not compared: the API's own turned out to differ. Those whom it answers differently are asked for
/// anew, for other things must tell now. Errors: [`Unmeasured::Stopped`].
pub(super) fn loosen(known: &mut Known, stop: &Stop) -> Result<(), Unmeasured> {
    let found = std::mem::take(&mut known.strangers).into_iter();
    let found: Vec<_> = found.map(|(telling, target)| (telling.field, target)).collect();
    known.standard = correctness::loose(&known.own, &known.own, CHANGED);
    go_through(known, &found, stop)
}

fn go_through(known: &mut Known, strangers: &[(String, Target)], stop: &Stop) -> Result<(), Unmeasured> {
    if known.caching.keeps == Keeps::No {
        return Ok(());
    }
    let how = known.standard.how;
    let each = known.alone() * if how == How::Body { OF_BODY } else { OF_WORDS };
    let (began, mut left_out) = (clock::now(), Vec::new());
    known.strangers.clear();
    for (field, stranger) in strangers {
        let mut ask = |who| {
            let target = if who == Who::User { &known.target } else { stranger };
            once_unless(stop, target, PATIENCE).ok()?.ok()
        };
        let is_late = clock::now() - began + each > ALL;
        let found = if is_late { None } else { correctness::tell_apart(how, &known.own, &mut ask) };
        stop.go_on()?;
        match found {
            Some(Apart::Yes(answer, difference)) => {
                let telling = Telling { field: field.clone(), answer, difference };
                known.strangers.push((telling, stranger.clone()));
            }
            Some(Apart::No) => {}
            Some(Apart::Changed) => {
                // With what is left of it: bodies are not compared any more, so nothing can change once again.
                known.standard = correctness::loose(&known.own, &known.own, CHANGED);
                return go_through(known, strangers, stop);
            }
            None => left_out.push(field.as_str()),
        }
    }
    if !left_out.is_empty() {
        known.notes.push(format!(
            "Whether the API's responses depend on these fields is unknown, because the API is too slow or did not \
            respond: {}. A cache that mixes up clients by one of these fields remains unnoticed.",
            left_out.join(", ")
        ));
    }
    if how == How::StatusAndLength && !known.notes.iter().any(|note| note == ONLY_WORDS) {
        known.notes.push(ONLY_WORDS.to_owned());
    }
    Ok(())
}

impl Known {
    pub(super) fn alone(&self) -> Duration {
        Duration::from_secs_f64(self.once.total)
    }

    /// Whether it says itself that its answers may be shared for longer than the microcache keeps any.
    pub(super) fn outlives_micro(&self) -> bool {
        let micro = step::seconds(MICRO).unwrap_or(0);
        matches!(self.caching.keeps, Keeps::Seconds(seconds) if seconds > micro)
    }

    /// Whether it lets its answers be used while they are fetched anew (RFC 5861 §3): then there are requests that belong to
    /// no answer.
    pub(super) fn revalidates(&self) -> bool {
        let says = |value: &str| value.to_ascii_lowercase().contains("stale-while-revalidate");
        values(&self.own, "cache-control").any(says)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_origin::DemoOptions;
    use std::net::TcpListener;

    #[test]
    fn the_address_that_answered_is_the_one_for_load_strangers_and_proxies() {
        let api =
            millstream_origin::start(&DemoOptions { service_time: Duration::ZERO, ..DemoOptions::default() });
        let api = api.expect("the embedded API starts");
        let closed = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
        let ask = Ask { url: format!("http://{}/list", api.address), keep_alive: true, ..Ask::default() };
        let mut target = target::resolve(&ask, Permission::default()).expect("an address of this machine");
        target.addresses.insert(0, closed);
        let stop = Stop::new().expect("an event");
        let known = know(target, &ask, Permission::default(), &stop).expect("the second address answers");
        assert_eq!((known.own.address, known.target.addresses.as_slice()), (api.address, &[api.address][..]));
    }
}
