//! `limit_rate`: when how much of an answer may be sent, in nginx's arithmetic.
//!
//! By any moment an answer may have had its rate times the seconds since its request began, and one second's more; after each write
//! it pauses for as long as the rate takes for what was written. It waits by a timer and holds nothing. Next:
//! `client/sending`, which asks before it writes.

use crate::failure;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::{Level, RequestSize};
use millstream_conf::size;
use millstream_net::clock;
use millstream_net::timer::Deadline;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Pace {
    /// Bytes a second, not 0.
    rate: u64,
    /// Bytes before the limit applies.
    after: u64,
    began: Instant,
    pause: Deadline,
}

impl Pace {
    pub fn of(request: &Request) -> Option<Box<Pace>> {
        let settings = &request.location().settings.limit_rate;
        let is_unlimited = request.reply.limit_rate.is_none() && settings.rate == RequestSize::Fixed(0);
        if is_unlimited || request.descent.wanted.is_some() {
            return None;
        }
        let rate = request.reply.limit_rate.unwrap_or_else(|| bytes(&settings.rate, request));
        let (began, pause) = (request.received.started, Deadline::new());
        (rate > 0).then(|| Box::new(Pace { rate, after: bytes(&settings.after, request), began, pause }))
    }

    /// Bytes that may be written after `sent`; waits until there is one.
    pub fn poll_most(&mut self, cx: &mut Context<'_>, sent: u64) -> Poll<usize> {
        loop {
            if self.pause.at().is_some() {
                ready!(self.pause.poll(cx));
                self.pause.clear();
            }
            let now = clock::now();
            match self.most(sent, now) {
                Ok(most) => return Poll::Ready(usize::try_from(most).unwrap_or(usize::MAX)),
                Err(pause) => self.pause.set(now + pause),
            }
        }
    }

    pub fn is_paused(&self) -> bool {
        self.pause.at().is_some()
    }

    /// `more` bytes after the first `sent`.
    pub fn wrote(&mut self, sent: u64, more: u64) {
        let pause = self.pause_after(sent, more);
        if !pause.is_zero() {
            self.pause.set(clock::now() + pause);
        }
    }

    /// Bytes that may be written, or the time to wait.
    fn most(&self, sent: u64, now: Instant) -> Result<u64, Duration> {
        let (rate, since) = (u128::from(self.rate), now.saturating_duration_since(self.began));
        let allowed = rate * (since.as_millis() + 1000) / 1000 + u128::from(self.after);
        match allowed.checked_sub(u128::from(sent)) {
            Some(most @ 1..) => Ok(u64::try_from(most).unwrap_or(u64::MAX)),
            _ => Err(milliseconds((u128::from(sent) - allowed) * 1000 / rate + 1)),
        }
    }

    fn pause_after(&self, sent: u64, more: u64) -> Duration {
        let limited = |sent: u64| u128::from(sent.saturating_sub(self.after));
        milliseconds((limited(sent + more) - limited(sent)) * 1000 / u128::from(self.rate))
    }
}

fn milliseconds(count: u128) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(u64::MAX))
}

/// In bytes; an invalid size is logged and means no limit, as in nginx.
pub fn bytes(of: &RequestSize, request: &Request) -> u64 {
    match of {
        RequestSize::Fixed(bytes) => *bytes,
        RequestSize::Variable(template) => {
            let text = value(template, request);
            let parsed = std::str::from_utf8(&text).ok().and_then(|text| size(text).ok());
            parsed.unwrap_or_else(|| {
                if !text.is_empty() {
                    let text = String::from_utf8_lossy(&text);
                    failure::log(request, Level::Error, format_args!("invalid size \"{text}\""));
                }
                0
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: u64, after: u64) -> Pace {
        Pace { rate, after, began: clock::now(), pause: Deadline::new() }
    }

    #[test]
    fn an_answer_may_have_had_its_rate_for_every_second_begun() {
        for (rate, after, sent, at, expected) in [
            (1000, 0, 0, 0, Ok(1000)),
            (1000, 0, 400, 0, Ok(600)),
            (1000, 0, 1000, 0, Err(1)),
            (1000, 0, 1000, 1000, Ok(1000)),
            (1000, 0, 1500, 0, Err(501)),
            (1000, 500, 1000, 0, Ok(500)),
            (1000, 500, 1500, 0, Err(1)),
            (3, 0, 4, 0, Err(334)),
            (1, 0, u64::MAX, 0, Err(u64::MAX)),
            (u64::MAX, u64::MAX, 5, 0, Ok(u64::MAX)),
        ] {
            let pace = pace(rate, after);
            let most = pace.most(sent, pace.began + Duration::from_millis(at));
            let expected = expected.map_err(Duration::from_millis);
            assert_eq!(most, expected, "{rate} a second after {after}, {sent} sent, {at} ms");
        }
    }

    #[test]
    fn after_a_write_it_pauses_for_what_the_rate_takes_for_it() {
        for (rate, after, sent, more, expected) in [
            (1000, 0, 0, 1000, 1000),
            (1000, 0, 5000, 250, 250),
            (1000, 500, 0, 500, 0),
            (1000, 500, 0, 1500, 1000),
            (1000, 500, 400, 300, 200),
            (4096, 0, 0, 3, 0),
        ] {
            let pause = pace(rate, after).pause_after(sent, more);
            assert_eq!(pause, Duration::from_millis(expected), "{rate} after {after}: {sent} and {more}");
        }
    }
}
