//! `scgi_pass`: speaking SCGI to an application.
//!
//! Here is only what no other protocol has. Before: `params`, what applications have in common; next: `millstream-server`'s
//! `exchange/params`.

use super::exchange::Exchange;
use super::http::SetHeader;
use super::params::{self, Param, Params};
use super::target::PassDraft;
use super::{Family, Sent, Spoken};
use crate::features::context::{HTTP_SERVER_LOCATION, LOCATION_IF};
use crate::features::level::level;
use crate::features::location::LocationMatch;
use crate::features::templates::record;
use crate::features::{Apply, Level, Row, often, once};
use crate::reading::Reading;

record! {
    pub struct ScgiPass {
        pub params: Vec<Param>,
        /// The request fields among them (`HTTP_…`), by field name.
        pub set_headers: Vec<SetHeader>,
    }
}

level! {
    pub struct ScgiLevel {
        params: Params,
    }
}

impl Spoken for ScgiLevel {
    type Settings = ScgiPass;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn sent(&self) -> Sent<'_> {
        params::sent(self.params.as_ref())
    }

    fn adjust(exchange: &mut Exchange) {
        params::adjust(exchange);
    }

    fn resolve(&self, _: &PassDraft, _: &LocationMatch, _: &mut Reading<'_>) -> ScgiPass {
        let Params { all, fields } = self.params.clone().unwrap_or_default();
        ScgiPass { params: all, set_headers: fields }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("scgi_pass", LOCATION_IF, (1, 1), "address", "",
        "Passes requests to an application that supports SCGI: an upstream group, `host:port` or `unix:/path`. Each request uses a new connection. If \
        the parameter contains variables, its value is the whole address.",
        Apply::Level(|l, d, r| params::pass(Family::Scgi, l, d, r))),
    often("scgi_param", HTTP_SERVER_LOCATION, (2, 3), "name value [if_not_empty]", "",
        "Sets a parameter for the application; with `if_not_empty`, only if the value is not empty. Request fields are passed as parameters \
        (`HTTP_ACCEPT` …), and for SCGI also CONTENT_LENGTH, unless a parameter with the same name is set. For uwsgi, all parameters of a request are \
        limited to 64 KiB. These directives are inherited only if the current level has none.",
        Apply::Level(|l, d, r| of(l).params.get_or_insert_default().read(d, r))),
];

pub const TLS_ROWS: &[Row] = &[];

fn of(level: &mut Level) -> &mut ScgiLevel {
    &mut level.pass.scgi.protocol
}
