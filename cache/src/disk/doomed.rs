//! Files that are purged and not removed yet: removing waits for its turn off the loop, and until then nobody may read
//! them, or an answer would come back that was just taken away.
//!
//! A name is doomed before memory lets go of the key, so whoever misses there finds no file either. Next: `read`, which
//! asks; `store/purge`, which dooms.

use super::lock;
use super::place::Name;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
pub(super) struct Doomed(Mutex<HashMap<Name, usize>>);

/// The file is not read until this is dropped, which is after its removal.
#[derive(Debug)]
pub(crate) struct Sentence {
    doomed: Arc<Doomed>,
    name: Name,
}

impl Doomed {
    pub(super) fn has(&self, name: &Name) -> bool {
        lock(&self.0).contains_key(name)
    }

    pub(super) fn doom(self: &Arc<Self>, name: Name) -> Sentence {
        *lock(&self.0).entry(name).or_default() += 1;
        Sentence { doomed: self.clone(), name }
    }
}

impl Drop for Sentence {
    fn drop(&mut self) {
        let mut doomed = lock(&self.doomed.0);
        if let Some(count) = doomed.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                doomed.remove(&self.name);
            }
        }
    }
}
