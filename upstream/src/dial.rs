//! How a connection to a peer is made: from which address of ours, and by what its TLS goes.
//!
//! An idle connection is only taken for the same of both. Next: `pool`, which compares; `exchange/connection`, which connects.

use crate::secured::Secured;
use millstream_net::connect::Local;
use std::rc::Rc;

/// How a connection is made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dial {
    /// Its TLS; nothing where it is spoken to in plain.
    pub secured: Option<Secured>,
    /// Our own end, where the configuration says something of it.
    pub local: Option<Rc<Local>>,
}
