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
use crate::shows::Shows;
use millstream_conf::model::{Level, Satisfy, Settings};
use millstream_wire::FieldId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    None,
    LetsIn,
    Refuses(u16),
}

pub enum Question {
    Password(Box<auth_basic::PasswordQuestion>),
    Service,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weighing {
    at: usize,
    /// The result of the check that had to wait.
    heard: Option<Opinion>,
    /// Refusal of an earlier check, with `satisfy any`.
    refusal: Option<u16>,
}

pub enum AccessDecision {
    Granted,
    Refused(u16),
    Asks(Question, Weighing),
}

type Check = fn(&mut Request, &Settings) -> Result<Opinion, Question>;

/// In nginx's order, with what a refusal reveals of the client where an error page leads on.
const CHECKS: [(Check, Shows); 3] = [
    (addresses::judge, Shows::ADDRESS),
    (auth_basic::judge, Shows::WHO),
    // The service is asked with all that the client has sent, and may be told its address.
    (auth_request::judge, Shows::CLIENT),
];

impl Weighing {
    #[must_use]
    pub fn hears(self, opinion: Opinion) -> Weighing {
        Weighing { heard: Some(opinion), ..self }
    }
}

/// Runs the checks, continuing where `weighing` stopped.
pub fn judge(request: &mut Request, settings: &Settings, weighing: Weighing) -> AccessDecision {
    let Weighing { at, mut heard, mut refusal } = weighing;
    for (at, (check, shows)) in CHECKS.iter().enumerate().skip(at) {
        let opinion = match heard.take().map_or_else(|| check(request, settings), Ok) {
            Ok(opinion) => opinion,
            Err(question) => return AccessDecision::Asks(question, Weighing { at, heard: None, refusal }),
        };
        if let Opinion::Refuses(_) = opinion {
            request.route.shows.way |= *shows;
        }
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

/// Adds a WWW-Authenticate field (RFC 9110 §11.6.1), once however often the request is refused.
fn challenge(request: &mut Request, how: &[u8]) {
    let fields = request.descent.accel_fields.get_or_insert_default();
    if fields.view().all(FieldId::WwwAuthenticate).all(|known| known != how) {
        fields.push_id(FieldId::WwwAuthenticate, how);
    }
}

fn withdraw_challenges(request: &mut Request) {
    if let Some(fields) = &mut request.descent.accel_fields {
        fields.remove(FieldId::WwwAuthenticate);
    }
}

fn forbidden(request: &Request) {
    failure::log(request, Level::Error, format_args!("access forbidden by rule"));
}
