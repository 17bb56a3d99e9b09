//! Where a request comes to, and under which URI: the phases from the server's script to that of the location.
//!
//! ```text
//! server's script → location → its script ─┬─ the URI changed: location again, at most 10 times
//!                                          └─ it did not: here
//! ```
//! Each location that is found for a URI bounds a body whose length is known (`client_max_body_size`); a named one does not.
//! Nothing here waits: a script that asks for a file of which the kernel has to ask a disk stops, and goes on with the answer. Next: `script`, which carries
//! one out; `phase`, which calls this and goes on.

pub mod file_test;
mod value;
mod condition;
mod replacement;
mod script;
#[cfg(test)]
mod tests;

use crate::admission;
use crate::request::Request;
use crate::restart::changed;
use file_test::FileTest;
use millstream_conf::model::{LocationId, LocationMatch, Phases};
use script::Ran;

pub use script::{Paused, set};

#[derive(Debug, Clone, Copy)]
pub enum From {
    Server,
    Location,
    Rewrite,
    Script(Paused),
}

#[derive(Debug)]
pub enum Settled {
    Here,
    /// The level of a `return`, and its position in the script.
    Return(LocationId, usize),
    Redirect(u16, Vec<u8>),
    /// Redirects to the path with a slash, a location's name.
    Slash,
    Status(u16),
    /// The length of the body is known, and larger than the location allows.
    TooLarge,
    Test(FileTest, Paused),
}

/// Runs the scripts of server and location until the URI no longer changes.
pub fn settle(request: &mut Request, from: From) -> Settled {
    let own = request.server().own;
    let mut from = from;
    loop {
        let paused = match from {
            From::Server => Paused::at_start(own),
            From::Location => {
                if let Err(status) = admission::route(request) {
                    return Settled::Status(status);
                }
                if request.location().settings.internal && !request.descent.is_internal {
                    return Settled::Status(404);
                }
                if request.is_too_large() {
                    return Settled::TooLarge;
                }
                if slash_is_missing(request) {
                    return Settled::Slash;
                }
                // Where there is none, the server's script was its script.
                if request.route.location == own {
                    return Settled::Here;
                }
                Paused::at_start(request.route.location)
            }
            From::Rewrite => Paused::at_start(request.route.location),
            From::Script(paused) => paused,
        };
        let is_server = paused.owner == own;
        let has_script = request.generation.http().location(paused.owner).settings.phases.has(Phases::SCRIPT);
        let ran = if has_script { script::run(request, paused) } else { Ran::End { changed: false } };
        if is_server && !matches!(ran, Ran::End { .. }) {
            request.enter(own);
        }
        from = match ran {
            Ran::End { .. } if is_server => From::Location,
            Ran::End { changed: false } => return Settled::Here,
            Ran::End { changed: true } => match changed(request) {
                Ok(()) => From::Location,
                Err(status) => return Settled::Status(status),
            },
            Ran::Return(at) => return Settled::Return(paused.owner, at),
            Ran::Redirect(status, url) => return Settled::Redirect(status, url),
            Ran::Status(status) => return Settled::Status(status),
            Ran::Test(test, paused) => match test.ask_at_once(request) {
                Some(is_there) => From::Script(paused.answered(is_there)),
                None => return Settled::Test(test, paused),
            },
        };
    }
}

/// Whether only the redirect to the path with a slash reaches the location.
fn slash_is_missing(request: &Request) -> bool {
    match &request.location().matches {
        LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => {
            path.len() > request.route.uri.len()
        }
        LocationMatch::Regex(_) | LocationMatch::Named(_) | LocationMatch::Server => false,
    }
}
