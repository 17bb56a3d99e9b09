//! What a serving process asks its opener, and what it hears: messages of JSON, files beside them.
//!
//! A question is one message. An answer is as many as it needs, each of which but the first is asked for; its end is [`END`], which stands nowhere else in it.

use millstream_net::systemd::Word;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// A file that the configuration names: to read, or to append to and create with these permissions.
    Open(PathBuf, Option<u32>),
    Matches(String),
    Rest,
    /// Read the configuration again, as on `HUP`.
    Load,
    /// Open the sockets of what was read, which is then in force.
    Listen,
    /// Sockets of an address, by its number, from this position on.
    Sockets(usize, usize),
    /// Write the pid file where the configuration has it.
    Enter,
    /// Start the next process, as on `USR2`.
    Upgrade,
    /// Whether the next process has ended, as on `CHLD`.
    Reap,
    Leave,
    /// Notify the service manager with this word of [`WORDS`].
    Say(usize),
    /// Watch files; the reply is a pipe that gets a byte for each event.
    Watch,
    /// Watch these and those of the previous messages up to one with `true`, which completes the list and
    /// replaces the old one.
    Follow(Vec<PathBuf>, bool),
}

pub const END: u8 = b'\n';

pub const WORDS: [Word; 4] = [Word::Ready, Word::Reloading, Word::Stopping, Word::Alive];

#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Requested files come with it.
    Done,
    Failed(SentError),
    Paths(Vec<PathBuf>),
    Listened {
        addresses: Vec<String>,
        /// Optional addresses that could not be opened, by number.
        missing: Vec<(usize, SentError)>,
        /// Whether a previous address is gone.
        has_left: bool,
    },
    /// Addresses that could not be opened, by number.
    Refused(Vec<(usize, SentError)>),
    Process(u32),
    Text(Option<String>),
    Unwatched(PathBuf, SentError),
}

/// A system error as a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentError {
    number: Option<i32>,
    text: String,
}

impl From<&io::Error> for SentError {
    fn from(error: &io::Error) -> SentError {
        SentError { number: error.raw_os_error(), text: error.to_string() }
    }
}

impl From<SentError> for io::Error {
    fn from(failure: SentError) -> io::Error {
        failure.number.map_or_else(|| io::Error::other(failure.text), io::Error::from_raw_os_error)
    }
}
