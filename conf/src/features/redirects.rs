//! How a path that a client is sent to becomes a URL.
//!
//! Next: `millstream-server`'s `content/fixed`.

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::{Apply, Row, once};

settings! {
    pub struct Redirects, RedirectsLevel(place, reading) {
        absolute: bool = true,
        port: bool = true,
        server_name: bool = false,
        msie_refresh: bool = false,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("absolute_redirect", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Redirects clients to a URL with scheme and host. If off, Location contains only the path.",
        Apply::Level(|l, d, r| l.redirects.absolute = r.flag(&d.args[0]))),
    once("port_in_redirect", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Adds the port of the listener to redirects, unless it is the scheme's default.",
        Apply::Level(|l, d, r| l.redirects.port = r.flag(&d.args[0]))),
    once("server_name_in_redirect", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Uses the first `server_name` in redirects, instead of the host that the client requested.",
        Apply::Level(|l, d, r| l.redirects.server_name = r.flag(&d.args[0]))),
    once("msie_refresh", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Sends MSIE clients a page with a refresh and status 200, instead of a redirect with 301 or 302.",
        Apply::Level(|l, d, r| l.redirects.msie_refresh = r.flag(&d.args[0]))),
];
