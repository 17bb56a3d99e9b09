//! The access phase: who is let in, by address, by password, by what another service says.
//!
//! It comes before the content, so it guards what the cache has, files, the API and purges as well. It never looks at what
//! would be answered. A check that has to wait says what it asks; the weighing goes on behind it. Before: `limits`; next:
//! `addresses`, `auth_basic` and `auth_request`, the checks; `phase`.

mod password;
mod password_line;
mod users;
mod remembered;
mod addresses;
pub mod auth_basic;
pub mod auth_request;

use crate::failure;
use crate::request::Request;
use millstream_conf::model::{Level, Satisfy, Settings};
use millstream_wire::FieldId;

/// What one check says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    /// Nothing: the location does not ask it.
    None,
    /// It lets the request in.
    LetsIn,
    /// It refuses it with a status.
    Refuses(u16),
}

/// What a check has to wait for.
pub enum Question {
    /// Whether a name and its password are right.
    Password(Box<auth_basic::PasswordQuestion>),
    /// What the answer to a subrequest says.
    Service,
}

/// How far the checks of a request have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weighing {
    /// The place in [`CHECKS`] of the one that is asked next.
    at: usize,
    /// What that one said, where it had to wait.
    heard: Option<Opinion>,
    /// What those before it refused with, where any may let the request in.
    refusal: Option<u16>,
}

/// What the checks come to.
pub enum AccessDecision {
    /// The request is let in.
    Granted,
    /// It is refused with this status.
    Refused(u16),
    /// This is to be asked first.
    Asks(Question, Weighing),
}

/// A check, which may have a question first.
type Check = fn(&mut Request, &Settings) -> Result<Opinion, Question>;

/// The checks, in nginx's order.
const CHECKS: [Check; 3] = [addresses::judge, auth_basic::judge, auth_request::judge];

impl Weighing {
    /// The next check, which had to wait, has said something.
    #[must_use]
    pub fn hears(self, opinion: Opinion) -> Weighing {
        Weighing { heard: Some(opinion), ..self }
    }
}

/// Lets a request into its location, or not; from one check on.
pub fn judge(request: &mut Request, settings: &Settings, weighing: Weighing) -> AccessDecision {
    let Weighing { at, mut heard, mut refusal } = weighing;
    for (at, check) in CHECKS.iter().enumerate().skip(at) {
        let opinion = match heard.take().map_or_else(|| check(request, settings), Ok) {
            Ok(opinion) => opinion,
            Err(question) => return AccessDecision::Asks(question, Weighing { at, heard: None, refusal }),
        };
        match (opinion, settings.satisfy) {
            (Opinion::None, _) | (Opinion::LetsIn, Satisfy::All) => {}
            (Opinion::LetsIn, Satisfy::Any) => {
                if refusal == Some(401) {
                    withdraw_challenges(request);
                }
                return AccessDecision::Granted;
            }
            (Opinion::Refuses(status @ (401 | 403)), Satisfy::Any) => {
                // How to be let in is worth more to the client than that its address is not.
                if refusal != Some(401) {
                    refusal = Some(status);
                }
            }
            (Opinion::Refuses(status), _) => return AccessDecision::Refused(status),
        }
    }
    match refusal {
        None => AccessDecision::Granted,
        Some(status) => {
            if status == 403 {
                forbidden(request);
            }
            AccessDecision::Refused(status)
        }
    }
}

/// Says in the answer to come how to be let in (RFC 9110 §11.6.1), once however often the request is refused.
fn challenge(request: &mut Request, how: &[u8]) {
    let fields = request.accel_fields.get_or_insert_default();
    if fields.view().all(FieldId::WwwAuthenticate).all(|known| known != how) {
        fields.push_id(FieldId::WwwAuthenticate, how);
    }
}

/// The request is let in after all.
fn withdraw_challenges(request: &mut Request) {
    if let Some(fields) = &mut request.accel_fields {
        fields.remove(FieldId::WwwAuthenticate);
    }
}

fn forbidden(request: &Request) {
    failure::log(request, Level::Error, format_args!("access forbidden by rule"));
}
