//! `grpc_pass`: speaking gRPC, which is HTTP/2, to the upstream.
//!
//! Bodies go both ways as they come and answers are stored nowhere, so the family has no rows for buffers and caches. Before: `target`, whom a
//! location passes to; next: `millstream-server`'s `exchange/asked`.

use super::exchange::Exchange;
use super::http::{self, SetHeader};
use super::secure::{self, PassTls, SecureLevel};
use super::target::{self, PassDraft};
use super::{Sent, Spoken};
use crate::features::context::{HTTP_SERVER_LOCATION, LOCATION_IF};
use crate::features::level::level;
use crate::features::location::LocationMatch;
use crate::features::templates::record;
use crate::features::{Apply, Level, MANY, Row, often, once};
use crate::reading::Reading;

record! {
    pub struct GrpcPass {
        /// `$proxy_host`: the host as written, with the port unless it is the scheme's.
        pub host: String,
        pub port: u16,
        /// The `grpc_set_header`s in force, and `Host $proxy_host` unless they name it.
        pub set_headers: Vec<SetHeader>,
        /// Present if the address is, or may be, `grpcs://`.
        pub tls: Option<PassTls>,
    }
}

level! {
    pub struct GrpcLevel {
        set_headers: Vec<SetHeader>,
        secure: SecureLevel,
    }
}

impl Spoken for GrpcLevel {
    type Settings = GrpcPass;

    fn inherit(&mut self, above: &Self) {
        if let (Some(own), Some(outer)) = (&mut self.secure, &above.secure) {
            own.inherit_open(outer);
        }
        self.inherit_open(above);
    }

    fn sent(&self) -> Sent<'_> {
        Sent {
            fields: self.set_headers.as_deref().unwrap_or_default(),
            values: secure::sent(self.secure.as_ref()),
            ..Sent::default()
        }
    }

    fn adjust(exchange: &mut Exchange) {
        (exchange.buffering, exchange.request_buffering) = (false, false);
        exchange.max_temp_file_size = 0;
    }

    fn resolve(&self, draft: &PassDraft, _: &LocationMatch, reading: &mut Reading<'_>) -> GrpcPass {
        GrpcPass {
            host: draft.host.clone(),
            port: draft.port,
            set_headers: http::set_headers(self.set_headers.as_deref()),
            tls: draft
                .may_be_encrypted
                .then(|| self.secure.clone().unwrap_or_default().resolve(draft, reading)),
        }
    }
}

#[rustfmt::skip]
pub const TLS_ROWS: &[Row] = secure::rows!("grpc", secure_of, "$proxy_host");

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("grpc_pass", LOCATION_IF, (1, 1), "address", "",
        "Passes gRPC calls over HTTP/2 to an upstream group, `host:port` or `unix:/path`, preceded by `grpc://`, which may be omitted, or by \
        `grpcs://` for TLS. Calls share connections, and both sides may send at the same time. If the parameter contains variables, its value is the whole address.",
        Apply::Level(target::read_grpc)),
    often("grpc_set_header", HTTP_SERVER_LOCATION, (2, 2), "field value", "Host $proxy_host",
        "Sets a field of requests to the upstream. An empty value removes it. These directives are inherited only if the current level has none. The \
        defaults apply unless the same field is set. For gRPC, `Host` sets `:authority`.",
        Apply::Level(|l, d, r| http::set_header(of(l).set_headers.get_or_insert_default(), d, r))),
];

fn secure_of(level: &mut Level) -> &mut SecureLevel {
    of(level).secure.get_or_insert_default()
}

fn of(level: &mut Level) -> &mut GrpcLevel {
    &mut level.pass.grpc.protocol
}
