//! How a request's body is read and where it is held.
//!
//! Next: `millstream-server`'s `client/body` and `exchange/request_body`.

use std::time::Duration;

use super::context::{HTTP_SERVER, HTTP_SERVER_LOCATION};
use super::level::settings;
use super::templates::without_templates;
use super::{Apply, MANY, Row, idle, often, once};
use crate::reading::TempPath;
use crate::template::Template;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFileOnly {
    Off,
    /// The files are removed with their requests.
    Clean,
    /// The files stay.
    On,
}

without_templates!(InFileOnly);

settings! {
    pub struct ClientBody, ClientBodyLevel(place, reading) {
        /// Between two reads.
        timeout: Duration = Duration::from_secs(60),
        /// 0 = no limit.
        max_size: u64 = 1024 * 1024,
        /// A larger buffered body goes to a file.
        buffer_size: usize = 16 * 1024,
        temp_path: TempPath = reading.default_temp_path("client_body_temp"),
        in_file_only: InFileOnly = InFileOnly::Off,
        /// If one holds, the body is read before anything is decided.
        early_read: Vec<Template> = Vec::new(),
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("client_body_timeout", HTTP_SERVER_LOCATION, (1, 1), "time", "60s",
        "The maximum time between two reads of a request body. After this time, the client gets 408.",
        Apply::Level(|l, d, r| l.client_body.timeout = r.duration(&d.args[0]))),
    once("client_max_body_size", HTTP_SERVER_LOCATION, (1, 1), "size", "1m",
        "The maximum size of a request body; a larger one results in 413. 0 disables the limit. If the length is known, each location that is \
        found for the URI checks it, also after a `rewrite` or an internal redirect; a named location does not. A body without a length is checked \
        by the location that reads it.",
        Apply::Level(|l, d, r| l.client_body.max_size = r.offset(&d.args[0]))),
    once("client_body_buffer_size", HTTP_SERVER_LOCATION, (1, 1), "size", "16k",
        "The part of a buffered request body that is kept in memory. A larger body is written to a file.",
        Apply::Level(|l, d, r| l.client_body.buffer_size = r.memory_size(&d.args[0]))),
    once("client_body_temp_path", HTTP_SERVER_LOCATION, (1, 4), "path [level1 [level2 [level3]]]", "",
        "Sets the directory for temporary files with request bodies. `user` must have access to it. If it is missing, it is created, but not its \
        parents. The levels are accepted without effect, because the files have no names. By default, this is `client_body_temp` below the prefix if \
        that exists, otherwise the first usable one of $TMPDIR, `/var/tmp`, `/tmp` and `/dev/shm`.",
        Apply::Level(|l, d, r| l.client_body.temp_path = r.temp_path(&d.args))),
    once("client_body_in_file_only", HTTP_SERVER_LOCATION, (1, 1), "on | clean | off", "off",
        "Saves every buffered request body in a file, whose name is in `$request_body_file`. With `clean`, the file is removed after the request; \
        with `on`, it is kept.",
        Apply::Level(|l, d, r| {
            use InFileOnly::{Clean, Off, On};
            l.client_body.in_file_only = r.choice(&d.args[0], &[("on", On), ("clean", Clean), ("off", Off)]);
        })),
    often("client_body_early_read", HTTP_SERVER, (1, MANY), "string …", "",
        "Reads the whole request body before the request is processed if one of the strings is neither empty nor `0`. Conditions can then use \
        variables such as `$request_body`. Reading is subject to the server's settings, and also to the `client_max_body_size` of the location.",
        Apply::Level(|l, d, r| {
            let strings = d.args.iter().map(|word| r.template(word));
            l.client_body.early_read.get_or_insert_default().extend(strings);
        })),
    idle("client_body_in_single_buffer", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Stores a request body in one buffer.",
        "a body in memory is always in one buffer"),
];
