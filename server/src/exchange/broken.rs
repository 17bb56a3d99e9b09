//! How an attempt with one server failed.

use crate::client::ClientFailure;
use millstream_upstream::{Connection, ExchangeError};

pub(super) enum AttemptFailure {
    Client(ClientFailure),
    Exchange(ExchangeFailure),
}

pub(super) struct ExchangeFailure {
    pub(super) error: ExchangeError,
    pub(super) doing: &'static str,
    /// The kept connection had been closed.
    pub(super) stale: bool,
    pub(super) sent: bool,
}

pub(super) fn broken(connection: &Connection, error: ExchangeError, doing: &'static str) -> AttemptFailure {
    let (received, sent) = connection.traffic();
    let is_untouched = error.is_untouched();
    let stale = is_untouched || connection.is_pooled() && received == 0 && error.is_stale();
    AttemptFailure::Exchange(ExchangeFailure { error, doing, stale, sent: sent > 0 && !is_untouched })
}
