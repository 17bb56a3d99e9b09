//! `dav_methods`: methods by which clients change the files of a location (RFC 4918).
//!
//! Next: `millstream-server`'s `content/dav`, which changes them.

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::pass::store;
use super::templates::without_templates;
use super::{Apply, Level, MANY, Row, often, once};
use crate::reading::Reading;
use crate::tree::Directive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DavMethod {
    Put,
    Delete,
    Mkcol,
    Copy,
    Move,
}

without_templates!(DavMethod);

settings! {
    pub struct Dav, DavLevel(place, reading) {
        methods: Vec<DavMethod> = Vec::new(),
        /// PUT creates the directories of its path.
        create_full_put_path: bool = false,
        /// Least number of path elements of a DELETE.
        min_delete_depth: u64 = 0,
        mode: u32 = 0o600,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("dav_methods", HTTP_SERVER_LOCATION, (1, MANY), "off | method …", "off",
        "Allows clients to change files with these methods: `PUT`, `DELETE`, `MKCOL`, `COPY`, `MOVE`. A file gets its name only when it is complete. \
        The target of COPY and MOVE (`Destination`) is a path under the `root` or `alias` of the same location; the rules of other locations do not \
        apply to it. Restrict access to these methods, for example with `limit_except`.",
        Apply::Level(methods)),
    once("create_full_put_path", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Creates all missing directories on the path of a PUT. If off, the directory must exist.",
        Apply::Level(|l, d, r| l.dav.create_full_put_path = r.flag(&d.args[0]))),
    once("min_delete_depth", HTTP_SERVER_LOCATION, (1, 1), "number", "0",
        "Rejects a DELETE (409) if its path has fewer elements than this number.",
        Apply::Level(|l, d, r| l.dav.min_delete_depth = r.number(&d.args[0], 0, u64::from(u32::MAX)))),
    once("dav_access", HTTP_SERVER_LOCATION, (1, 3), "user:rw | group:rw | all:r …", "user:rw",
        "Sets the permissions of files and directories that clients create: read (`r`) or read and write (`rw`). Read permission on a directory \
        includes search permission.",
        Apply::Level(|l, d, r| l.dav.mode = store::mode(d, r))),
];

fn methods(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    use DavMethod::{Copy, Delete, Mkcol, Move, Put};
    let choices = [
        ("off", None),
        ("PUT", Some(Put)),
        ("DELETE", Some(Delete)),
        ("MKCOL", Some(Mkcol)),
        ("COPY", Some(Copy)),
        ("MOVE", Some(Move)),
    ];
    let methods = level.dav.methods.get_or_insert_default();
    for word in &directive.args {
        if let Some(method) = reading.choice(word, &choices) {
            methods.extend(method);
        }
    }
}
