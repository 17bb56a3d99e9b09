//! A gate in a script: what stands behind it happens after the test opened it, so that "before" is known and not timed.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A server that waits for what is behind the gate (nginx does in some cases) gets it after this; less than a
/// client's patience.
const LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Returns whether it held until now: then nothing seen before needed what is behind it.
    pub fn open(&self) -> bool {
        let was_open = std::mem::replace(&mut *self.is_open.lock().expect("no panic under the lock"), true);
        self.opened.notify_all();
        !was_open
    }

    /// At most 15 seconds; then it is forced open.
    pub fn pass(&self) {
        let is_open = self.is_open.lock().expect("no panic under the lock");
        let (mut is_open, _) = self
            .opened
            .wait_timeout_while(is_open, LIMIT, |is_open| !*is_open)
            .expect("no panic under the lock");
        *is_open = true;
    }
}
