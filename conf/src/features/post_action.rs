//! `post_action`: what is requested once a request is done.
//!
//! Next: `millstream-server`'s `drive/subrequest`, which requests it.

use super::context::UP_TO_IF;
use super::level::settings;
use super::phases::Phases;
use super::{Apply, Row, once};

settings! {
    pub struct PostAction, PostActionLevel(place, reading) {
        /// A path or a named location; empty = none.
        uri: Box<str> = "".into(),
    }
    phases |made| Phases::POST_ACTION.only_if(!made.uri.is_empty())
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("post_action", UP_TO_IF, (1, 1), "uri", "",
        "Requests this path or named location as a subrequest when the request has ended, even if the client did not receive all of the response. \
        Variables such as `$body_bytes_sent`, `$request_completion` and `$request_body` refer to the original request. The response is discarded. \
        The client connection accepts no further request until the subrequest has ended.",
        Apply::Level(|l, d, _| l.post_action.uri = Some(d.args[0].text.as_str().into()))),
];
