//! How the descriptors of the process are shared out: to listening sockets and logs, to files, to clients, to upstreams.
//!
//! Workers are threads of one process, so one limit of open files holds for all of them. Clients are kept out before
//! upstreams and files have nothing left: an accepted client whose request cannot be passed on would get an error.
//! Pure but for [`allow`]. Next: `net`'s `limits`; `server`'s `worker`, which keeps the
//! bounds.

use crate::accepting;
use millstream_conf::model::{Configuration, Http};
use millstream_conf::source::Span;
use millstream_net::limits;
use millstream_server::generation::Bounds;
use std::collections::HashMap;
use std::fmt;

/// Standard streams, signals, threads besides the workers, and what libraries open briefly.
const OF_THE_PROCESS: u64 = 32;
/// A worker's event loop, and for each of its sockets the connection waiting for a slot.
const OF_A_WORKER: u64 = 8;
/// A zone's directory, journal and watch.
const OF_A_ZONE: u64 = 8;
/// Most descriptors reserved for cache and temporary files, which get a quarter of the rest.
const MOST_FILES: u64 = 1024;
/// Most of a worker's connections reserved for upstreams, which get a quarter.
const MOST_UPSTREAMS: u64 = 256;
/// An eighth of `worker_connections` is reserved for clients.
const PART_KEPT_FOR_CLIENTS: u64 = 8;
/// All `open_file_cache`s together get at most an eighth of the rest.
const PART_KEPT_OPEN: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    fixed: u64,
    workers: u64,
    connections: u64,
    /// Number of `open_file_cache`s, and the files they keep open together in a worker.
    kept_open: (u64, u64),
}

/// `worker_connections` that the limit of open files does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit {
    needs: Needs,
    limit: u64,
    clients: usize,
}

impl Needs {
    pub fn of(configuration: &Configuration) -> Needs {
        let workers = accepting::workers(&configuration.main) as u64;
        let http = &configuration.http;
        // Each worker has a socket of each address, and a duplicate of it on its loop.
        let sockets = 2 * workers * http.listeners.len() as u64;
        // Of a group that keeps none open, one is open at a time.
        let named = http.log_groups.iter().map(|kept| kept.map_or(1, |kept| kept.max + 1)).sum::<usize>();
        let logs = (http.log_files.len() + configuration.main.error_logs.len() + named) as u64;
        let zones = http.cache_zones.len() as u64;
        // Each check may have a connection to each server.
        let checked = http.upstreams.iter().map(|upstream| upstream.checks.len() * upstream.servers.len());
        let checks = checked.sum::<usize>() as u64;
        Needs {
            fixed: OF_THE_PROCESS + OF_A_WORKER * workers + sockets + logs + OF_A_ZONE * zones + checks,
            workers,
            connections: u64::from(configuration.main.worker_connections),
            kept_open: kept_open(http),
        }
    }

    /// A limit that allows every worker all its `worker_connections` for clients, each with an upstream
    /// connection.
    pub fn wanted(&self) -> u64 {
        let connections = self.workers.saturating_mul(self.connections).saturating_mul(2);
        let others = connections.saturating_add(MOST_FILES);
        let kept_open = self.workers.saturating_mul(self.kept_open.1);
        // So much that they get all of it.
        let with_kept_open = others.saturating_add(kept_open).max(kept_open.saturating_mul(PART_KEPT_OPEN));
        with_kept_open.saturating_add(self.fixed)
    }

    pub fn bounds(&self, limit: u64) -> Bounds {
        let left = limit.saturating_sub(self.fixed);
        let (caches, files) = self.kept_open;
        let kept_open = (left / PART_KEPT_OPEN / self.workers.max(1)).min(files);
        let left = left - kept_open * self.workers;
        let connections = (left - MOST_FILES.min(left / 4)) / self.workers.max(1);
        let clients = connections - MOST_UPSTREAMS.min(connections / 4);
        let bound = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        let upstreams = match clients < self.connections {
            true => connections,
            false => self.connections - self.connections.div_ceil(PART_KEPT_FOR_CLIENTS),
        };
        Bounds {
            clients: bound(clients.min(self.connections)),
            upstreams: bound(upstreams),
            descriptors: bound(connections),
            kept_files: usize::try_from(kept_open / caches.max(1)).unwrap_or(usize::MAX),
        }
    }

    pub fn misfit(&self, limit: u64) -> Option<Misfit> {
        let clients = self.bounds(limit).clients;
        ((clients as u64) < self.connections).then_some(Misfit { needs: *self, limit, clients })
    }
}

/// Each `open_file_cache` counts once, however many locations inherit it.
fn kept_open(http: &Http) -> (u64, u64) {
    let all = http.locations.iter().filter_map(|location| location.settings.open_file_cache.kept);
    let each: HashMap<Span, u64> = all.map(|kept| (kept.span, kept.max as u64)).collect();
    (each.len() as u64, each.values().fold(0, |sum, max| sum.saturating_add(*max)))
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit { needs: Needs { workers, connections, .. }, limit, clients } = self;
        write!(
            f,
            "{connections} worker_connections of {workers} workers exceed the limit of {limit} open files: each \
             worker will accept at most {clients} client connections; raise the limit to {} (ulimit -n, LimitNOFILE=, \
             or, if started as root, worker_rlimit_nofile)",
            self.needs.wanted()
        )
    }
}

/// Raises the limit of open files to the configured value, or to what the configuration needs within the hard
/// limit. `complain` hears of failures.
pub fn allow(configuration: &Configuration, mut complain: impl FnMut(fmt::Arguments<'_>)) {
    let needs = Needs::of(configuration);
    match configuration.main.worker_rlimit_nofile {
        Some(files) => {
            if let Err(error) = limits::set_nofile(files) {
                let limit = limits::raise_nofile(files);
                complain(format_args!(
                    "worker_rlimit_nofile {files} cannot be set: {error}; the limit is {limit}"
                ));
            }
        }
        None => _ = limits::raise_nofile(needs.wanted()),
    }
    if let Some(misfit) = needs.misfit(limits::nofile()) {
        complain(format_args!("{misfit}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(workers: u64, connections: u64) -> Needs {
        Needs { fixed: 50, workers, connections, kept_open: (0, 0) }
    }

    #[test]
    fn what_is_wanted_fits_and_is_not_complained_about() {
        for (workers, connections) in
            [(1, 1), (1, 512), (2, 1024), (4, 16_384), (64, 512), (128, 100_000_000)]
        {
            let needs = needs(workers, connections);
            assert_eq!(needs.bounds(needs.wanted()).clients as u64, connections, "{needs:?}");
            assert_eq!(needs.misfit(needs.wanted()), None, "{needs:?}");
        }
    }

    #[test]
    fn connections_to_upstreams_leave_places_for_clients_unless_descriptors_bound_them() {
        for (connections, expected) in [(1, 1), (4, 3), (64, 56), (512, 448), (4096, 3584)] {
            let needs = needs(2, connections);
            assert_eq!(needs.bounds(needs.wanted()).upstreams, expected, "{connections}");
        }
        let few = needs(2, 1024).bounds(256);
        assert!(few.clients < few.upstreams && few.upstreams == few.descriptors, "{few:?}");
    }

    #[test]
    fn under_any_limit_clients_leave_descriptors_for_upstreams_and_files() {
        for limit in [0, 50, 60, 100, 256, 1024, 4096, 65_536, u64::MAX] {
            for workers in [1, 2, 64] {
                let needs = needs(workers, 512);
                let Bounds { clients, descriptors, .. } = needs.bounds(limit);
                assert!(clients >= 1 && descriptors >= clients, "{limit}: {clients} of {descriptors}");
                if descriptors >= 4 {
                    assert!(clients < descriptors, "{limit}: {clients} of {descriptors}");
                    assert!(
                        workers.saturating_mul(descriptors as u64) <= limit - 50,
                        "{limit}: {descriptors}"
                    );
                }
            }
        }
    }

    #[test]
    fn files_that_are_kept_open_take_a_small_part_of_what_others_need() {
        let needs = Needs { kept_open: (2, 10_000), ..needs(2, 512) };
        assert_eq!(needs.bounds(needs.wanted()).kept_files, 5000);
        assert_eq!(needs.misfit(needs.wanted()), None);
        let few = needs.bounds(850);
        assert_eq!(few.kept_files, 25, "800 / 8 / 2 workers / 2 caches");
        assert!(few.clients > 150 && few.descriptors > few.clients, "{few:?}");
    }

    #[test]
    fn a_limit_that_is_too_low_is_told_with_what_it_allows_and_what_would_do() {
        let misfit = needs(2, 512).misfit(256).expect("it is too low");
        assert_eq!(
            misfit.to_string(),
            "512 worker_connections of 2 workers exceed the limit of 256 open files: each worker will accept at most 58 \
             client connections; raise the limit to 3122 (ulimit -n, LimitNOFILE=, or, if started as root, \
             worker_rlimit_nofile)"
        );
    }
}
