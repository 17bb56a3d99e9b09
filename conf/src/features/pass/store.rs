//! Answers kept as files which are not a cache: `proxy_store` and its kind.
//!
//! A location either stores or caches, as in nginx. Next: `cache`, the other one; `millstream-server`'s `content`,
//! which writes the files.

use super::{CommonLevel, sibling};
use crate::features::level::{Placed, settings};
use crate::features::templates::Templates;
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::{Directive, Word};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Store {
    #[default]
    Off,
    /// Under `root` and the URI.
    Root,
    Path(Template),
}

impl Templates for Store {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            Store::Path(path) => all.push(path),
            Store::Off | Store::Root => {}
        }
    }
}

impl From<Placed<Store>> for Store {
    fn from(placed: Placed<Store>) -> Store {
        placed.value
    }
}

settings! {
    pub struct Storing, StoreLevel(place, reading) {
        /// Responses of 200 are kept as files.
        place: Placed<Store> => Store = Placed::nowhere(Store::Off),
        mode: u32 = 0o600,
    }
}

macro_rules! rows {
    ($prefix:literal, $family:expr) => {
        [
            once(concat!($prefix, "_store"), HTTP_SERVER_LOCATION, (1, 1), "on | off | path", "off",
                "Saves responses as files that are never removed: with `on`, under `root` and the URI; otherwise, at the path. A location with this \
                directive does not cache.",
                Apply::Pass($family, store::store)),
            once(concat!($prefix, "_store_access"), HTTP_SERVER_LOCATION, (1, 3), "user:rw | group:rw | all:r …",
                "user:rw",
                "Sets the permissions of these files: read (`r`) or read and write (`rw`).",
                Apply::Pass($family, store::access)),
        ]
    };
}
pub(super) use rows;

pub(super) fn store(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let store = match word.text.as_str() {
        "off" => Store::Off,
        "" => {
            reading.error(word.span, "empty path").help("write on, off or a path such as /data/www$uri");
            return;
        }
        "on" => Store::Root,
        path if path.starts_with('$') => {
            reading.named_path(word, path, PathUse::Stored);
            Store::Path(reading.template(word))
        }
        path => {
            let full = reading.named_path(word, path, PathUse::Stored);
            Store::Path(reading.template(&Reading::part(word, full.to_string_lossy())))
        }
    };
    if store != Store::Off && level.cache.zone_at().is_some() {
        incompatible(directive, "cache", reading);
        return;
    }
    level.store.place = Some(Placed { value: store, span: directive.span });
}

/// Reports the second of two mutually exclusive directives.
pub(super) fn incompatible(directive: &Directive, other: &str, reading: &mut Reading<'_>) {
    let (this, other) = (&directive.name.text, sibling(directive, other));
    reading
        .error(directive.span, format!("\"{this}\" directive is incompatible with \"{other}\""))
        .help("responses are either cached or stored as files; keep one of the two");
}

pub(super) fn access(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    level.store.mode = mode(directive, reading);
}

/// Permissions as nginx writes them: `user:rw group:r`.
pub(in crate::features) fn mode(directive: &Directive, reading: &mut Reading<'_>) -> Option<u32> {
    // The owner's rights where no word names them.
    let mut user = 0o600;
    let mut mode = 0;
    for word in &directive.args {
        let (who, right) = word.text.split_once(':').unwrap_or_default();
        let shift = ["all", "group", "user"].iter().position(|known| *known == who);
        let right = [("r", 4), ("rw", 6)].iter().find(|(known, _)| *known == right);
        let (Some(shift), Some((_, right))) = (shift, right) else {
            wrong_access(word, reading);
            return None;
        };
        if who == "user" {
            user = 0;
        }
        mode |= right << (3 * shift);
    }
    Some(mode | user)
}

fn wrong_access(word: &Word, reading: &mut Reading<'_>) {
    reading
        .error(word.span, format!("invalid value \"{}\"", word.text))
        .help("write user:, group: or all:, each with rw or r, as in user:rw group:rw all:r");
}
