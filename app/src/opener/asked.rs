//! What a serving process asks its opener, and what it hears: messages of JSON, files beside them.
//!
//! A question is one message. An answer is as many as it needs, each of which but the first is asked for; its end is [`END`], which stands nowhere else in it.

use millstream_net::systemd::Word;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// A question. Each is answered before the next one is put.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// A file that the configuration names: to be read, or to be written to its end and made with these permissions.
    Open(PathBuf, Option<u32>),
    /// The files that match an `include` pattern.
    Matches(String),
    /// What did not fit into the message before.
    Rest,
    /// Read the configuration anew, as a `HUP` has it.
    Load,
    /// Open the sockets of what was read; from then on that is in force.
    Listen,
    /// Sockets of an address, by its number, from one of them on.
    Sockets(usize, usize),
    /// The pid file is where the configuration has it.
    Enter,
    /// Start the next process, as a `USR2` has it.
    Upgrade,
    /// Whether the next process has ended, as a `CHLD` has it.
    Reap,
    /// Close the listening sockets.
    Leave,
    /// Tell the service manager, by the number of the word in [`WORDS`].
    Say(usize),
    /// Watch files; the answer is a pipe through which a byte comes when something happens to one.
    Watch,
    /// Watch these and those of the questions before, up to one that had `true`. With `true` the list ends: from now on these are watched, and no others.
    Follow(Vec<PathBuf>, bool),
}

/// The last byte of an answer.
pub const END: u8 = b'\n';

/// Words for the service manager, by their numbers.
pub const WORDS: [Word; 4] = [Word::Ready, Word::Reloading, Word::Stopping, Word::Alive];

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It is done; files that were asked for are with it.
    Done,
    /// It is not.
    Failed(SentError),
    /// Paths.
    Paths(Vec<PathBuf>),
    /// What the sockets came to.
    Listened {
        /// The addresses that are listened on, in order.
        addresses: Vec<String>,
        /// Numbers of addresses that can be done without, and why they are not.
        missing: Vec<(usize, SentError)>,
        /// Whether one of before is no more.
        has_left: bool,
    },
    /// Numbers of addresses that cannot be listened on, and why.
    Refused(Vec<(usize, SentError)>),
    /// A process.
    Process(u32),
    /// What there is to be said.
    Text(Option<String>),
    /// A directory that cannot be watched.
    Unwatched(PathBuf, SentError),
}

/// An error of the system's, as a message.
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
