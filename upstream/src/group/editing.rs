//! Servers that come, change and go while the group works, as the API asks.
//!
//! An edit is written to the group's `state` file first, where it has one, and only then put in force: what was answered with
//! success is there after a crash. Edits of one group are made one after the other. Requests under way go on with the version that
//! they began with. Once a reload has put another group in its place (`succession`), that one is edited. Before: `admin`'s
//! `servers`; next: `state_file`.

use super::{Group, Server, State};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Choosing examines each of them.
pub const MOST_SERVERS: usize = 4096;

#[derive(Debug, Clone)]
pub enum Edit {
    Add(Server),
    /// The server that has a peer of this id.
    Change(u64, ServerChange),
    /// The server that has a peer of this id, with all its peers.
    Remove(u64),
}

/// `None` leaves a value unchanged.
#[derive(Debug, Clone, Default)]
pub struct ServerChange {
    /// At least 1.
    pub weight: Option<i64>,
    /// Failures within `fail_timeout` that take it out; 0 = never.
    pub max_fails: Option<u32>,
    pub fail_timeout: Option<Duration>,
    /// 0 = unlimited.
    pub max_conns: Option<u32>,
    pub slow_start: Option<Duration>,
    /// Empty = the hash of its address.
    pub route: Option<String>,
    /// Setting it ends `drain`.
    pub down: Option<bool>,
    /// Setting it ends `down`.
    pub drain: Option<bool>,
}

#[derive(Debug)]
pub enum NotEdited {
    NoServer,
    TooMany,
    Unwritten(io::Error),
}

impl Group {
    /// Returns the ids of the server's peers, none if it is removed. On an error nothing has changed. Blocks
    /// on the disk if the group has a state file.
    pub fn edit(&self, edit: &Edit) -> Result<Vec<u64>, NotEdited> {
        let mut made = self.editing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = self.successor.get() {
            drop(made);
            return next.edit(&edit.as_numbered_in(next, self)?);
        }
        let at = {
            let state = self.lock();
            let at = edit.place(&state)?;
            if let Some(file) = &self.state_file {
                let mut servers = state.servers.clone();
                drop(state);
                edit.apply(&mut servers, at);
                file.write(&servers).map_err(NotEdited::Unwritten)?;
            }
            at
        };
        let gone = match edit {
            Edit::Remove(_) => self.lock().ids_of(at),
            Edit::Add(_) | Edit::Change(..) => Vec::new(),
        };
        // Nobody else adds, moves or takes away servers; resolving gives them other addresses and records only.
        self.change(None, &gone, |servers| edit.apply(servers, at));
        self.changes.notify_waiters();
        *made += 1;
        let state = self.lock();
        Ok(match edit {
            Edit::Remove(_) => Vec::new(),
            Edit::Add(_) | Edit::Change(..) => state.ids_of(at),
        })
    }
}

impl Edit {
    /// The position of its server, or of a new one.
    fn place(&self, state: &State) -> Result<usize, NotEdited> {
        match self {
            Edit::Add(_) if state.servers.len() >= MOST_SERVERS => Err(NotEdited::TooMany),
            Edit::Add(_) => Ok(state.servers.len()),
            Edit::Change(id, _) | Edit::Remove(id) => {
                let mut positions = 0..state.servers.len();
                positions.find(|at| state.ids_of(*at).contains(id)).ok_or(NotEdited::NoServer)
            }
        }
    }

    fn apply(&self, servers: &mut Vec<Server>, at: usize) {
        match self {
            Edit::Add(server) => servers.push(server.clone()),
            Edit::Change(_, change) => change.apply(&mut servers[at]),
            Edit::Remove(_) => _ = servers.remove(at),
        }
    }
}

impl ServerChange {
    fn apply(&self, server: &mut Server) {
        let parameters = &mut server.parameters;
        parameters.weight = self.weight.unwrap_or(parameters.weight);
        parameters.max_fails = self.max_fails.unwrap_or(parameters.max_fails);
        parameters.fail_timeout = self.fail_timeout.unwrap_or(parameters.fail_timeout);
        parameters.max_conns = self.max_conns.unwrap_or(parameters.max_conns);
        parameters.slow_start = self.slow_start.unwrap_or(parameters.slow_start);
        if let Some(down) = self.down {
            parameters.down = down;
            parameters.drain &= !down;
        }
        if let Some(drain) = self.drain {
            parameters.drain = drain;
            parameters.down &= !drain;
        }
        if let Some(route) = &self.route {
            server.route = (!route.is_empty()).then(|| Arc::from(route.as_str()));
        }
    }
}

impl State {
    /// In the version in force, which lists the primary servers first.
    fn ids_of(&self, at: usize) -> Vec<u64> {
        let (mut first, mut ids) = (0, Vec::new());
        for backup in [false, true] {
            for (position, server) in self.servers.iter().enumerate() {
                let next = first + server.places(&self.in_force, backup).len();
                if position == at {
                    ids.extend(self.in_force.members[first..next].iter().map(|member| member.peer.id));
                }
                first = next;
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests;
