//! What a cluster is configured with.
//!
//! Plain values: who reads the configuration makes them. Next: `bus`, which starts with them.

use crate::secret::Secret;
use millstream_conf::model::PeerAddress;
use millstream_net::tls::TlsConnector;
use std::fmt;
use std::time::Duration;

/// How to reach the engine.
#[derive(Clone)]
pub struct EngineSettings {
    /// Of which the first that is a primary is used.
    pub servers: Vec<PeerAddress>,
    /// Asked for the primary in place of `servers`.
    pub sentinel: Option<Sentinel>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub tls: Option<TlsConnector>,
}

impl fmt::Debug for EngineSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No password.
        f.debug_struct("EngineSettings")
            .field("servers", &self.servers)
            .field("sentinel", &self.sentinel)
            .finish()
    }
}

/// Servers that know which one is the primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentinel {
    /// As the sentinels call the primary.
    pub name: String,
    pub servers: Vec<PeerAddress>,
}

/// One cluster, as one of its nodes is configured.
#[derive(Debug)]
pub struct Settings {
    pub cluster: String,
    /// As the other nodes show this one.
    pub node: String,
    pub engine: EngineSettings,
    pub secret: Secret,
    /// Longest wait of a request.
    pub timeout: Duration,
    /// How old the last confirmation may be before the node is cut off.
    pub cut_off: Duration,
    /// Whether it serves what it has stored while it is cut off.
    pub serves: bool,
    /// The same on every node.
    pub log: LogBounds,
    /// What a test takes out, to see that it is missed.
    #[cfg(test)]
    pub(crate) without: Option<Guard>,
}

/// What the engine keeps of a zone's log. What was removed and not read makes a node purge its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// The engine may keep some more, as long as they have few bytes.
    pub entries: u64,
    /// Of sealed orders, with 64 for each.
    pub bytes: u64,
}

/// What keeps a purged response from being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Entries of the log, and orders of each node, have numbers without gaps. Each finds what the other does.
    DenseNumbers,
    /// After a loss in the engine a node waits until the others have published what the log lacks.
    Settling,
    /// A node is confirmed after it has read the log.
    ReplayFirst,
    /// A node that cannot be confirmed serves nothing unasked.
    CutOff,
}

impl Settings {
    #[cfg(test)]
    pub(crate) fn has(&self, guard: Guard) -> bool {
        self.without != Some(guard)
    }

    #[cfg(not(test))]
    #[inline]
    pub(crate) const fn has(&self, _: Guard) -> bool {
        true
    }
}
