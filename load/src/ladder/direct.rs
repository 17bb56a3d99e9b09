//! What the API answers without a proxy: asked before anything is measured, so that a mistake costs a sentence.
//!
//! A handful of requests, one after the other. What they mean is `correctness`'s to say. Next: `climb`.

use crate::correctness::{self, Caching, Direct, How, Keeps, Standard, Telling};
use crate::plan::Target;
use crate::probe::{self, ProbeError, Reply};
use crate::step::{self, MICRO};
use crate::stop::Stop;
use crate::target::{self, Ask, Permission};
use crate::unmeasured::Unmeasured;
use crate::verdict::Once;
use millstream_cache::Now;
use std::net::SocketAddr;
use std::time::Duration;

/// The longest wait for one answer of the API.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest body that is compared; one that is longer is taken for endless.
pub(super) const LARGEST: usize = 64 << 20;

/// How often it is asked whether its body is another one now: it may be one of two.
const AGAIN: usize = 5;

/// What is known of the API before the climb.
#[derive(Debug)]
pub(super) struct Known {
    /// The request, to the API itself: to that one of its addresses where it answered.
    pub target: Target,
    /// That address, which the proxies get.
    pub address: SocketAddr,
    /// Its first answer.
    pub own: Direct,
    /// Its second.
    pub again: Direct,
    pub standard: Standard,
    pub caching: Caching,
    /// Single requests, timed.
    pub samples: Vec<Once>,
    /// Strangers whom it answers differently, and their requests.
    pub strangers: Vec<(Telling, Target)>,
    /// Whose answers are others' too, and why they are not to be cached, a sentence each.
    pub personal: Vec<String>,
    /// What is to be said of all that.
    pub notes: Vec<String>,
}

/// Asks the API.
///
/// # Errors
/// One sentence: it is not there, answers with an error, or cannot be put behind a proxy. Or the user wants to stop.
pub(super) fn know(ask: &Ask, may: Permission, stop: &Stop) -> Result<Known, Unmeasured> {
    let target = target::resolve(ask, may).map_err(|error| error.to_string())?;
    if target.tls.is_some() {
        return Err(Unmeasured::Because(format!(
            "\"{}\": the proxies of the ladder speak plain HTTP to the API; give the address where it does",
            ask.url
        )));
    }
    know_of(target, ask, stop)
}

/// Asks the API at its addresses; from its first answer on, at the one that answered.
pub(super) fn know_of(mut target: Target, ask: &Ask, stop: &Stop) -> Result<Known, Unmeasured> {
    let first = probe::once_unless(stop, &target, PATIENCE, LARGEST)?;
    // RFC 8305 §5: an address that refuses is passed over, by the load and by the proxies as well.
    target.addresses = vec![first.address];
    let once = || probe::once_unless(stop, &target, PATIENCE, LARGEST);
    let second = once()?;
    let mut samples = vec![Once::of(&first), Once::of(&second)];
    while !Once::are_enough(&samples) {
        samples.push(Once::of(&once()?));
        Once::pass_over_a_queue(&mut samples);
    }
    let method = match ask.method.as_str() {
        "" if ask.body.is_empty() => "GET",
        "" => "POST",
        method => method,
    };
    let mut notes = Vec::new();
    let address = first.address;
    let (own, again) = (seen(first), seen(second));
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
    let caching = correctness::caching(&own, method, &ask.fields, Now::read());
    Ok(Known {
        target,
        address,
        own,
        again,
        standard,
        caching,
        samples,
        strangers: Vec::new(),
        personal: Vec::new(),
        notes,
    })
}

impl Known {
    /// How long one request takes when nobody else asks, the median.
    pub(super) fn alone(&self) -> Duration {
        Duration::from_secs_f64(Once::of_several(&self.samples).map_or(0.0, |once| once.total))
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
        self.own.all("cache-control").any(says)
    }

    /// Once more without a proxy, which waits until whoever asked before has been answered; `None`: no answer.
    ///
    /// # Errors
    /// [`Unmeasured::Stopped`].
    pub(super) fn once_more(&self, within: Duration, stop: &Stop) -> Result<Option<Reply>, Unmeasured> {
        match probe::once_unless(stop, &self.target, within, LARGEST) {
            Err(ProbeError::Stopped) => Err(Unmeasured::Stopped),
            told => Ok(told.ok()),
        }
    }

    /// Whether it now answers with another body than before, if only now and then.
    ///
    /// # Errors
    /// [`Unmeasured::Stopped`].
    pub(super) fn has_changed(&self, within: Duration, stop: &Stop) -> Result<bool, Unmeasured> {
        for _ in 0..AGAIN {
            let now = self.once_more(within, stop)?;
            if now.is_some_and(|answer| answer.status == self.own.status && answer.body != self.own.body) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The answer without its times.
pub(super) fn seen(answer: Reply) -> Direct {
    Direct { status: answer.status, fields: answer.fields, body: answer.body }
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
        let known = know_of(target, &ask, &stop).expect("the second address answers");
        assert_eq!((known.address, known.target.addresses.as_slice()), (api.address, &[api.address][..]));
    }
}
