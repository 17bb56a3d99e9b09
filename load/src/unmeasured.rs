//! Why a measurement of several parties came to nothing.

use crate::party::PartyError;
use crate::plan::PlanError;
use crate::probe::ProbeError;
use std::io;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmeasured {
    /// In one sentence.
    Because(String),
    /// The user stopped it before anything was measured.
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

impl From<PartyError> for Unmeasured {
    fn from(error: PartyError) -> Self {
        match error {
            PartyError::Stopped => Unmeasured::Stopped,
            error => Unmeasured::Because(error.to_string()),
        }
    }
}

impl From<io::Error> for Unmeasured {
    fn from(error: io::Error) -> Self {
        Unmeasured::Because(format!("the system refuses: {error}"))
    }
}

impl From<PlanError> for Unmeasured {
    fn from(error: PlanError) -> Self {
        Unmeasured::Because(error.to_string())
    }
}
