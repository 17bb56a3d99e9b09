//! Why a measurement of several parties came to nothing.

use crate::plan::PlanError;
use crate::probe::ProbeError;
use std::{fmt, io};

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmeasured {
    /// In one sentence.
    Because(String),
    /// The user stopped it before anything was measured.
    Stopped,
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Unmeasured::Because(sentence) => sentence,
            Unmeasured::Stopped => "stopped",
        })
    }
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
