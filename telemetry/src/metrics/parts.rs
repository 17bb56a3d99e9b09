//! Cells of one thing, a part for each thread that counts it; whoever looks sums them.
//!
//! For what comes and goes, such as an upstream server: its counts live as long as it does. A part belongs to one thread; that of a
//! thread that is gone is handed on with its counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub struct Parts<T>(Mutex<Vec<Arc<T>>>);

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Parts(Mutex::new(Vec::new()))
    }
}

impl<T: Default> Parts<T> {
    /// A part for the calling thread, as long as it is held. Never per request.
    pub fn part(&self) -> Arc<T> {
        let mut parts = self.lock();
        if let Some(free) = parts.iter().find(|part| Arc::strong_count(part) == 1) {
            return Arc::clone(free);
        }
        let part = Arc::new(T::default());
        parts.push(Arc::clone(&part));
        part
    }

    pub fn sum<S>(&self, mut sum: S, add: impl Fn(&T, &mut S)) -> S {
        self.lock().iter().for_each(|part| add(part, &mut sum));
        sum
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
