//! How a command that measures ends: with figures, in one sentence, or because the user stopped it, with figures or without.

use millstream_load::unmeasured::Unmeasured;
use millstream_net::terminal;
use std::process::ExitCode;

/// 128 + SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;

#[derive(Debug)]
pub enum End {
    Wrong(String),
    /// By the user; the text says what that means.
    Stopped(&'static str),
}

impl End {
    /// For a command that starts other processes.
    pub const STOPPED: End = End::Stopped("; all processes started for the measurement have ended");
}

impl From<Unmeasured> for End {
    fn from(error: Unmeasured) -> End {
        match error {
            Unmeasured::Stopped(_) => End::STOPPED,
            why => End::Wrong(why.to_string()),
        }
    }
}

impl From<String> for End {
    fn from(why: String) -> End {
        End::Wrong(why)
    }
}

pub fn status(done: Result<ExitCode, End>) -> ExitCode {
    done.unwrap_or_else(|end| match end {
        End::Wrong(why) => {
            tell(&why);
            ExitCode::FAILURE
        }
        End::Stopped(what) => {
            tell(&format!("stopped{what}"));
            ExitCode::from(INTERRUPTED)
        }
    })
}

pub fn tell_unoptimised() {
    if cfg!(debug_assertions) {
        tell(
            "this build is not optimised: its figures are several times too low (build it with cargo build --release)",
        );
    }
}

#[allow(clippy::print_stderr, reason = "the one place where these commands do")]
pub fn tell(words: &str) {
    let line = format!("millstream: {}", terminal::visible(words));
    eprintln!("{}", terminal::fitting(&line, &std::io::stderr()));
}
