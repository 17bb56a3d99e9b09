//! Why a measurement of several parties came to nothing.

use crate::plan::PlanError;
use crate::probe::ProbeError;
use crate::stop::Stopped;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Unmeasured {
    #[error("{0}")]
    Because(String),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Unanswered(#[from] ProbeError),
    #[error("system error: {0}")]
    System(#[from] io::Error),
    /// The user stopped it before anything was measured.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<String> for Unmeasured {
    fn from(sentence: String) -> Self {
        Unmeasured::Because(sentence)
    }
}
