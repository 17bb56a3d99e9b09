//! `sticky`: how the client and we come to know whose a session is.
//!
//! The cookie is the client's alone: it is written beside what an answer says, and never stored. Before: `session`; next: `attempt`.

use super::Passing;
use super::destination::Destination;
use super::session::first_value;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::{CookieLife, Sticky, StickyCookie, StickyWay, Template};
use millstream_net::clock;
use millstream_upstream::Turn;
use millstream_wire::date;

/// Sends `sticky cookie`, whatever the response.
pub(super) fn chosen(request: &mut Request, destination: &Destination, turn: &Turn) {
    if destination.session.group.is_none() {
        return;
    }
    let generation = request.generation.clone();
    if let Some(Sticky { way: StickyWay::Cookie(cookie), .. }) = destination.session.sticky(&generation) {
        request.reply.session_cookie = Some(cookie_of(cookie, turn.session_name(), request).into());
    }
}

fn cookie_of(cookie: &StickyCookie, server: &str, request: &Request) -> Vec<u8> {
    let mut text = [cookie.name.as_bytes(), b"=", server.as_bytes()].concat();
    let mut add = |name: &str, value: &[u8]| {
        text.extend_from_slice(b"; ");
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(value);
    };
    match cookie.expires {
        Some(CookieLife::Max) => add("expires=", b"Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000"),
        Some(CookieLife::For(life)) => {
            let seconds = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
            add("expires=", &date::format_cookie(clock::wall().seconds.saturating_add(seconds)));
            add("max-age=", seconds.to_string().as_bytes());
        }
        None => {}
    }
    let evaluated = |template: &Option<Template>| {
        template.as_ref().map(|template| value(template, request)).filter(|value| !value.is_empty())
    };
    if let Some(domain) = evaluated(&cookie.domain) {
        add("domain=", &domain);
    }
    if cookie.http_only {
        add("httponly", b"");
    }
    if cookie.secure {
        add("secure", b"");
    }
    if let Some(value) = evaluated(&cookie.same_site) {
        let is_known =
            StickyCookie::SAME_SITE.iter().any(|known| value.eq_ignore_ascii_case(known.as_bytes()));
        add("samesite=", if is_known { &value } else { b"strict" });
    }
    if let Some(path) = &cookie.path {
        add("path=", path.as_bytes());
    }
    // What a variable says of a request is no field of its own.
    text.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
    text
}

/// `sticky learn`, once a head is accepted.
pub(super) fn learn_session(passing: &Passing<'_>, turn: &mut Turn) {
    let session = &passing.destination.session;
    let Some(group) = session.group else { return };
    let generation = &passing.request.generation;
    let Some(Sticky { way: StickyWay::Learn(learn), .. }) = session.sticky(generation) else { return };
    let Some(sessions) = generation.upstreams[group.0 as usize].group().sessions() else { return };
    let created = first_value(&learn.create, passing.request);
    let Some(name) = created.as_ref().or(session.name.as_ref()) else { return };
    turn.learn(sessions, name, created.is_some(), learn.from_header.then(clock::now));
}
