//! Reading the log to its head and carrying out what it holds.
//!
//! An entry counts as read after the zone has carried it out for good; only then does the cursor move, so the end of the process
//! at any moment repeats entries and never loses one. Next: `publishing`.

use crate::engine::Failure;
use crate::held::Cursor;
use crate::marks::{Mark, Turn};
use crate::order::Order;
use crate::script::{Entry, PORTION};
use crate::secret::Kind;
use crate::session::Session;
use crate::settings::Guard;
use crate::zone::Lasting;
use millstream_conf::model::Level;
use millstream_net::clock;
use std::time::Duration;

/// Batches between two times that the session looks at what else is due.
const BATCHES: usize = 8;
/// Between two purges of the zone because of entries that cannot be opened.
const GARBAGE: Duration = Duration::from_secs(1);

/// What becomes of the entries that were read together.
#[derive(Default)]
struct Batch {
    lasting: Vec<Lasting>,
    /// In the order of the log; without an order nothing but the cursor moves.
    read: Vec<(Cursor, Option<(Order, bool)>)>,
    is_awaited: bool,
    has_garbage: bool,
    gap: Option<String>,
    end: End,
}

/// Why no more entries are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum End {
    #[default]
    None,
    /// Entries are missing.
    Lost,
    /// Another epoch has begun.
    Epoch,
}

impl Session<'_> {
    /// Returns whether something was carried out that someone waits for. If much has come, the rest is read the next time.
    pub(crate) async fn read(&mut self) -> Result<bool, Failure> {
        let head = self.member.door.view.borrow().head;
        let mut is_awaited = false;
        for batch in 1.. {
            let cursor = self.member.journal.borrow().held.cursor;
            let most = self.member.portion.get();
            let entries = match self.member.place.entries(&mut self.line, cursor, most).await {
                Ok(entries) => entries,
                Err(failure) => {
                    // Longer than orders are: someone else has written them.
                    if self.line.is_exhausted() {
                        self.member.portion.set((most / 16).max(1));
                    }
                    return Err(failure);
                }
            };
            self.member.portion.set((2 * most).min(PORTION));
            let is_last = entries.len() < most;
            let taken = self.take(cursor, entries);
            let end = taken.end;
            is_awaited |= taken.is_awaited;
            self.carry_out(taken).await;
            match end {
                End::Lost => {
                    self.lost("the log was trimmed before this node had read it").await?;
                    return Ok(is_awaited);
                }
                End::Epoch => {
                    self.beat().await?;
                    return Ok(is_awaited);
                }
                End::None if is_last => break,
                End::None if batch == BATCHES => return Ok(is_awaited),
                End::None => {}
            }
        }
        // What the engine counted before it was asked must be there.
        let (sequence, is_same) = {
            let view = self.member.door.view.borrow();
            let held = &self.member.journal.borrow().held;
            let is_same = held.epoch.as_ref().is_some_and(|epoch| epoch.number == view.epoch);
            (held.cursor.sequence, is_same)
        };
        if is_same && sequence < head && self.member.settings.has(Guard::DenseNumbers) {
            self.lost("entries of the log are gone").await?;
        }
        Ok(is_awaited)
    }

    /// Decides about entries, and puts in force what they hold; nothing is noted yet.
    fn take(&self, mut cursor: Cursor, entries: Vec<Entry>) -> Batch {
        let member = self.member;
        let mut batch = Batch::default();
        let held = &member.journal.borrow().held;
        let epoch = held.epoch.as_ref().map_or(0, |epoch| epoch.number);
        let mut marks = held.marks.clone();
        for Entry { at, sealed } in entries {
            if at.epoch > epoch {
                batch.end = End::Epoch;
                break;
            }
            let is_next = at.sequence == cursor.sequence.saturating_add(1) && at.epoch >= cursor.epoch;
            if !is_next && member.settings.has(Guard::DenseNumbers) {
                batch.end = End::Lost;
                break;
            }
            cursor = at;
            let order = member.seal.open(Kind::Order, &sealed).and_then(|plain| Order::decode(&plain));
            let Some(order) = order else {
                batch.has_garbage = true;
                batch.read.push((at, None));
                continue;
            };
            let turn = match order.issuer == held.issuer {
                true => held.turn(&order),
                false => marks.turn(order.issuer, order.number),
            };
            if turn == Turn::Gap && member.settings.has(Guard::DenseNumbers) {
                batch.gap = Some(format!(
                    "purges of node {} before number {} are missing",
                    member.name_of(order.issuer),
                    order.number
                ));
            }
            if turn != Turn::Known {
                let begun = clock::wall().unix_milliseconds();
                batch.lasting.push(member.zone.carry_out(&order.what, order.how));
                batch.is_awaited |= order.awaited;
                if order.issuer != held.issuer {
                    let done = clock::wall().unix_milliseconds();
                    member.door.account().note(member.name_of(order.issuer), &order.what, (begun, done));
                    marks.set(order.issuer, Mark { number: order.number, open: false });
                }
            }
            batch.read.push((at, Some((order, turn != Turn::Known))));
        }
        batch
    }

    /// Waits until what was put in force lasts, and notes it.
    async fn carry_out(&self, batch: Batch) {
        let member = self.member;
        if batch.has_garbage {
            self.meet_garbage().await;
        }
        if let Some(gap) = &batch.gap {
            member.purge_zone(Level::Error, gap).await;
        }
        for lasting in batch.lasting {
            member.lasts(lasting.await);
        }
        if batch.read.is_empty() {
            return;
        }
        let mut own = 0;
        let mut journal = member.journal.borrow_mut();
        for (at, order) in batch.read {
            journal.held.cursor = at;
            let Some((order, is_new)) = order else { continue };
            if order.issuer == journal.held.issuer {
                own = own.max(order.number);
            }
            match is_new {
                true => journal.carried_out(order, at.sequence),
                false => journal.place(order.issuer, order.number, at.sequence),
            }
        }
        let written = journal.write();
        drop(journal);
        member.written(written);
        member.note_placed(own);
    }

    /// What cannot be opened may be a purge: the zone is purged, at most once in [`GARBAGE`].
    async fn meet_garbage(&self) {
        let now = clock::now();
        let member = self.member;
        if member.garbage.get().is_some_and(|last| now.saturating_duration_since(last) < GARBAGE) {
            member.owes_purge.set(true);
            return;
        }
        member.garbage.set(Some(now));
        member.owes_purge.set(false);
        member
            .purge_zone(
                Level::Error,
                "an entry of the log cannot be opened: it was written with another secret or is damaged",
            )
            .await;
    }

    /// Purges the zone if that is due, and returns whether none is owed any more.
    pub(crate) async fn pay_purge(&self) -> bool {
        if self.member.owes_purge.get() {
            self.meet_garbage().await;
        }
        let owes = self.member.owes_purge.get();
        if owes {
            self.member.write(
                Level::Info,
                format_args!("purges not confirmed yet: the zone must be purged again first"),
            );
        }
        !owes
    }
}
