//! `mirror`: copies of requests that other locations get too, and whose responses are dropped.
//!
//! Next: `millstream-server`'s `drive/waiting`, which sends them.

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::phases::Phases;
use super::{Apply, Level, Row, often, once};
use crate::reading::Reading;
use crate::tree::Directive;

settings! {
    pub struct Mirror, MirrorLevel(place, reading) {
        uris: Vec<String> = Vec::new(),
        request_body: bool = true,
    }
    phases |made| Phases::MIRROR.only_if(!made.uris.is_empty())
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("mirror", HTTP_SERVER_LOCATION, (1, 1), "uri | off", "off",
        "Sends a copy of each request to this path of the same server as a subrequest, and ignores the response. If there are several paths, a \
        copy is sent to each. Neither the response to the client nor the next request on its connection waits for copies. While it is in progress, a copy \
        uses one of the `worker_connections`, and its connection to an upstream uses another. Unfinished copies use at most a quarter of the \
        connections that a worker opens to upstreams, and those of one client connection at most half of that. A copy that would exceed this is \
        dropped; a warning is logged at most once every 10 seconds.",
        Apply::Level(mirror)),
    once("mirror_request_body", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Sends the request body with copies. If on, the body is read completely before the request is processed further.",
        Apply::Level(|l, d, r| l.mirror.request_body = r.flag(&d.args[0]))),
];

fn mirror(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let uri = &directive.args[0].text;
    let is_off = uri == "off";
    if level.mirror.uris.as_ref().is_some_and(|uris| is_off || uris.is_empty()) {
        reading
            .error(directive.span, "\"mirror\" directive is duplicate")
            .help("write either off or paths, each in a separate mirror");
        return;
    }
    let uris = level.mirror.uris.get_or_insert_default();
    if !is_off {
        uris.push(uri.clone());
    }
}
