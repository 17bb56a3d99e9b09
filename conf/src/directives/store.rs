//! Directives that keep answers as files which are not a cache: `proxy_store`.
//!
//! A location either stores or caches, as in nginx. Next: `proxy_cache`, the other one; `millstream-server`'s `answer`,
//! which writes the files.

use super::{Apply, HTTP_SERVER_LOCATION, Row, once};
use crate::inherit::Level;
use crate::model::Store;
use crate::reading::Reading;
use crate::tree::Directive;

/// The rows of this family.
pub const ROWS: &[Row] = &[
    once(
        "proxy_store",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off | path",
        "off",
        "Keeps answers as files that nothing removes: `on` where `root` and the URI say, else at the path. A location that stores \
         does not cache.",
        Apply::Level(store),
    ),
    once(
        "proxy_store_access",
        HTTP_SERVER_LOCATION,
        (1, 3),
        "user:rw | group:rw | all:r …",
        "user:rw",
        "Who may read (`r`) or read and write (`rw`) these files.",
        Apply::Level(access),
    ),
];

fn store(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let store = match word.text.as_str() {
        "off" => Store::Off,
        "" => {
            reading.error(word.span, "empty path").help("write on, off or a path such as /data/www$uri");
            return;
        }
        "on" => Store::Root,
        path if path.starts_with('$') => Store::Path(reading.template(word)),
        path => {
            let full = reading.path(path);
            Store::Path(reading.template(&Reading::part(word, full.to_string_lossy())))
        }
    };
    if store != Store::Off && matches!(level.proxy_cache, Some((Some(_), _))) {
        incompatible(directive, "proxy_store", "proxy_cache", reading);
        return;
    }
    level.proxy_store = Some((store, directive.span));
}

/// Reports the second of the two directives that exclude each other.
pub(super) fn incompatible(directive: &Directive, this: &str, other: &str, reading: &mut Reading<'_>) {
    reading
        .error(directive.span, format!("\"{this}\" directive is incompatible with \"{other}\""))
        .help("answers are either cached or stored as files; keep one of the two");
}

fn access(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    // The owner's rights where no word names them.
    let mut user = 0o600;
    let mut mode = 0;
    for word in &directive.args {
        let shift = match word.text.split_once(':') {
            Some(("user", _)) => 6,
            Some(("group", _)) => 3,
            Some(("all", _)) => 0,
            _ => return wrong_access(word, reading),
        };
        let right = match word.text.split_once(':') {
            Some((_, "rw")) => 6,
            Some((_, "r")) => 4,
            _ => return wrong_access(word, reading),
        };
        if shift == 6 {
            user = 0;
        }
        mode |= right << shift;
    }
    level.proxy_store_access = Some(mode | user);
}

fn wrong_access(word: &crate::tree::Word, reading: &mut Reading<'_>) {
    reading
        .error(word.span, format!("invalid value \"{}\"", word.text))
        .help("write user:, group: or all:, each with rw or r, as in user:rw group:rw all:r");
}
