//! Ways to evict, to hold ours against: least recently used, SIEVE with one queue, and S3-FIFO.
//!
//! Each is the plain algorithm over numbered keys with a bound on bytes, as its authors describe it. They only count; ours
//! is the real store. Next: `eviction`.

use std::collections::VecDeque;

pub(crate) trait Policy {
    /// Whether the key is stored; if not, stores it if the policy admits it.
    fn ask(&mut self, key: u32, cost: u64) -> bool;
}

const NONE: u32 = u32::MAX;

/// Keys in a row, each at most once; added at one end and removed anywhere.
struct Queue {
    older: Vec<u32>,
    newer: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Queue {
    fn new(keys: usize) -> Queue {
        Queue { older: vec![NONE; keys], newer: vec![NONE; keys], oldest: NONE, newest: NONE }
    }

    fn push(&mut self, key: u32) {
        self.older[key as usize] = self.newest;
        self.newer[key as usize] = NONE;
        match self.newest {
            NONE => self.oldest = key,
            newest => self.newer[newest as usize] = key,
        }
        self.newest = key;
    }

    fn remove(&mut self, key: u32) {
        let (older, newer) = (self.older[key as usize], self.newer[key as usize]);
        match older {
            NONE => self.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.older[newer as usize] = older,
        }
    }
}

pub(crate) struct Lru {
    row: Queue,
    costs: Vec<u64>,
    held: u64,
    most: u64,
}

impl Lru {
    pub(crate) fn new(keys: usize, most: u64) -> Lru {
        Lru { row: Queue::new(keys), costs: vec![0; keys], held: 0, most }
    }
}

impl Policy for Lru {
    fn ask(&mut self, key: u32, cost: u64) -> bool {
        let hit = self.costs[key as usize] > 0;
        if hit {
            self.row.remove(key);
        } else {
            while self.held + cost > self.most {
                let oldest = self.row.oldest;
                self.row.remove(oldest);
                self.held -= std::mem::take(&mut self.costs[oldest as usize]);
            }
            self.held += cost;
            self.costs[key as usize] = cost;
        }
        self.row.push(key);
        hit
    }
}

/// SIEVE (Zhang et al., NSDI 2024) with one queue for all.
pub(crate) struct Sieve {
    row: Queue,
    costs: Vec<u64>,
    used: Vec<bool>,
    hand: u32,
    held: u64,
    most: u64,
}

impl Sieve {
    pub(crate) fn new(keys: usize, most: u64) -> Sieve {
        let (row, costs, used) = (Queue::new(keys), vec![0; keys], vec![false; keys]);
        Sieve { row, costs, used, hand: NONE, held: 0, most }
    }
}

impl Policy for Sieve {
    fn ask(&mut self, key: u32, cost: u64) -> bool {
        if self.costs[key as usize] > 0 {
            self.used[key as usize] = true;
            return true;
        }
        while self.held + cost > self.most {
            let at = if self.hand == NONE { self.row.oldest } else { self.hand };
            self.hand = self.row.newer[at as usize];
            if !std::mem::take(&mut self.used[at as usize]) {
                self.row.remove(at);
                self.held -= std::mem::take(&mut self.costs[at as usize]);
            }
        }
        self.held += cost;
        self.costs[key as usize] = cost;
        self.row.push(key);
        false
    }
}

/// S3-FIFO (Yang et al., SOSP 2023): a small queue of a tenth of the bytes, a main one, and a ghost list, as
/// long as the main queue, of keys evicted from the small one unused.
pub(crate) struct S3Fifo {
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    ghosts: VecDeque<u32>,
    ghost: Vec<bool>,
    costs: Vec<u64>,
    uses: Vec<u8>,
    held_small: u64,
    held: u64,
    most: u64,
}

impl S3Fifo {
    pub(crate) fn new(keys: usize, most: u64) -> S3Fifo {
        S3Fifo {
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            ghost: vec![false; keys],
            costs: vec![0; keys],
            uses: vec![0; keys],
            held_small: 0,
            held: 0,
            most,
        }
    }

    fn evict(&mut self) {
        if self.held_small * 10 >= self.most
            && let Some(key) = self.small.pop_front()
        {
            self.held_small -= self.costs[key as usize];
            if self.uses[key as usize] > 1 {
                self.main.push_back(key);
            } else {
                self.held -= std::mem::take(&mut self.costs[key as usize]);
                self.remember(key);
            }
            return;
        }
        while let Some(key) = self.main.pop_front() {
            if self.uses[key as usize] == 0 {
                self.held -= std::mem::take(&mut self.costs[key as usize]);
                return;
            }
            self.uses[key as usize] -= 1;
            self.main.push_back(key);
        }
        // Everything is in the small queue.
        if let Some(key) = self.small.pop_front() {
            self.held_small -= self.costs[key as usize];
            self.held -= std::mem::take(&mut self.costs[key as usize]);
        }
    }

    fn remember(&mut self, key: u32) {
        self.ghosts.push_back(key);
        self.ghost[key as usize] = true;
        while self.ghosts.len() > self.main.len().max(1) {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.ghost[oldest as usize] = false;
            }
        }
    }
}

impl Policy for S3Fifo {
    fn ask(&mut self, key: u32, cost: u64) -> bool {
        if self.costs[key as usize] > 0 {
            self.uses[key as usize] = (self.uses[key as usize] + 1).min(3);
            return true;
        }
        while self.held + cost > self.most {
            self.evict();
        }
        self.held += cost;
        self.costs[key as usize] = cost;
        self.uses[key as usize] = 0;
        if std::mem::take(&mut self.ghost[key as usize]) {
            self.main.push_back(key);
        } else {
            self.small.push_back(key);
            self.held_small += cost;
        }
        false
    }
}
