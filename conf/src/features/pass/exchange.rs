//! An exchange with an upstream, whoever speaks: fields, buffers, time limits, and when another server is asked.
//!
//! Next: `millstream-server`'s `exchange`.

use std::time::Duration;

use super::failures::NextUpstream;
use super::{CommonLevel, Family};
use crate::address::local_address;
use crate::features::headers::is_field_name;
use crate::features::level::{Placed, settings};
use crate::features::limit_rate::{self, RequestSize};
use crate::features::templates::{record, without_templates};
use crate::reading::{Reading, Switch, TempPath};
use crate::template::Template;
use crate::tree::{Directive, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IgnoreHeaders {
    pub x_accel_redirect: bool,
    pub x_accel_expires: bool,
    pub x_accel_limit_rate: bool,
    pub x_accel_buffering: bool,
    pub x_accel_charset: bool,
    pub expires: bool,
    pub cache_control: bool,
    pub set_cookie: bool,
    pub vary: bool,
}

without_templates!(IgnoreHeaders);

record! {
    pub struct Bind {
        /// Perhaps with a port; empty = the system's choice.
        pub address: Template,
        /// The address need not be one of this machine's.
        pub transparent: bool,
    }
}

impl From<Placed<IgnoreHeaders>> for IgnoreHeaders {
    fn from(placed: Placed<IgnoreHeaders>) -> IgnoreHeaders {
        placed.value
    }
}

settings! {
    /// How a location exchanges with an upstream. Directives are named as in the family `proxy_`.
    pub struct Exchange, ExchangeLevel(place, reading) {
        /// In lower case, in addition to `HIDDEN_FIELDS`.
        hide_headers: Vec<String> = Vec::new(),
        /// In lower case; not hidden.
        pass_headers: Vec<String> = Vec::new(),
        ignore_headers: Placed<IgnoreHeaders> => IgnoreHeaders = Placed::nowhere(IgnoreHeaders::default()),
        buffering: bool = true,
        request_buffering: bool = true,
        /// A response's head must fit.
        buffer_size: usize = BUFFER_SIZE,
        /// Number × size: what one response may hold in memory in addition to `buffer_size`.
        buffers: (usize, usize) = BUFFERS,
        /// 0 = never to a file.
        max_temp_file_size: Placed<u64> => u64 = Placed::nowhere(1024 * 1024 * 1024),
        temp_path: TempPath = reading.default_temp_path(&place.level.pass.family().directive("temp")),
        connect_timeout: Duration = MINUTE,
        /// Between two writes.
        send_timeout: Duration = MINUTE,
        read_timeout: Duration = MINUTE,
        next_upstream: NextUpstream = NextUpstream { error: true, timeout: true, ..NextUpstream::default() },
        /// 0 = limited only by the number of servers.
        next_upstream_tries: u32 = 0,
        /// Zero = no limit.
        next_upstream_timeout: Duration = Duration::ZERO,
        intercept_errors: bool = false,
        ignore_client_abort: bool = false,
        passes_fields: bool = true,
        passes_address: bool = true,
        passes_body: bool = true,
        /// Bytes per second; 0 = unlimited.
        limit_rate: RequestSize = RequestSize::Fixed(0),
        /// The source address of connections; `None` = the system's choice.
        bind: Option<Bind> = None,
        socket_keepalive: bool = false,
        force_ranges: bool = false,
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const BUFFER_SIZE: usize = 4096;
const BUFFERS: (usize, usize) = (8, 4096);

/// Response fields the client never gets by default, in lower case.
const HIDDEN_FIELDS: [&str; 8] = [
    "date",
    "server",
    "x-pad",
    "x-accel-expires",
    "x-accel-redirect",
    "x-accel-limit-rate",
    "x-accel-buffering",
    "x-accel-charset",
];

impl Exchange {
    pub fn hides(&self, name: &[u8]) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let is_in = |list: &[String]| list.iter().any(|known| is(known));
        (HIDDEN_FIELDS.into_iter().any(is) || is_in(&self.hide_headers)) && !is_in(&self.pass_headers)
    }
}

impl ExchangeLevel {
    /// nginx requires room for at least one buffer, or 0.
    pub(super) fn check_temp_file_size(&self, family: Family, reading: &mut Reading<'_>) {
        let Some(Placed { value: size, span }) = self.max_temp_file_size else { return };
        let least = self.buffer_size.unwrap_or(BUFFER_SIZE).max(self.buffers.unwrap_or(BUFFERS).1) as u64;
        if size != 0 && size < least {
            let name = family.directive("max_temp_file_size");
            reading
                .error(span, format!("\"{name}\" must be 0 or at least as large as one of the buffers"))
                .help(format!("write 0 to disable temporary files, or at least {least}"));
        }
    }
}

macro_rules! rows {
    ($prefix:literal, $family:expr) => {
        [
            often(concat!($prefix, "_hide_header"), HTTP_SERVER_LOCATION, (1, 1), "field", "",
                "Sets a field of upstream responses that is not passed to clients, in addition to Date, Server, X-Pad and X-Accel-….",
                Apply::Pass($family, |l, d, r| l.exchange.hide_headers.get_or_insert_default().extend(exchange::field_name(d, r)))),
            often(concat!($prefix, "_pass_header"), HTTP_SERVER_LOCATION, (1, 1), "field", "",
                "Passes a field that would otherwise be hidden.",
                Apply::Pass($family, |l, d, r| l.exchange.pass_headers.get_or_insert_default().extend(exchange::field_name(d, r)))),
            once(concat!($prefix, "_buffer_size"), HTTP_SERVER_LOCATION, (1, 1), "size", "4k",
                "The maximum size of a response's head; a larger one results in 502.",
                Apply::Pass($family, |l, d, r| l.exchange.buffer_size = r.memory_size(&d.args[0]))),
            once(concat!($prefix, "_connect_timeout"), HTTP_SERVER_LOCATION, (1, 1), "time", "60s",
                "The time within which a connection to an upstream server must be established.",
                Apply::Pass($family, |l, d, r| l.exchange.connect_timeout = r.duration(&d.args[0]))),
            once(concat!($prefix, "_send_timeout"), HTTP_SERVER_LOCATION, (1, 1), "time", "60s",
                "The maximum time between two writes of a request to the upstream.",
                Apply::Pass($family, |l, d, r| l.exchange.send_timeout = r.duration(&d.args[0]))),
            once(concat!($prefix, "_read_timeout"), HTTP_SERVER_LOCATION, (1, 1), "time", "60s",
                "The maximum time between two reads of a response from the upstream.",
                Apply::Pass($family, |l, d, r| l.exchange.read_timeout = r.duration(&d.args[0]))),
            often(concat!($prefix, "_next_upstream"), HTTP_SERVER_LOCATION, (1, MANY),
                "error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | \
                non_idempotent | off …", "error timeout",
                "Sets the cases in which a request is passed to the next server. A request with a non-idempotent method that has been sent is not \
                passed on, unless `non_idempotent` is set.",
                Apply::Pass($family, |l, d, r| l.exchange.next_upstream = Some(failures::words(l.exchange.next_upstream, d, r)))),
            once(concat!($prefix, "_next_upstream_tries"), HTTP_SERVER_LOCATION, (1, 1), "number", "0",
                "The maximum number of servers that a request is passed to; 0 means all.",
                Apply::Pass($family, |l, d, r| {
                    l.exchange.next_upstream_tries =
                        r.number(&d.args[0], 0, u64::from(u32::MAX)).map(|tries| tries as u32);
                })),
            once(concat!($prefix, "_next_upstream_timeout"), HTTP_SERVER_LOCATION, (1, 1), "time", "0",
                "The time within which a request can be passed to the next server; 0 disables the limit.",
                Apply::Pass($family, |l, d, r| l.exchange.next_upstream_timeout = r.duration(&d.args[0]))),
            once(concat!($prefix, "_intercept_errors"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Applies `error_page` to upstream responses with a status of 300 or higher.",
                Apply::Pass($family, |l, d, r| l.exchange.intercept_errors = r.flag(&d.args[0]))),
            often(concat!($prefix, "_ignore_headers"), HTTP_SERVER_LOCATION, (1, MANY), "field …", "",
                "Ignores fields of upstream responses: X-Accel-Redirect, X-Accel-Expires, X-Accel-Limit-Rate, X-Accel-Buffering, X-Accel-Charset, \
                Expires, Cache-Control, Set-Cookie, Vary.",
                Apply::Pass($family, exchange::ignore_headers)).deciding(),
            once(concat!($prefix, "_bind"), HTTP_SERVER_LOCATION, (1, 2), "address [transparent] | off", "off",
                "Sets the local address of connections to the upstream, with or without a port. It may contain variables; if it is empty, the \
                operating system selects one. With `transparent`, it may be an address of another machine, such as `$remote_addr`. This requires \
                `user root` and routes that return the responses to this machine.",
                Apply::Pass($family, exchange::bind)),
            once(concat!($prefix, "_socket_keepalive"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Enables TCP keepalive (SO_KEEPALIVE) on connections to the upstream.",
                Apply::Pass($family, |l, d, r| l.exchange.socket_keepalive = r.flag(&d.args[0]))),
        ]
    };
}
pub(super) use rows;

macro_rules! held_rows {
    ($prefix:literal, $family:expr) => {
        [
            once(concat!($prefix, "_buffering"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Reads responses as fast as the upstream sends them, even if the client is slower.",
                Apply::Pass($family, |l, d, r| l.exchange.buffering = r.flag(&d.args[0]))),
            once(concat!($prefix, "_request_buffering"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Reads the whole request body before the request is passed to the upstream.",
                Apply::Pass($family, |l, d, r| l.exchange.request_buffering = r.flag(&d.args[0]))),
            once(concat!($prefix, "_buffers"), HTTP_SERVER_LOCATION, (2, 2), "number size", "8 4k",
                "The maximum amount of a response that is kept in memory, in addition to its head.",
                Apply::Pass($family, |l, d, r| l.exchange.buffers = r.pieces(&d.args, 2))),
            once(concat!($prefix, "_max_temp_file_size"), HTTP_SERVER_LOCATION, (1, 1), "size", "1024m",
                "The maximum size of a response's temporary file, which is used if the client is slower than the upstream; 0 disables it.",
                Apply::Pass($family, |l, d, r| {
                    l.exchange.max_temp_file_size = r.offset(&d.args[0]).map(|value| Placed { value, span: d.args[0].span })
                })),
            once(concat!($prefix, "_temp_path"), HTTP_SERVER_LOCATION, (1, 4), "path [level1 [level2 [level3]]]", "",
                concat!("Sets the directory for temporary files with responses. `user` must have access to it. If it is missing, it is created, but not \
                its parents. The levels are accepted without effect, because the files have no names. By default, this is `", $prefix, "_temp` below the \
                prefix if that exists, otherwise the first usable one of $TMPDIR, `/var/tmp`, `/tmp` and `/dev/shm`."),
                Apply::Pass($family, |l, d, r| l.exchange.temp_path = r.temp_path(&d.args))),
            once(concat!($prefix, "_ignore_client_abort"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Reads upstream responses to their end even if the client has closed the connection.",
                Apply::Pass($family, |l, d, r| l.exchange.ignore_client_abort = r.flag(&d.args[0]))),
            idle(concat!($prefix, "_busy_buffers_size"), HTTP_SERVER_LOCATION, (1, 1), "size",
                "The maximum size of buffers that are being sent while the response is still being read.",
                concat!("what has been read is sent on at once; ", $prefix, "_buffers is the bound")),
            idle(concat!($prefix, "_temp_file_write_size"), HTTP_SERVER_LOCATION, (1, 1), "size",
                "The maximum size of one write to a temporary file.",
                "separate threads write temporary files, so workers never wait for them"),
            idle(concat!($prefix, "_send_lowat"), HTTP_SERVER_LOCATION, (1, 1), "size",
                "The low-water mark of upstream sockets.",
                "Linux does not support it for sending"),
            once(concat!($prefix, "_pass_request_headers"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Passes the client's fields to the upstream. Fields that the location sets are always sent.",
                Apply::Pass($family, |l, d, r| l.exchange.passes_fields = r.flag(&d.args[0]))),
            once(concat!($prefix, "_pass_client_address"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Passes request fields with the client's address to the upstream: X-Forwarded-For, X-Real-IP, CF-Connecting-IP and similar. Fields \
                that the location sets are always sent.",
                Apply::Pass($family, |l, d, r| l.exchange.passes_address = r.flag(&d.args[0]))),
            once(concat!($prefix, "_pass_request_body"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
                "Passes the client's body to the upstream. If off, Content-Length is omitted too.",
                Apply::Pass($family, |l, d, r| l.exchange.passes_body = r.flag(&d.args[0]))),
            once(concat!($prefix, "_limit_rate"), HTTP_SERVER_LOCATION, (1, 1), "rate", "0",
                "The rate at which a buffered response is read from the upstream, in bytes per second; 0 disables the limit. The value may contain \
                variables.",
                Apply::Pass($family, |l, d, r| l.exchange.limit_rate = exchange::rate(&d.args[0], r))),
            once(concat!($prefix, "_force_ranges"), HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
                "Serves ranges of upstream responses regardless of their Accept-Ranges.",
                Apply::Pass($family, |l, d, r| l.exchange.force_ranges = r.flag(&d.args[0]))),
        ]
    };
}
pub(super) use held_rows;

/// In lower case; `None` after its error was reported.
pub(super) fn field_name(directive: &Directive, reading: &mut Reading<'_>) -> Option<String> {
    let word = &directive.args[0];
    is_field_name(word, reading).then(|| word.text.to_ascii_lowercase())
}

/// In bytes per second.
pub(super) fn rate(word: &Word, reading: &mut Reading<'_>) -> Option<RequestSize> {
    limit_rate::size(word, reading)
}

pub(super) fn bind(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let (word, parameter) = (&directive.args[0], directive.args.get(1));
    if word.text == "off" && parameter.is_none() {
        level.exchange.bind = Some(None);
        return;
    }
    if let Some(parameter) = parameter.filter(|parameter| parameter.text != "transparent") {
        reading
            .error(parameter.span, format!("invalid parameter \"{}\"", parameter.text))
            .help("write transparent, or nothing");
    }
    let address = reading.template(word);
    if address.as_literal().is_some_and(|text| local_address(text).is_none()) {
        reading
            .error(word.span, format!("invalid address \"{}\"", word.text))
            .help("write an address such as 192.0.2.1, 192.0.2.1:8000 or [2001:db8::1], or off");
        return;
    }
    level.exchange.bind = Some(Some(Bind { address, transparent: parameter.is_some() }));
}

pub(super) fn ignore_headers(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    const FIELDS: [(&str, Switch<IgnoreHeaders>); 9] = [
        ("X-Accel-Redirect", |ignore| ignore.x_accel_redirect = true),
        ("X-Accel-Expires", |ignore| ignore.x_accel_expires = true),
        ("X-Accel-Limit-Rate", |ignore| ignore.x_accel_limit_rate = true),
        ("X-Accel-Buffering", |ignore| ignore.x_accel_buffering = true),
        ("X-Accel-Charset", |ignore| ignore.x_accel_charset = true),
        ("Expires", |ignore| ignore.expires = true),
        ("Cache-Control", |ignore| ignore.cache_control = true),
        ("Set-Cookie", |ignore| ignore.set_cookie = true),
        ("Vary", |ignore| ignore.vary = true),
    ];
    let mut ignore = level.exchange.ignore_headers.map(|written| written.value).unwrap_or_default();
    for word in &directive.args {
        reading.choice(word, &FIELDS).into_iter().for_each(|switch_on| switch_on(&mut ignore));
    }
    level.exchange.ignore_headers = Some(Placed { value: ignore, span: directive.span });
}
