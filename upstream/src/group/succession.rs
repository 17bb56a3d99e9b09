//! What happens to edits when a reload puts another group in the place of one: none is lost, whichever comes first.
//!
//! A reload reads the `state` file long before its groups are in force. It counts the edits before that, and where there are more
//! when it takes over, the new group takes over their outcome too; from then on whoever still has the old group edits the new one.
//! Nothing is decided here of a group that goes. Before: `app`'s `reload`; beside: `editing`.

use super::editing::{Edit, NotEdited};
use super::{Group, State};
use std::sync::{Arc, PoisonError};

impl Group {
    /// The `state` file contains all of these. Waits for a current edit.
    pub fn edits(&self) -> u64 {
        *self.editing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces `before`, which had had `edits` when this one's configuration was read. Call it when this
    /// group is in force. Waits for a current edit.
    pub fn succeed(self: &Arc<Self>, before: &Group, edits: u64) {
        let made = before.editing.lock().unwrap_or_else(PoisonError::into_inner);
        // The same file: what was read of it may lack what was written since.
        if *made != edits && self.state_file.is_some() && self.state_file == before.state_file {
            let (servers, peers) = (before.servers(), before.in_force());
            self.change(Some(&peers), &[], |known| *known = servers);
            self.changes.notify_waiters();
        }
        // Under the lock that edits are made under; a group is succeeded once.
        _ = before.successor.set(self.clone());
    }

    /// The group in force: itself, unless a reload has replaced it. Never waits.
    pub fn latest(self: &Arc<Self>) -> &Arc<Group> {
        let mut latest = self;
        while let Some(next) = latest.successor.get() {
            latest = next;
        }
        latest
    }
}

impl Edit {
    /// The same edit with the peer ids of `next`.
    pub(super) fn as_numbered_in(&self, next: &Group, before: &Group) -> Result<Edit, NotEdited> {
        let number = |id: &u64| next.lock().number_of(&before.lock(), *id).ok_or(NotEdited::NoServer);
        Ok(match self {
            Edit::Add(server) => Edit::Add(server.clone()),
            Edit::Change(id, change) => Edit::Change(number(id)?, change.clone()),
            Edit::Remove(id) => Edit::Remove(number(id)?),
        })
    }
}

impl State {
    /// The id here of a peer of `there`: the same address of the same server, and among several the one in
    /// the same position.
    fn number_of(&self, there: &State, id: u64) -> Option<u64> {
        let known = there.in_force.members.iter().find(|member| member.peer.id == id)?;
        let is_it =
            |peer: &&super::Member| peer.server == known.server && peer.peer.address == known.peer.address;
        let before = there.in_force.members.iter().filter(is_it).position(|member| member.peer.id == id)?;
        self.in_force.members.iter().filter(is_it).nth(before).map(|member| member.peer.id)
    }
}
