//! RFC 9111 and its companions as cases, one file per concern.

mod storing;
mod sharing;
mod freshness;
mod validation;
mod targeted;
mod requests;
mod grounds;

use super::*;
use crate::now::Now;
use crate::samples;
use millstream_conf::model::{Credentials, IgnoreHeaders, ProxyCache, UseStale, Valid, ValidStatus};
use millstream_wire::{Headers, Method};
use std::time::{Duration, Instant};

/// 2026-11-21 10:00:00 UTC.
const NOW: i64 = 1_795_255_200;

fn now() -> Now {
    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    Now { unix_milliseconds: NOW * 1000, instant: Instant::now() }
}

fn headers(lines: &str) -> Headers {
    let mut headers = Headers::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').expect("a field line");
        headers.push(name.as_bytes(), value.trim().as_bytes());
    }
    headers
}

fn get() -> RequestFacts {
    RequestFacts::default()
}

fn of(method: Method) -> RequestFacts {
    RequestFacts { method, ..get() }
}

/// Who says what users share may store what nginx does not.
fn apart() -> ProxyCache {
    ProxyCache { credentials: Credentials::Any, ..samples::conf() }
}

fn revalidating() -> ProxyCache {
    ProxyCache { revalidate: true, ..apart() }
}

fn terms(
    conf: &ProxyCache,
    ignore: &IgnoreHeaders,
    request: RequestFacts,
    status: u16,
    lines: &str,
) -> Result<Lifetime, Reason> {
    match storable(conf, ignore, &request, status, headers(lines).view(), now(), false) {
        Storable::Yes(lifetime) => Ok(lifetime),
        Storable::No(reason) => Err(reason),
    }
}

/// Seconds of freshness, or the reason against it.
fn seconds(
    conf: &ProxyCache,
    ignore: &IgnoreHeaders,
    request: RequestFacts,
    status: u16,
    lines: &str,
) -> Result<i64, Reason> {
    terms(conf, ignore, request, status, lines).map(|lifetime| (lifetime.fresh_until - NOW * 1000) / 1000)
}

fn check(lines: &str, expected: Result<i64, Reason>) {
    let found = seconds(&samples::conf(), &IgnoreHeaders::default(), get(), 200, lines);
    assert_eq!(found, expected, "{lines}");
}

fn check_of(conf: &ProxyCache, status: u16, lines: &str, expected: Result<i64, Reason>) {
    assert_eq!(seconds(conf, &IgnoreHeaders::default(), get(), status, lines), expected, "{status} {lines}");
}
