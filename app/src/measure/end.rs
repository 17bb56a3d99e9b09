//! How a command that measures ends: with figures, in one sentence, or because the user stopped it, with figures or without.

use std::process::ExitCode;

/// What a shell says of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// Why there are no figures, or not all.
#[derive(Debug)]
pub(super) enum End {
    /// In one sentence.
    Wrong(String),
    /// By the user; what that means here.
    Stopped(&'static str),
}

impl End {
    /// The user stopped a command that starts others.
    pub(super) const STOPPED: End = End::Stopped("; what was started for it has ended");
}

impl From<String> for End {
    fn from(why: String) -> End {
        End::Wrong(why)
    }
}

/// The exit status; what there is to say goes to standard error.
pub(super) fn status(done: Result<ExitCode, End>) -> ExitCode {
    done.unwrap_or_else(|end| match end {
        End::Wrong(why) => {
            eprintln!("millstream: {why}");
            ExitCode::FAILURE
        }
        End::Stopped(what) => {
            eprintln!("millstream: stopped{what}");
            ExitCode::from(INTERRUPTED)
        }
    })
}
