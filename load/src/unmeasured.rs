//! Why a measurement of several parties came to nothing.

use crate::plan::PlanError;
use crate::probe::ProbeError;
use crate::stop::Stopped;
use std::io;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Unmeasured {
    /// In one sentence.
    #[error("{0}")]
    Because(String),
    /// What was to be measured makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A single request had no answer.
    #[error(transparent)]
    Unanswered(#[from] ProbeError),
    /// The system did not allow something.
    #[error("the system refuses: {0}")]
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
