//! Header fields by which the answers to one client differ from those to another, though their bodies are the same.
//!
//! A cached answer with another client's `Access-Control-Allow-Origin` is as wrong as one with another client's body: a
//! browser refuses it. What changes by itself (a date, a counter) tells nobody apart. Next: `strangers`.

use super::Direct;

/// What clients and caches act on.
const FIELDS: [&str; 17] = [
    "Access-Control-Allow-Origin",
    "Access-Control-Allow-Credentials",
    "Access-Control-Allow-Headers",
    "Access-Control-Allow-Methods",
    "Access-Control-Expose-Headers",
    "Access-Control-Max-Age",
    "Cache-Control",
    "CDN-Cache-Control",
    "Content-Disposition",
    "Content-Language",
    "Content-Type",
    "Expires",
    "Link",
    "Location",
    "Set-Cookie",
    "Vary",
    "WWW-Authenticate",
];

/// Those among them that a proxy may make its own: it names itself in the one and its compression in the other.
const OF_PROXIES: [&str; 2] = ["Location", "Vary"];

/// The first field that the API gives twice alike and a step gives otherwise.
pub fn changed(own: [&Direct; 2], given: &Direct) -> Option<&'static str> {
    let is_changed = |name: &&str| is_same(name, own[0], own[1]) && !is_same(name, own[0], given);
    FIELDS.iter().copied().filter(|name| !OF_PROXIES.contains(name)).find(is_changed)
}

/// Whether two answers differ in none of them.
pub(super) fn agree(one: &Direct, other: &Direct) -> bool {
    FIELDS.iter().all(|name| is_same(name, one, other))
}

/// Those that are the same in two answers to the user and in two to the stranger, and differ between them.
pub(super) fn between(user: [&Direct; 2], stranger: [&Direct; 2]) -> Vec<&'static str> {
    let tells = |name: &&str| {
        is_same(name, user[0], user[1])
            && is_same(name, stranger[0], stranger[1])
            && !is_same(name, user[0], stranger[0])
    };
    FIELDS.iter().copied().filter(tells).collect()
}

/// The first of `fields` in which a stranger was given the user's and not his own.
pub(super) fn of_user<'a>(
    fields: &'a [&'static str],
    given: &Direct,
    user: &Direct,
    stranger: &Direct,
) -> Option<&'a str> {
    let is_of_user = |name: &&&str| is_same(name, given, user) && !is_same(name, given, stranger);
    fields.iter().find(is_of_user).copied()
}

fn is_same(name: &str, one: &Direct, other: &Direct) -> bool {
    values(one, name) == values(other, name)
}

/// The values of a field; of a cookie its name alone, because each client gets a value of its own.
fn values<'a>(answer: &'a Direct, name: &'a str) -> Vec<&'a str> {
    let part = |value: &'a str| match name {
        "Set-Cookie" => value.split('=').next().unwrap_or(value),
        _ => value,
    };
    answer.all(name).map(part).collect()
}
