//! An application that answers as CGI does, over a connection of its own: uwsgi and SCGI, which differ in what a request begins
//! with alone.
//!
//! The body goes as it is. The answer is text with a status line or without one, and ends where the connection does.

use crate::error::ExchangeError;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Method};

/// The connection cannot be reused.
pub(super) fn accept(
    method: Method,
    head: &ResponseHead,
    fields: Fields<'_>,
) -> Result<(Framing, bool), ExchangeError> {
    let framing = framing::cgi(method, head.status, fields).map_err(ExchangeError::BadFraming)?;
    Ok((framing, false))
}
