//! `uwsgi_pass`: speaking uwsgi to an application server, such as uWSGI.
//!
//! Here is only what no other protocol has. Before: `params`, what applications have in common; next: `millstream-server`'s
//! `exchange/params`.

use super::exchange::Exchange;
use super::http::SetHeader;
use super::params::{self, Param, Params};
use super::secure::{self, PassTls, SecureLevel};
use super::target::PassDraft;
use super::{Family, Sent, Spoken};
use crate::features::context::{HTTP_SERVER_LOCATION, LOCATION_IF};
use crate::features::level::level;
use crate::features::location::LocationMatch;
use crate::features::templates::record;
use crate::features::{Apply, Level, MANY, Row, often, once};
use crate::reading::Reading;

record! {
    pub struct UwsgiPass {
        pub params: Vec<Param>,
        /// The request fields among them (`HTTP_…`), by field name.
        pub set_headers: Vec<SetHeader>,
        pub modifier1: u8,
        pub modifier2: u8,
        /// Sent after the parameters.
        pub string: String,
        /// Present if the address is, or may be, `suwsgi://`.
        pub tls: Option<PassTls>,
    }
}

level! {
    pub struct UwsgiLevel {
        params: Params,
        modifier1: u8,
        modifier2: u8,
        string: String,
        secure: SecureLevel,
    }
}

impl Spoken for UwsgiLevel {
    type Settings = UwsgiPass;

    fn inherit(&mut self, above: &Self) {
        if let (Some(own), Some(outer)) = (&mut self.secure, &above.secure) {
            own.inherit_open(outer);
        }
        self.inherit_open(above);
    }

    fn sent(&self) -> Sent<'_> {
        Sent { values: secure::sent(self.secure.as_ref()), ..params::sent(self.params.as_ref()) }
    }

    fn adjust(exchange: &mut Exchange) {
        params::adjust(exchange);
    }

    fn resolve(&self, draft: &PassDraft, _: &LocationMatch, reading: &mut Reading<'_>) -> UwsgiPass {
        let Params { all, fields } = self.params.clone().unwrap_or_default();
        UwsgiPass {
            params: all,
            set_headers: fields,
            modifier1: self.modifier1.unwrap_or(0),
            modifier2: self.modifier2.unwrap_or(0),
            string: self.string.clone().unwrap_or_default(),
            tls: draft
                .may_be_encrypted
                .then(|| self.secure.clone().unwrap_or_default().resolve(draft, reading)),
        }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("uwsgi_pass", LOCATION_IF, (1, 1), "address", "",
        "Passes requests to an application server that supports uwsgi: an upstream group, `host:port` or `unix:/path`. Each request uses a new \
        connection. The address may begin with `uwsgi://`, or with `suwsgi://` for TLS. If the parameter contains variables, its value is the whole \
        address.",
        Apply::Level(|l, d, r| params::pass(Family::Uwsgi, l, d, r))),
    often("uwsgi_param", HTTP_SERVER_LOCATION, (2, 3), "name value [if_not_empty]", "",
        "Sets a parameter for the application; with `if_not_empty`, only if the value is not empty. Request fields are passed as parameters \
        (`HTTP_ACCEPT` …), and for SCGI also CONTENT_LENGTH, unless a parameter with the same name is set. For uwsgi, all parameters of a request are \
        limited to 64 KiB. These directives are inherited only if the current level has none.",
        Apply::Level(|l, d, r| of(l).params.get_or_insert_default().read(d, r))),
    once("uwsgi_modifier1", HTTP_SERVER_LOCATION, (1, 1), "number", "0",
        "Sets the first modifier of the uwsgi packet, which is the type of the request.",
        Apply::Level(|l, d, r| of(l).modifier1 = r.number(&d.args[0], 0, 255).map(|number| number as u8))),
    once("uwsgi_modifier2", HTTP_SERVER_LOCATION, (1, 1), "number", "0",
        "Sets the second modifier of the uwsgi packet.",
        Apply::Level(|l, d, r| of(l).modifier2 = r.number(&d.args[0], 0, 255).map(|number| number as u8))),
    once("uwsgi_string", HTTP_SERVER_LOCATION, (1, 1), "text", "",
        "Sets a string that is sent after the parameters.",
        Apply::Level(|l, d, _| of(l).string = Some(d.args[0].text.clone()))),
];

#[rustfmt::skip]
pub const TLS_ROWS: &[Row] = secure::rows!("uwsgi", secure_of, "host from uwsgi_pass");

fn secure_of(level: &mut Level) -> &mut SecureLevel {
    of(level).secure.get_or_insert_default()
}

fn of(level: &mut Level) -> &mut UwsgiLevel {
    &mut level.pass.uwsgi.protocol
}
