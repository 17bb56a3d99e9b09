//! What must not happen, told from what clients were given and what the API made. Pure.
//!
//! An answer of the API is known by its number, which stands in its head and in every line of its body.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::api::Made;
use super::history::{Act, What};
use super::resource::{By, Caching, Delivery, Resource, Trouble, Weights, content, event};

/// Tolerance for a clock of whole seconds and a starved machine.
pub const SLACK: Duration = Duration::from_secs(3);

/// Freshness of storable responses by the API's own fields.
const FRESH: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy)]
pub struct Promise {
    pub by: Weights,
    /// Known credentials: without the API's permission, a response made for one is given to no other.
    pub credentials: &'static [By],
    /// The same for unknown fields.
    pub unlisted: bool,
    /// The same for the client's address, if the API is told it.
    pub addresses: bool,
    pub origins: bool,
    /// No event stream is given to two.
    pub streams: bool,
    /// Freshness without caching fields; `None` if it is not stored.
    pub silent: Option<Duration>,
    /// How much longer stale responses may be given; `None`: unspecified.
    pub stale: Option<Duration>,
    /// The same while the API fails.
    pub stale_on_error: Option<Duration>,
    /// How long after a change others may be given earlier responses; the client that made the change may
    /// not.
    pub changed: Duration,
}

impl Promise {
    /// After this time no earlier response may be given, except those fresh for longer; `None` if
    /// unspecified.
    pub fn longest(&self) -> Option<Duration> {
        let fresh = self.silent.unwrap_or_default().max(FRESH);
        Some(fresh + self.stale?.max(self.stale_on_error.unwrap_or_default()) + SLACK)
    }

    /// `None` if it may not be stored.
    fn fresh(&self, resource: &Resource) -> Option<Duration> {
        let alone = resource.caching.forbids() || resource.delivery == Delivery::Events && self.streams;
        match resource.caching {
            _ if alone => None,
            Caching::Silent => self.silent,
            Caching::Long => Some(LONG),
            _ => Some(FRESH),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    Broken,
    Left,
    Hung,
}

#[derive(Debug, Clone)]
pub struct Given {
    pub act: Act,
    /// The request's value of the field that the resource is personal by.
    pub taker: Option<String>,
    /// Its address as trusted, and the host it asked for.
    pub client: (String, String),
    pub asked: Instant,
    pub read: Instant,
    pub status: u16,
    pub id: Option<usize>,
    pub cookie: Option<String>,
    /// Where the body starts in the whole.
    pub first: Option<usize>,
    pub body: Vec<u8>,
    pub end: End,
    /// Whether the API was ever broken at this resource before.
    pub was_broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Head and body are of two responses, of another URL's, or of none.
    Mixed,
    Other,
    /// Made for one request alone, and given to a second one.
    Alone,
    Stale,
    /// Older than the client's own change, or than another's that is too long ago.
    Unchanged,
    Cut,
    Hung,
    /// The API was still responding long after no one read.
    Outlived,
}

#[derive(Debug, Clone)]
pub struct Change {
    pub client: (String, String),
    pub made: Instant,
    pub known: Instant,
}

impl Change {
    /// If it is a change and nothing went wrong, then or before.
    pub fn of(given: &Given, made: Option<&Made>) -> Option<Change> {
        let made = made.filter(|made| made.method == "POST" && made.ended.is_some())?;
        let succeeded = given.status == 200 && given.end == End::Whole && !given.was_broken;
        succeeded.then(|| Change { client: given.client.clone(), made: made.began, known: given.read })
    }
}

pub fn judge_changes(
    promise: &Promise,
    given: &Given,
    made: Option<&Made>,
    changes: &[Change],
) -> Result<(), Against> {
    let Some(made) = made.filter(|_| !given.was_broken) else { return Ok(()) };
    let is_missed = |change: &Change| {
        let (client, host) = &change.client;
        let late = if *client == given.client.0 { Duration::ZERO } else { promise.changed + SLACK };
        *host == given.client.1
            && given.asked >= change.known + late
            && Some(made.began).max(made.confirmed) < Some(change.made)
    };
    if changes.iter().any(is_missed) { Err(Against::Unchanged) } else { Ok(()) }
}

/// `takers` is how many were given this response.
pub fn judge(
    promise: &Promise,
    place: (usize, usize),
    resource: &Resource,
    given: &Given,
    made: Option<&Made>,
    takers: usize,
) -> Result<(), Against> {
    if given.end == End::Hung && !resource.delivery.is_endless() {
        return Err(Against::Hung);
    }
    // The proxy's own page, an error of the API, or no head at all.
    let Some(id) = given.id else { return Ok(()) };
    let made = made.ok_or(Against::Mixed)?;
    let cookie_fits = given.cookie.as_ref().is_none_or(|cookie| *cookie == format!("made={id}"));
    if (made.history, made.resource) != place || !cookie_fits {
        return Err(Against::Mixed);
    }
    content_fits(resource, given, id, made.length)?;
    if made.taker != given.taker && !may_be_shared(promise, resource, made) {
        return Err(Against::Other);
    }
    let confirmed = made.confirmed.is_some_and(|confirmed| confirmed >= given.asked);
    let earlier = made.began < given.asked && !confirmed;
    let fresh = promise.fresh(resource).filter(|_| given.act.what != What::Post && made.method != "POST");
    let Some(fresh) = fresh else {
        // A 304 tells a client of what it has itself.
        let alone = takers <= 1 && !earlier || given.status == 304;
        return if alone { Ok(()) } else { Err(Against::Alone) };
    };
    let failed = given.was_broken && !matches!(resource.trouble, Trouble::Slow);
    let stale = if failed {
        promise.stale_on_error.and_then(|longer| Some(longer.max(promise.stale?)))
    } else {
        promise.stale
    };
    let told = made.ended.max(made.confirmed);
    match (told, stale) {
        (Some(told), Some(stale)) if given.asked.saturating_duration_since(told) > fresh + stale + SLACK => {
            Err(Against::Stale)
        }
        _ => Ok(()),
    }
}

fn may_be_shared(promise: &Promise, resource: &Resource, made: &Made) -> bool {
    let Some(by) = resource.by else { return true };
    if by == By::Address && made.taker.is_none() {
        return true;
    }
    if resource.varies || resource.caching.forbids() || by == By::Host {
        return false;
    }
    if by == By::Origin && promise.origins && made.taker.is_some() {
        return false;
    }
    if resource.caching.is_for_all() {
        return true;
    }
    let is_kept = match by {
        By::Address | By::Behind => promise.addresses,
        by => promise.credentials.contains(&by) || promise.unlisted,
    };
    !is_kept
}

/// Whether the body belongs to the response named by the head, and is complete if it looks so.
fn content_fits(resource: &Resource, given: &Given, id: usize, length: usize) -> Result<(), Against> {
    if given.act.what == What::Head || !matches!(given.status, 200 | 206) {
        return Ok(());
    }
    if resource.delivery == Delivery::Events {
        let events = given.body.len() / event(id, 0).len() + 1;
        let whole: Vec<u8> = (0..events).flat_map(|number| event(id, number)).collect();
        return if whole.starts_with(&given.body) { Ok(()) } else { Err(Against::Mixed) };
    }
    let whole = content(id, length);
    let first = given.first.unwrap_or(0);
    if !whole.get(first..).is_some_and(|rest| rest.starts_with(&given.body)) {
        return Err(Against::Mixed);
    }
    let is_whole = given.status == 206 || given.body.len() == length;
    if given.end == End::Whole && !is_whole { Err(Against::Cut) } else { Ok(()) }
}
