//! `sticky`: which server a request's session belongs to, and how the client and we come to know it.
//!
//! That server is only wished for: where it cannot be asked another one is chosen (`millstream-upstream`'s `balance`). The cookie is the
//! client's alone: it is written beside what an answer says, and never stored. Next: `destination`, which has the session.

use super::Passing;
use crate::generation::Generation;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::{CookieLife, Sticky, StickyCookie, StickyWay, Template, UpstreamId};
use millstream_net::clock;
use millstream_upstream::Turn;
use millstream_wire::date;

#[derive(Default)]
pub(super) struct Session {
    /// `None` without `sticky`.
    group: Option<UpstreamId>,
    name: Option<Vec<u8>>,
    /// `sticky`'s name of its server, if known.
    server: Option<Vec<u8>>,
}

pub(super) fn session(request: &Request, generation: &Generation, group: usize) -> Session {
    let Some(sticky) = &generation.http().upstreams[group].sticky else { return Session::default() };
    let name = first_value(&sticky.lookup, request);
    let server = match (generation.upstreams[group].group().sessions(), &name) {
        (Some(sessions), Some(name)) => {
            sessions.server_of(name, clock::now()).map(|server| server.as_bytes().to_vec())
        }
        (None, name) => name.clone(),
        (Some(_), None) => None,
    };
    Session { group: Some(UpstreamId(group as u32)), name, server }
}

fn first_value(templates: &[Template], request: &Request) -> Option<Vec<u8>> {
    templates.iter().map(|template| value(template, request)).find(|value| !value.is_empty())
}

impl Session {
    pub(super) fn server(&self) -> Option<&[u8]> {
        self.server.as_deref()
    }

    fn sticky<'g>(&self, generation: &'g Generation) -> Option<&'g Sticky> {
        generation.http().upstream(self.group?).sticky.as_ref()
    }
}

/// Sends `sticky cookie`, whatever the response.
pub(super) fn chosen(request: &mut Request, session: &Session, turn: &Turn) {
    if session.group.is_none() {
        return;
    }
    let generation = request.generation.clone();
    if let Some(Sticky { way: StickyWay::Cookie(cookie), .. }) = session.sticky(&generation) {
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
