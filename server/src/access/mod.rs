//! The access phase: who is let in, by address, by password, by what another service says.
//!
//! It comes before the content, so it guards what the cache has, files, the API and purges as well. It never looks at what
//! would be answered. Before: `limits`; next: `addresses` and the other checks; `phase`.

mod addresses;

use crate::failure;
use crate::request::Request;
use millstream_conf::model::{Level, Satisfy, Settings};

/// What one check says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opinion {
    /// Nothing: the location does not ask it.
    None,
    /// It lets the request in.
    LetsIn,
    /// It refuses it with a status.
    Refuses(u16),
}

/// The checks, in nginx's order.
const CHECKS: [fn(&Request, &Settings) -> Opinion; 1] = [addresses::judge];

/// Lets a request into its location.
///
/// # Errors
/// The status of the refusal.
pub fn judge(request: &Request, settings: &Settings) -> Result<(), u16> {
    let mut refusal = None;
    for check in CHECKS {
        match (check(request, settings), settings.satisfy) {
            (Opinion::None, _) | (Opinion::LetsIn, Satisfy::All) => {}
            (Opinion::LetsIn, Satisfy::Any) => return Ok(()),
            (Opinion::Refuses(status @ (401 | 403)), Satisfy::Any) => {
                // How to be let in is worth more to the client than that its address is not.
                if refusal != Some(401) {
                    refusal = Some(status);
                }
            }
            (Opinion::Refuses(status), _) => return Err(status),
        }
    }
    match refusal {
        None => Ok(()),
        Some(status) => {
            if status == 403 {
                forbidden(request);
            }
            Err(status)
        }
    }
}

fn forbidden(request: &Request) {
    failure::log(request, Level::Error, format_args!("access forbidden by rule"));
}
