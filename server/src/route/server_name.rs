//! The server of a request: exact name, longest leading wildcard, longest trailing wildcard, first expression, default.
//!
//! A table per listening address is made at load; a look-up hashes the host once and allocates nothing.

use super::{Captured, Undecided, capture};
use millstream_conf::model::{Http, Listener, Regex, ServerId, ServerName};
use std::collections::HashMap;

pub struct HostTable {
    exact: HashMap<Box<[u8]>, ServerId, foldhash::fast::RandomState>,
    leading: HashMap<Box<[u8]>, ServerId, foldhash::fast::RandomState>,
    trailing: HashMap<Box<[u8]>, ServerId, foldhash::fast::RandomState>,
    expressions: Vec<(Regex, ServerId)>,
    default: ServerId,
    only_default: bool,
}

impl HostTable {
    /// The first of two servers keeps a name, as nginx warns.
    pub fn new(http: &Http, listener: &Listener) -> Self {
        let mut table = HostTable {
            exact: HashMap::default(),
            leading: HashMap::default(),
            trailing: HashMap::default(),
            expressions: Vec::new(),
            default: listener.default_server,
            only_default: listener.servers.len() == 1,
        };
        for &id in &listener.servers {
            for name in &http.server(id).names {
                table.add(name, id);
            }
        }
        table.only_default &= table.expressions.is_empty();
        table
    }

    /// `host` is in lower case without port; empty if the request has none.
    pub fn find(&self, host: &[u8]) -> Result<(ServerId, Option<Captured>), Undecided> {
        if self.only_default {
            return Ok((self.default, None));
        }
        Ok(self.named(host)?.unwrap_or((self.default, None)))
    }

    /// Whether a `server_name` matches this host, as far as that can be told.
    pub fn names(&self, host: &[u8]) -> bool {
        matches!(self.named(host), Ok(Some(_)))
    }

    fn named(&self, host: &[u8]) -> Result<Option<(ServerId, Option<Captured>)>, Undecided> {
        if let Some(&id) = self.exact.get(host) {
            return Ok(Some((id, None)));
        }
        let dots = || host.iter().enumerate().filter(|&(_, &byte)| byte == b'.').map(|(at, _)| at);
        if let Some(&id) = dots().filter(|&at| at > 0).find_map(|at| self.leading.get(&host[at..])) {
            return Ok(Some((id, None)));
        }
        let mut longest = None;
        for at in dots() {
            longest = self.trailing.get(&host[..=at]).or(longest);
        }
        if let Some(&id) = longest {
            return Ok(Some((id, None)));
        }
        for (regex, id) in &self.expressions {
            if let Some(captured) = capture(regex, host)? {
                return Ok(Some((*id, Some(captured))));
            }
        }
        Ok(None)
    }

    fn add(&mut self, name: &ServerName, id: ServerId) {
        match name {
            ServerName::Exact(text) => _ = self.exact.entry(text.as_bytes().into()).or_insert(id),
            ServerName::LeadingWildcard(text) => _ = self.leading.entry(text.as_bytes().into()).or_insert(id),
            ServerName::TrailingWildcard(text) => {
                _ = self.trailing.entry(text.as_bytes().into()).or_insert(id)
            }
            ServerName::Regex(regex) => self.expressions.push((regex.clone(), id)),
        }
    }
}
