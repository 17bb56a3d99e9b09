//! `limit_conn`: how many requests of each key are under way.
//!
//! A key is there while one is, so nothing is ever forgotten for want of room. With `sync`, keys are hashes, and those under way on other
//! nodes count too. Next: `limits/limit_conn`.

use super::{Seat, Table};
use millstream_cluster::{KeyHash, LimitDoor, LimitedZone};
use millstream_net::clock;
use std::sync::Arc;

/// Bytes of an entry besides its key in nginx's slabs.
const OVERHEAD: usize = 36;

#[derive(Debug)]
pub struct ConnectionZone {
    table: Arc<Table<u32>>,
    /// `sync`.
    door: Option<Arc<LimitDoor>>,
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
        ConnectionZone { table: Arc::new(Table::new(size, OVERHEAD)), door: None }
    }

    /// Keeps the counts; counts with other nodes from now on, or alone.
    #[must_use]
    pub fn with_door(&self, door: Option<Arc<LimitDoor>>) -> Self {
        ConnectionZone { table: self.table.clone(), door }
    }

    /// Differs if one of two zones has not the other's counts.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.table) as usize
    }

    pub fn door(&self) -> Option<&Arc<LimitDoor>> {
        self.door.as_ref()
    }

    /// `most`: requests of the key allowed at a time.
    #[inline]
    pub fn enter(self: &Arc<Self>, key: &[u8], most: u32) -> Result<UnderWay, Refused> {
        match &self.door {
            None => self.enter_here(key, most),
            Some(door) => self.enter_shared(door, &door.hash(key), most),
        }
    }

    /// With other nodes: this one allows its share while it does not know what is under way there. One with `sync=exact` is asked only
    /// if the engine does not respond.
    pub fn enter_shared(
        self: &Arc<Self>,
        door: &LimitDoor,
        key: &KeyHash,
        most: u32,
    ) -> Result<UnderWay, Refused> {
        let now = clock::now();
        let most = match door.divisor(now) {
            1 => most.saturating_sub(door.elsewhere(key, now)),
            nodes => (most / nodes).max(1),
        };
        let under_way = self.enter_here(key, most)?;
        if !door.is_exact() {
            let count = *self.table.lock(under_way.seat.shard).state(under_way.seat.node);
            door.under_way(*key, count);
        }
        Ok(under_way)
    }

    /// One that the engine has let in.
    pub fn enter_counted(self: &Arc<Self>, key: &KeyHash) -> Result<UnderWay, Refused> {
        self.enter_here(key, u32::MAX)
    }

    fn enter_here(self: &Arc<Self>, key: &[u8], most: u32) -> Result<UnderWay, Refused> {
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
        let left = *count;
        let ended =
            self.zone.door.as_ref().and_then(|door| Some((door, guard.key(self.seat.node).try_into().ok()?)));
        if left == 0 {
            guard.remove(self.seat.node, table.rehash());
        }
        drop(guard);
        if let Some((door, key)) = ended {
            match door.is_exact() {
                true => door.end(&key),
                false => door.under_way(key, left),
            }
        }
    }
}

impl LimitedZone for ConnectionZone {
    fn under_way(&self, most: usize) -> Vec<(KeyHash, u32)> {
        let mut all = Vec::new();
        for shard in 0..self.table.shards.len() {
            let guard = self.table.lock(shard as u32);
            let counts = guard.each().filter_map(|(key, count)| Some((key.try_into().ok()?, *count)));
            all.extend(counts.take(most - all.len()));
        }
        all
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
