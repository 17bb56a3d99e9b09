//! Attempts to reach the engine, with a pause between two that doubles as long as they fail.

use millstream_net::timer::pause;
use std::time::Duration;
use tokio::sync::watch;

const FIRST: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_secs(1);

pub(crate) struct Attempts(Duration);

impl Attempts {
    pub(crate) fn new() -> Attempts {
        Attempts(FIRST)
    }

    pub(crate) fn succeeded(&mut self) {
        self.0 = FIRST;
    }

    /// The pause before the next one; ends when the cluster is to stop.
    pub(crate) async fn rest(&mut self, stop: &watch::Receiver<bool>) {
        let mut stop = stop.clone();
        tokio::select! {
            () = pause(self.0) => {}
            _ = stop.changed() => {}
        }
        self.0 = (self.0 * 2).min(LAST);
    }
}
