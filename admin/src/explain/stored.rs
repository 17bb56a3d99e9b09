//! One stored answer: what tells it from the other variants, how long it is fresh and by what arithmetic, and which field
//! or directive decided that.
//!
//! The judgement is made again from the stored fields as of the moment they arrived; what only the exchange knew (Age,
//! the way here) is taken from the entry itself.

use super::said::said;
use super::{ConfigurationPlace, at};
use millstream_cache::policy::{self, Arithmetic, Because, RequestFacts};
use millstream_cache::{Entry, Head, Held, How, Now, Part, Ruling};
use millstream_conf::model::{Pass, ProxyCache};
use millstream_server::location_text::readable;
use millstream_server::request::Request;
use millstream_wire::{Coding, Method, masked};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coded {
    pub coding: String,
    pub length: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// Whether the request would get this one.
    pub chosen: bool,
    /// The fields its variant depends on, with their values if they identify no one.
    pub varies_by: Vec<String>,
    pub status: u16,
    pub length: u64,
    /// Byte range and complete length of a partial response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    pub tier: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codings: Vec<Coded>,
    pub tags: usize,
    /// Seconds, as in the Age field.
    pub age: u64,
    pub fresh: bool,
    /// Seconds of freshness left; negative once stale.
    pub left: i64,
    /// One step each.
    pub arithmetic: Vec<String>,
    /// What decided: a field with its value, or a directive.
    pub because: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<ConfigurationPlace>,
}

pub(super) struct Of<'a> {
    pub(super) request: &'a Request,
    pub(super) proxy: &'a Pass,
    pub(super) cache: &'a ProxyCache,
    /// The latest purge that applies to the key.
    pub(super) ruling: Option<&'a Ruling>,
}

pub(super) fn told(of: &Of<'_>, entry: &Entry, chosen: bool, now: Now) -> Stored {
    let Of { request, proxy, cache, ruling } = *of;
    let head = entry.head();
    let purged_at = ruling
        .filter(|ruling| ruling.how == How::Soft && ruling.at >= head.stored_at)
        .map(|ruling| ruling.at)
        .filter(|at| head.lifetime.fresh_until == *at);
    let arrived = Now { unix_milliseconds: head.stored_at, instant: now.instant };
    let facts = RequestFacts { method: Method::Get, partial: head.part.is_some(), ..RequestFacts::default() };
    let judgement = policy::judge(
        cache,
        &proxy.exchange.ignore_headers,
        &facts,
        head.status,
        head.fields(),
        arrived,
        false,
    );
    let arithmetic = judgement.arithmetic.map(|numbers| as_stored(numbers, &head, purged_at));
    let fresh_for = head.lifetime.fresh_until.saturating_sub(head.stored_at).div_euclid(1000);
    let left = head.lifetime.fresh_until.saturating_sub(now.unix_milliseconds).div_euclid(1000);
    let mut steps: Vec<String> = match &arithmetic {
        Some(numbers) => numbers.steps().collect(),
        None => vec![format!("fresh for {fresh_for} s")],
    };
    let since = now.unix_milliseconds.saturating_sub(head.stored_at).div_euclid(1000);
    let ago = |moment: i64| now.unix_milliseconds.saturating_sub(moment).max(0).div_euclid(1000);
    steps.push(match purged_at {
        Some(at) => format!("stored {since} s ago, made stale by a purge {} s ago", ago(at)),
        None if left < 0 => format!("stored {since} s ago, expired {} s ago", left.unsigned_abs()),
        None => format!("stored {since} s ago, {left} s left"),
    });
    let is_default = matches!(judgement.because, Because::Nothing);
    let place = judgement
        .because
        .place(cache)
        .map(|span| ConfigurationPlace { name: because(&judgement.because), at: at(request, *span) });
    Stored {
        chosen,
        varies_by: varies_by(entry),
        status: head.status,
        length: entry.length(),
        part: head.part.as_ref().map(part),
        tier: if entry.body_in_file().is_none() { "memory" } else { "disk" }.to_owned(),
        codings: entry.coded_bodies().map(coded).collect(),
        tags: head.tags.named(),
        age: entry.age(now),
        fresh: entry.is_fresh(now),
        left,
        arithmetic: steps,
        because: if is_default {
            "no header or directive applies".to_owned()
        } else {
            because(&judgement.because)
        },
        at: place,
    }
}

/// Turns the arithmetic of an arriving response into that of a stored one: the entry has only the results of
/// its fields.
fn as_stored(mut numbers: Arithmetic, head: &Head<'_>, purged_at: Option<i64>) -> Arithmetic {
    if numbers.initial_age.is_some() {
        numbers.initial_age = Some(head.lifetime.initial_age);
        numbers.age_field = head.lifetime.initial_age;
        numbers.transit = std::time::Duration::ZERO;
    }
    numbers.fresh_until = match (purged_at, numbers.initial_age) {
        (None, _) => head.lifetime.fresh_until,
        // As it was before the purge.
        (Some(_), None) => numbers.fresh_until,
        (Some(_), Some(age)) => {
            head.stored_at.saturating_add(milliseconds(numbers.lifetime.saturating_sub(age)))
        }
    };
    numbers
}

fn coded((coding, body): (Coding, &Held)) -> Coded {
    Coded { coding: coding.name().to_owned(), length: body.len() as u64 }
}

fn milliseconds(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn part(part: &Part) -> String {
    match part.complete {
        Some(complete) => format!("bytes {}-{} of {complete}", part.first, part.last),
        None => format!("bytes {}-{} of unknown length", part.first, part.last),
    }
}

fn because(because: &Because<'_>) -> String {
    match because {
        Because::Field(id, value) => {
            format!("{}: {}", id.name(), masked::field(id.name().as_bytes(), &readable(value)))
        }
        Because::RequestField(id) => format!("the request's {}", id.name()),
        Because::Directive(name) => (*name).to_owned(),
        Because::Method(method) => format!("the method {}", method.name().unwrap_or("of the request")),
        Because::Status(status) => format!("the status {status}"),
        Because::Nothing => String::new(),
    }
}

fn varies_by(entry: &Entry) -> Vec<String> {
    entry.varies_by().iter().map(|(name, value)| said(name, value.as_deref())).collect()
}
