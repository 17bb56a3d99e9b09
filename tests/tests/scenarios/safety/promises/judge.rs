//! What must not happen, told from what clients were given and what the API made. Pure.
//!
//! An answer of the API is known by its number, which stands in its head and in every line of its body.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::api::Made;
use super::history::{Act, What};
use super::resource::{By, Caching, Delivery, Resource, Trouble, Weights, content, event};

/// What a clock of whole seconds and a starved machine may add to a promise.
pub const SLACK: Duration = Duration::from_secs(3);

/// How long what may be stored is fresh by the API's own word.
const FRESH: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(600);

/// What a configuration promises.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// What APIs answer by that are tried with it.
    pub by: Weights,
    /// Fields that are known to be credentials: without the API's word, what was made for one is given to no other.
    pub credentials: &'static [By],
    /// The same for fields that nobody knows.
    pub unlisted: bool,
    /// The same for the client's address, where the API is told it.
    pub addresses: bool,
    /// An answer that echoes the request's origin is given to no other origin.
    pub origins: bool,
    /// No event stream is given to two.
    pub streams: bool,
    /// How long what says nothing is fresh; `None` where it is not stored.
    pub silent: Option<Duration>,
    /// How much longer what is old may be given; `None`: nothing is said.
    pub stale: Option<Duration>,
    /// The same while the API fails.
    pub stale_on_error: Option<Duration>,
    /// How long after a change others may be given what was made before it; who made the change is not.
    pub changed: Duration,
}

impl Promise {
    /// After so long nothing that was made before may be given, but what is fresh for longer; `None` where nothing is said of that.
    pub fn longest(&self) -> Option<Duration> {
        let fresh = self.silent.unwrap_or_default().max(FRESH);
        Some(fresh + self.stale?.max(self.stale_on_error.unwrap_or_default()) + SLACK)
    }

    /// How long an answer is fresh; `None` where it may not be stored.
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

/// How a client's reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The connection ended before the body did.
    Broken,
    /// The client went.
    Left,
    /// Nothing more came for as long as a client waits.
    Hung,
}

/// What a client was given.
#[derive(Debug, Clone)]
pub struct Given {
    pub act: Act,
    /// What its request said in the field that the resource is personal by.
    pub taker: Option<String>,
    /// The client's address, as whom it is trusted to be, and the host it asked for.
    pub client: (String, String),
    pub asked: Instant,
    /// When it had read what it was given.
    pub read: Instant,
    pub status: u16,
    /// The number in the head.
    pub id: Option<usize>,
    pub cookie: Option<String>,
    /// Where the body stands in the whole.
    pub first: Option<usize>,
    /// Decoded.
    pub body: Vec<u8>,
    pub end: End,
    /// Whether the API was broken at this resource at any time before.
    pub was_broken: bool,
}

/// What happened that must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Head and body are of two answers, of another URL's, or of none.
    Mixed,
    /// Made for somebody else.
    Other,
    /// For one request alone, and it was given to a second one.
    Alone,
    /// Older than was promised.
    Stale,
    /// Older than the client's own change, or than another's that is too long ago.
    Unchanged,
    /// It looks whole and is not.
    Cut,
    /// No answer came, though the API gave one.
    Hung,
    /// The API was still answering long after nobody read.
    Outlived,
}

/// A change of a resource that succeeded.
#[derive(Debug, Clone)]
pub struct Change {
    /// Who made it, at which host.
    pub client: (String, String),
    /// When the API made it.
    pub made: Instant,
    /// When the client knew.
    pub known: Instant,
}

impl Change {
    /// What a client was given, if that is a change: nothing went wrong, then or before.
    pub fn of(given: &Given, made: Option<&Made>) -> Option<Change> {
        let made = made.filter(|made| made.method == "POST" && made.ended.is_some())?;
        let succeeded = given.status == 200 && given.end == End::Whole && !given.was_broken;
        succeeded.then(|| Change { client: given.client.clone(), made: made.began, known: given.read })
    }
}

/// Judges whether what one client was given is as new as the changes of the resource ask for.
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

/// Judges what one client was given. `takers` is how many were given this answer.
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

/// Whether an answer may be given to somebody for whom it was not made.
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

/// Whether the body is the one of the answer that the head names, and whole where it looks whole.
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
