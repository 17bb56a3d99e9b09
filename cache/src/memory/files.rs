//! What memory knows of a key's files: which is its own one, which is looked for in vain, which others have removed.
//!
//! Which variant is in which file is `variants`' to say. Next: `change`, everything else that changes a key.

use super::change::{end_line, settle_vary, take_entry};
use super::grant::Grant;
use super::shard::After;
use super::shards::Shards;
use super::slot::Slot;
use crate::key::Key;
use crate::variants::{self, BaseFile, FileName, OwnFile};
use crate::vary::VaryFields;
use std::sync::Arc;

impl Slot {
    pub(crate) fn file_name(&self, values: Option<&[u8]>) -> FileName {
        variants::name_of(self.key(), self.base.as_deref(), values)
    }

    pub(crate) fn has_file_beside(&self, values: Option<&[u8]>) -> bool {
        variants::is_beside(self.base.as_deref(), values)
    }
}

/// Whose file was removed.
pub(super) enum Unlinked {
    Nothing,
    Variant,
    /// The key's own: nothing of it counts any more.
    Key(Arc<Key>),
}

impl Shards {
    pub(crate) fn found_on_disk(&self, grant: &Grant, own: &OwnFile) {
        let vary = own.variant.as_ref().map(|variant| variant.fields.clone());
        self.change(&grant.key, |shard, index, after| {
            let Some(index) = index else { return };
            let slot = shard.slot(index);
            if slot.vary.is_none()
                && let Some(vary) = &vary
            {
                // Cannot be too many: they were few enough to be written.
                let _ = settle_vary(slot, Some((**vary).clone()), after);
            }
            // Otherwise the file is older than what memory knows about the key.
            if slot.vary == vary {
                slot.base = Some(Box::new(own.base()));
            }
        });
    }

    /// The file does not exist: it is not looked for again, and the line ends.
    pub(crate) fn absent_on_disk(&self, grant: &Grant) {
        self.cell(grant, |cell, after| {
            cell.absent_on_disk = true;
            end_line(cell, grant, after);
        });
    }

    pub(crate) fn written(&self, key: &Key, vary: Option<&VaryFields>, base: BaseFile) {
        self.change(key, |shard, index, _| {
            if let Some(index) = index {
                let slot = shard.slot(index);
                if slot.vary.as_deref() == vary {
                    slot.base = Some(Box::new(base));
                }
            }
        });
    }

    pub(crate) fn base_of(&self, key: &Key) -> Option<BaseFile> {
        let mut shard = self.shard(key.hash());
        let index = shard.find(key.hash(), key.bytes())?;
        shard.slot(index).base.as_deref().cloned()
    }

    /// A file was removed of a key of which only the hash is known. If it was a variant's, the variant goes.
    pub(super) fn unlinked(&self, hash: u64, name: &FileName) -> Unlinked {
        let place = |slot: &Slot| {
            slot.cells.iter().position(|cell| {
                cell.values.as_deref().is_some_and(|values| variants::beside(slot.key(), values) == *name)
            })
        };
        let mut after = After::default();
        let mut shard = self.shard(hash);
        if let Some(index) = shard.find_by(hash, |slot| variants::own(slot.key()) == *name) {
            return Unlinked::Key(shard.slot(index).shared_key());
        }
        let Some(index) = shard.find_by(hash, |slot| place(slot).is_some()) else { return Unlinked::Nothing };
        let slot = shard.slot(index);
        if let Some(at) = place(slot) {
            take_entry(slot, at, &mut after);
        }
        shard.remove_if_empty(index);
        drop(shard);
        self.free(after.freed);
        Unlinked::Variant
    }
}
