//! How a request comes back into the phases: under another URI, or in a named location.
//!
//! `index`, `try_files`, `error_page` and `X-Accel-Redirect` all come back here, and nowhere else. From then on a request is internal.
//! Next: `phase`, which goes on with it.

use crate::failure;
use crate::request::{Arguments, Request};
use crate::route::location;
use crate::shows::Shows;
use crate::variables::personal;
use millstream_conf::model::Level;
use millstream_wire::{Method, target};

/// As in nginx.
const CHANGES: u8 = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restart {
    /// `$uri`; without its own query it keeps the present one.
    Uri {
        /// Decoded and normalized.
        path: Vec<u8>,
        query: Option<Vec<u8>>,
        /// What both reveal about the client.
        shows: Shows,
    },
    /// Path and query stay.
    Named {
        /// With its `@`.
        name: Vec<u8>,
        /// What the choice of it reveals about the client.
        shows: Shows,
    },
}

/// The phase from which a restarted request runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    Server,
    Location,
}

impl Restart {
    pub fn path(path: Vec<u8>, shows: Shows) -> Self {
        Restart::Uri { path, query: None, shows }
    }

    /// `@name`, or a path with its query, even an empty one.
    pub fn read(text: &[u8], shows: Shows) -> Self {
        if text.starts_with(b"@") {
            return Restart::Named { name: text.to_vec(), shows };
        }
        let (path, query) = halves(text);
        Restart::Uri { path: path.to_vec(), query: Some(query.to_vec()), shows }
    }

    /// `X-Accel-Redirect`: as in nginx the URI is decoded but not normalized, and a URL of another server or
    /// `..` is refused. The error is a status.
    pub fn accelerated(request: &mut Request, uri: &[u8]) -> Result<Self, u16> {
        let shows = personal::shown_by_answer(request);
        if uri.starts_with(b"@") {
            return Ok(Restart::Named { name: uri.to_vec(), shows });
        }
        if !uri.starts_with(b"/") {
            let uri = String::from_utf8_lossy(uri);
            log(request, format_args!("\"X-Accel-Redirect: {uri}\" is neither a path nor a named location"));
            return Err(404);
        }
        let Some((path, query)) = target::safe(uri) else {
            let uri = String::from_utf8_lossy(uri);
            log(request, format_args!("unsafe URI \"{uri}\" was detected"));
            return Err(404);
        };
        request.method = reading(request.method);
        request.received.body.lead_on();
        Ok(Restart::Uri { path, query: Some(query.to_vec()), shows })
    }

    /// The error is a status, after too many redirects or for an unknown location.
    pub fn apply(self, request: &mut Request) -> Result<Resumed, u16> {
        changed(request)?;
        request.descent.is_internal = true;
        match self {
            Restart::Uri { path, query, shows } => {
                request.route.uri = path;
                request.route.shows.path |= shows;
                if let Some(query) = query {
                    request.route.arguments = Arguments::Replaced(query);
                    request.route.shows.query |= shows;
                }
                request.route.is_rewritten = true;
                // The location that is found now is that of this path.
                (request.route.is_outside, request.route.extends_alias) = (false, false);
                let own = request.server().own;
                request.enter(own);
                Ok(Resumed::Server)
            }
            Restart::Named { name, shows } => {
                request.route.shows.way |= shows;
                let tree = &request.server().locations;
                match std::str::from_utf8(&name).ok().and_then(|name| location::named(tree, name)) {
                    Some(id) => {
                        request.enter(id);
                        Ok(Resumed::Location)
                    }
                    None => {
                        let name = String::from_utf8_lossy(&name);
                        log(request, format_args!("could not find named location \"{name}\""));
                        Err(500)
                    }
                }
            }
        }
    }
}

/// If not, an error has no configured page.
pub fn may_change(request: &Request) -> bool {
    request.descent.changes <= CHANGES
}

pub fn changed(request: &mut Request) -> Result<(), u16> {
    request.descent.changes += 1;
    if request.descent.changes <= CHANGES {
        return Ok(());
    }
    let uri = String::from_utf8_lossy(&request.route.uri).into_owned();
    log(request, format_args!("rewrite or internal redirection cycle while processing \"{uri}\""));
    Err(500)
}

/// The method for a page: the request itself is done.
pub fn reading(method: Method) -> Method {
    if method == Method::Head { Method::Head } else { Method::Get }
}

fn log(request: &Request, what: std::fmt::Arguments<'_>) {
    failure::log(request, Level::Error, what);
}

fn halves(uri: &[u8]) -> (&[u8], &[u8]) {
    let end = uri.iter().position(|&byte| byte == b'?').unwrap_or(uri.len());
    (&uri[..end], uri.get(end + 1..).unwrap_or_default())
}
