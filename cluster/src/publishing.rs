//! Publishing what this node gave, and what it holds of others that a new epoch has lost.
//!
//! Orders of one issuer go in the order of their numbers, so that the others see no gap. One that was published twice is known
//! by its number. Next: `bus`.

use crate::engine::Failure;
use crate::order::Order;
use crate::script::Published;
use crate::secret::Kind;
use crate::session::Session;
use millstream_net::clock;

/// Orders in one call.
const BATCH: usize = 128;
/// Calls between two times that the session looks at what else is due.
const CALLS: usize = 8;
/// In bytes: what one call carries unless a single order has more.
const BATCH_BYTES: usize = 256 * 1024;

impl Session<'_> {
    /// Returns whether anything was published.
    pub(crate) async fn publish(&mut self) -> Result<bool, Failure> {
        let mut has_published = false;
        for call in 0.. {
            if call == CALLS {
                self.member.given.notify_one();
                return Ok(true);
            }
            let orders = self.member.journal.borrow().held.own_unplaced(self.sent, BATCH);
            if orders.is_empty() {
                break;
            }
            has_published = true;
            if !self.send(orders).await? {
                return Ok(true);
            }
        }
        if self.is_settled {
            return Ok(has_published);
        }
        // Others may have published them meanwhile: what was read is placed.
        let orders = self.member.journal.borrow().held.others_unplaced(BATCH);
        if orders.is_empty() {
            self.is_settled = true;
            self.beat().await?;
        } else if self.is_its_turn() {
            has_published = true;
            self.send(orders).await?;
        }
        Ok(has_published)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.member.journal.borrow().held.own_unplaced(self.sent, 1).is_empty()
    }

    /// Publishes as many as fit into one call. Returns false if another epoch has begun.
    async fn send(&mut self, orders: Vec<Order>) -> Result<bool, Failure> {
        let member = self.member;
        let Some(epoch) = member.journal.borrow().held.epoch.clone() else { return Ok(false) };
        let (mut sealed, mut bytes) = (Vec::new(), 0);
        for order in &orders {
            let one = member.seal.close(Kind::Order, &order.encode()).ok_or(Failure::NoRandom)?;
            bytes += one.len();
            if !sealed.is_empty() && bytes > BATCH_BYTES {
                break;
            }
            sealed.push(one);
        }
        let begun = clock::now();
        let published = member.place.publish(&mut self.line, &epoch, member.settings.log, &sealed).await?;
        member.door.account().note_script(clock::now().saturating_duration_since(begun));
        let Published::Upto(last) = published else {
            self.beat().await?;
            return Ok(false);
        };
        let first = last.saturating_sub(sealed.len() as u64 - 1);
        let mut own = 0;
        let mut journal = member.journal.borrow_mut();
        for (order, place) in orders.iter().zip(first..=last) {
            journal.place(order.issuer, order.number, place);
            if order.issuer == journal.held.issuer {
                own = own.max(order.number);
            }
        }
        self.sent = self.sent.max(own);
        let written = journal.write();
        drop(journal);
        member.written(written);
        member.note_placed(own);
        Ok(true)
    }
}
