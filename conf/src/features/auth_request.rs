//! `auth_request` and `auth_request_set`: another service says who is let in.
//!
//! Next: `millstream-server`'s `access/auth_request`.

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::phases::Phases;
use super::rewrite::{Settable, settable};
use super::templates::record;
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;

record! {
    pub struct AuthRequest {
        /// Path of the subrequest; `None` = off.
        pub uri: Option<Box<str>>,
        pub set: Box<[(Settable, Template)]>,
    }
}

level! {
    pub struct AuthRequestLevel {
        uri: Option<Box<str>>,
        set: Vec<(Settable, Template)>,
    }
}

impl Feature for AuthRequestLevel {
    type Settings = AuthRequest;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> AuthRequest {
        AuthRequest { uri: self.uri.clone().flatten(), set: self.set.clone().unwrap_or_default().into() }
    }

    fn phases(settings: &AuthRequest) -> Phases {
        Phases::ACCESS.only_if(settings.uri.is_some())
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("auth_request", HTTP_SERVER_LOCATION, (1, 1), "uri | off", "off",
        "Makes a subrequest to this path of the same server, a GET without a body, before any response, including a cached one. A 2xx status allows \
        the request. 401 and 403 deny it, 401 with the subrequest's `WWW-Authenticate`. Any other status is an error. In the location of the path, \
        `$request_uri`, `$request_method` and the client's fields are those of the main request.",
        Apply::Level(|l, d, _| {
            let word = &d.args[0];
            l.auth_request.uri = Some((word.text != "off").then(|| word.text.as_str().into()));
        })),
    often("auth_request_set", HTTP_SERVER_LOCATION, (2, 2), "$variable value", "",
        "Sets a variable after the subrequest of `auth_request`, regardless of its status. The value may contain variables of its response, such as \
        `$upstream_http_x_user`. These directives are inherited only if the current level has none.",
        Apply::Level(set)),
];

fn set(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let Some(target) = settable(&directive.args[0], reading) else { return };
    let value = reading.template(&directive.args[1]);
    level.auth_request.set.get_or_insert_default().push((target, value));
}
