//! `hash KEY consistent`: a ring of points (ketama), the same as nginx and Cache::Memcached::Fast have.
//!
//! Each server has 160 points for each unit of its weight, made of its host and port as written, so that a server that
//! comes or goes moves only the keys that are its own. A key belongs to the first point from its CRC-32 on. Servers with
//! several addresses share their points, and the addresses take turns.

use super::{Ask, MOST_MISSES, Set, round_robin};
use crate::peer::Member;
use std::collections::HashMap;
use std::sync::Arc;

const POINTS: i64 = 160;
/// Above this sum, weights are scaled down: SRV records and the API may bring any. A configuration has less.
const MOST_WEIGHT: i64 = 100_000;

#[derive(Debug)]
pub(crate) struct Ring {
    points: Box<[Point]>,
    servers: Box<[Box<[u32]>]>,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    hash: u32,
    server: u32,
}

impl Ring {
    pub(super) fn of(members: &[Member]) -> Ring {
        let mut numbers: HashMap<Arc<str>, usize> = HashMap::new();
        let mut servers: Vec<(Vec<u32>, i64)> = Vec::new();
        for (place, member) in members.iter().enumerate() {
            let number = *numbers.entry(member.server.clone()).or_insert(servers.len());
            if number == servers.len() {
                servers.push((Vec::new(), 0));
            }
            let (places, weight) = &mut servers[number];
            places.push(place as u32);
            *weight = (*weight).max(member.parameters.weight);
        }
        let total = servers.iter().map(|(_, weight)| *weight).sum();
        let mut points: Vec<Point> = Vec::new();
        for (number, (places, weight)) in servers.iter().enumerate() {
            let name = &members[places[0] as usize].server;
            add_points(&mut points, name, count(*weight, total), number as u32);
        }
        points.sort_by_key(|point| point.hash);
        points.dedup_by_key(|point| point.hash);
        let servers = servers.into_iter().map(|(places, _)| places.into()).collect();
        Ring { points: points.into(), servers }
    }

    /// The first point at or after a hash; past the last it is the first.
    fn place(&self, hash: u32) -> u32 {
        self.points.partition_point(|point| point.hash < hash) as u32
    }

    fn members_at(&self, place: u32) -> &[u32] {
        let point = self.points[place as usize % self.points.len()];
        &self.servers[point.server as usize]
    }
}

fn count(weight: i64, total: i64) -> i64 {
    POINTS * if total > MOST_WEIGHT { (weight * MOST_WEIGHT / total).max(1) } else { weight }
}

/// Each point is the CRC-32 of host, zero, port and the previous point.
fn add_points(points: &mut Vec<Point>, name: &str, count: i64, server: u32) {
    let (host, port) = host_and_port(name);
    let mut base = crc32fast::Hasher::new();
    base.update(host.as_bytes());
    base.update(b"\0");
    base.update(port.as_bytes());
    let mut before = 0u32;
    for _ in 0..count {
        let mut crc = base.clone();
        crc.update(&before.to_le_bytes());
        before = crc.finalize();
        points.push(Point { hash: before, server });
    }
}

/// Split as nginx does for the ring: the port follows a last colon, if digits alone.
fn host_and_port(name: &str) -> (&str, &str) {
    if name.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("unix:")) {
        return (&name[5..], "");
    }
    let host = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match host.strip_suffix(':') {
        Some(bare) => (bare, &name[host.len()..]),
        None => (name, ""),
    }
}

/// The server of the key, or of the next point whose server can be asked; `None`: the others take turns.
pub(super) fn choose(ring: &Ring, set: Set<'_>, ask: &mut Ask<'_>) -> Option<usize> {
    if ask.key.is_empty() || ring.points.is_empty() {
        return None;
    }
    let mut search = ask.tried.search.clone();
    if search.rounds == 0 {
        search.hash = ring.place(crc32fast::hash(ask.key));
        search.rounds = 1;
    }
    let mut found = None;
    while found.is_none() && search.misses <= MOST_MISSES {
        found = choose_of_server(set, ask, ring.members_at(search.hash));
        if found.is_none() {
            search.hash = search.hash.wrapping_add(1);
            search.misses += 1;
        }
    }
    ask.tried.search = search;
    found
}

fn choose_of_server(set: Set<'_>, ask: &Ask<'_>, places: &[u32]) -> Option<usize> {
    if let [only] = *places {
        let member = &set.members[only as usize];
        if !set.is_open(only as usize, ask) {
            return None;
        }
        if !member.standing.is_lowered(&member.parameters) {
            return Some(set.first + only as usize);
        }
    }
    let _turns = set.lock();
    let places = places.iter().map(|place| *place as usize);
    round_robin::choose_among(set, ask, places).map(|index| set.first + index)
}

#[cfg(test)]
mod tests {
    use super::{MOST_WEIGHT, POINTS, count};

    #[test]
    fn weights_keep_their_proportion_and_a_bound() {
        for (weight, total, expected) in [
            (1, 3, 1),
            (60_000, MOST_WEIGHT, 60_000),
            (60_000, 4 * MOST_WEIGHT, 15_000),
            (1, 4 * MOST_WEIGHT, 1),
        ] {
            assert_eq!(count(weight, total), expected * POINTS);
        }
    }
}
