//! `purger=on`: looks at every file after a purge and removes those that the purge goes for.
//!
//! Without it they go when they are come upon or unused: what a purge touched is never answered either way, this only
//! frees the disk. Heads are read, bodies are not, at the pace of `purger_files`, `purger_threshold` and
//! `purger_sleep`. Next: `keeper`, which calls it.

use super::place::Name;
use super::{Disk, lock};
use crate::file_format::FileHead;
use crate::key;

impl Disk {
    /// Removes the file if a purge applies to it. `is_purged` gets the file's head and where its fill stands
    /// among the purges.
    pub(super) fn remove_where(&self, name: &Name, is_purged: impl Fn(&FileHead, u64) -> bool) {
        // Under the stripe, so that what is removed is what was read. Damage is for those who want to answer from it. A
        // key's own file stays where there may be others of its variants: they count only beside it.
        let _stripe = lock(self.stripe(name));
        if let Ok((head, born)) = self.read_head(name)
            && !(head.vary.is_some() && key::md5(&head.key) == *name)
            && is_purged(&head, born)
        {
            self.remove(name);
        }
    }
}
