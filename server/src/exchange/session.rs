//! Which server a request's session belongs to, in a group with `sticky`.
//!
//! That server is only wished for: where it cannot be asked another one is chosen (`millstream-upstream`'s `balance`). Next:
//! `destination`, which has it; `sticky`, how it comes to be known.

use crate::generation::Generation;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::{Sticky, Template, UpstreamId};
use millstream_net::clock;

#[derive(Default)]
pub(super) struct Session {
    /// `None` without `sticky`.
    pub(super) group: Option<UpstreamId>,
    pub(super) name: Option<Vec<u8>>,
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

pub(super) fn first_value(templates: &[Template], request: &Request) -> Option<Vec<u8>> {
    templates.iter().map(|template| value(template, request)).find(|value| !value.is_empty())
}

impl Session {
    pub(super) fn server(&self) -> Option<&[u8]> {
        self.server.as_deref()
    }

    pub(super) fn sticky<'g>(&self, generation: &'g Generation) -> Option<&'g Sticky> {
        generation.http().upstream(self.group?).sticky.as_ref()
    }
}
