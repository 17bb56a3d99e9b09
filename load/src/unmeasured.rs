//! Why a measurement of several parties came to nothing.

use crate::plan::PlanError;
use crate::probe::ProbeError;
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
    /// The system did not allow something.
    #[error("the system refuses: {0}")]
    System(#[from] io::Error),
    /// The user stopped it before anything was measured.
    #[error("stopped")]
    Stopped,
}

impl From<String> for Unmeasured {
    fn from(sentence: String) -> Self {
        Unmeasured::Because(sentence)
    }
}

impl From<ProbeError> for Unmeasured {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Stopped => Unmeasured::Stopped,
            error => Unmeasured::Because(error.to_string()),
        }
    }
}
