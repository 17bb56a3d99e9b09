//! Rings when the log has an entry after the cursor: a connection of its own waits for it in the engine.
//!
//! It reads nothing but whether there is one; the session does the rest. Next: `session`.

use crate::engine::{Failure, Line};
use crate::held::Cursor;
use crate::member::Member;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Longest wait in the engine.
const WAIT: Duration = Duration::from_millis(500);

pub(crate) struct Bell {
    cursor: watch::Sender<Option<Cursor>>,
    rings: mpsc::Receiver<Result<(), Failure>>,
    task: JoinHandle<()>,
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bell {
    pub(crate) fn hang(member: &Rc<Member>, mut line: Line) -> Bell {
        let (cursor, mut watched) = watch::channel(None);
        let (ring, rings) = mpsc::channel(1);
        let member = member.clone();
        let task = tokio::task::spawn_local(async move {
            loop {
                let at: Option<Cursor> = *watched.borrow_and_update();
                let waited = match at {
                    Some(at) => member.place.wait(&mut line, at, WAIT).await,
                    None => Ok(false),
                };
                let is_over = waited.is_err();
                let has_rung = !matches!(waited, Ok(false));
                if has_rung && ring.send(waited.map(|_| ())).await.is_err() || is_over {
                    return;
                }
                // After a ring the session reads, and the cursor moves.
                if (has_rung || at.is_none()) && watched.changed().await.is_err() {
                    return;
                }
            }
        });
        Bell { cursor, rings, task }
    }

    /// After which entry to wait.
    pub(crate) fn listen(&self, after: Cursor) {
        self.cursor.send_if_modified(|cursor| cursor.replace(after) != Some(after));
    }

    pub(crate) async fn rung(&mut self) -> Result<(), Failure> {
        self.rings.recv().await.unwrap_or(Err(Failure::BellEnded))
    }
}
