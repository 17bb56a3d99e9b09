//! What happens to edits when a reload puts another group in the place of one: none is lost, whichever comes first.
//!
//! A reload reads the `state` file long before its groups are in force. It counts the edits before that, and where there are more
//! when it takes over, the new group takes over their outcome too; from then on whoever still has the old group edits the new one.
//! Nothing is decided here of a group that goes. Before: `app`'s `reload`; beside: `editing`.

use super::editing::{Edit, NotEdited};
use super::{Group, State};
use std::sync::{Arc, PoisonError};

impl Group {
    /// How many edits were made; what the `state` file holds has all of these. Waits for one that is being made.
    pub fn edits(&self) -> u64 {
        *self.editing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of `before`, of which `edits` had been made before the configuration of this one was read. To be called
    /// when this group is in force. Waits for an edit that is being made.
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

    /// The group that is in force in the place of this one: itself, where no reload has put another there. Waits for nobody.
    pub fn latest(self: &Arc<Self>) -> &Arc<Group> {
        let mut latest = self;
        while let Some(next) = latest.successor.get() {
            latest = next;
        }
        latest
    }
}

impl Edit {
    /// The same edit as `next` numbers the peers that `before` knows.
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
    /// The number here of the peer that has this one there: the same address of the same server, and of several the one that is as
    /// far down.
    fn number_of(&self, there: &State, id: u64) -> Option<u64> {
        let known = there.in_force.members.iter().find(|member| member.peer.id == id)?;
        let is_it =
            |peer: &&super::Member| peer.server == known.server && peer.peer.address == known.peer.address;
        let before = there.in_force.members.iter().filter(is_it).position(|member| member.peer.id == id)?;
        self.in_force.members.iter().filter(is_it).nth(before).map(|member| member.peer.id)
    }
}
