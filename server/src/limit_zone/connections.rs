//! `limit_conn`: how many requests of each key are under way.
//!
//! A key is there while one is, so nothing is ever forgotten for want of room. Next: `limits/limit_conn`.

use super::{Seat, Table};
use std::sync::Arc;

/// Bytes of an entry besides its key in nginx's slabs.
const OVERHEAD: usize = 36;

#[derive(Debug)]
pub struct ConnectionZone {
    table: Table<u32>,
}

/// Counts one request of a key until dropped.
#[derive(Debug)]
pub struct UnderWay {
    zone: Arc<ConnectionZone>,
    seat: Seat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    TooMany,
    Full,
}

impl ConnectionZone {
    /// In bytes.
    pub fn new(size: u64) -> Self {
        ConnectionZone { table: Table::new(size, OVERHEAD) }
    }

    /// `most`: requests of the key allowed at a time.
    pub fn enter(self: &Arc<Self>, key: &[u8], most: u32) -> Result<UnderWay, Refused> {
        let (shard, hash, mut guard) = self.table.of(key);
        let node = match guard.find(hash, key) {
            Some(node) => {
                let count = guard.state(node);
                if *count >= most {
                    return Err(Refused::TooMany);
                }
                *count += 1;
                node
            }
            None => guard.insert(hash, key, 1, self.table.rehash()).ok_or(Refused::Full)?,
        };
        Ok(UnderWay { zone: self.clone(), seat: Seat { shard, node } })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let table = &self.zone.table;
        let mut guard = table.lock(self.seat.shard);
        let count = guard.state(self.seat.node);
        *count -= 1;
        if *count == 0 {
            guard.remove(self.seat.node, table.rehash());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_under_way_as_may_be_and_the_next_once_one_has_ended() {
        let zone = Arc::new(ConnectionZone::new(1 << 20));
        let one = zone.enter(b"a", 2).expect("the first");
        let two = zone.enter(b"a", 2).expect("the second");
        assert_eq!(zone.enter(b"a", 2).err(), Some(Refused::TooMany));
        assert!(zone.enter(b"b", 1).is_ok(), "another key");
        drop(one);
        let three = zone.enter(b"a", 2).expect("one has ended");
        drop((two, three));
        assert!(zone.enter(b"a", 1).is_ok());
    }

    #[test]
    fn a_full_zone_refuses_new_keys_until_a_key_has_nothing_under_way() {
        let zone = Arc::new(ConnectionZone::new(4 * 64));
        let mut held: Vec<_> = (0..4u8).map(|key| zone.enter(&[key], 1).expect("room")).collect();
        assert_eq!(zone.enter(b"more", 1).err(), Some(Refused::Full));
        held.pop();
        assert!(zone.enter(b"more", 1).is_ok());
    }
}
