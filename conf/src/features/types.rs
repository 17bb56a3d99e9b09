//! Media types by file extension.
//!
//! Next: `millstream-server`'s `content/media_type`.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::templates::without_templates;
use super::{Apply, Feature, Level, Place, Row, idle, often, once};
use crate::reading::Reading;
use crate::tree::Directive;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Types {
    /// File extension in lower case → media type.
    pub by_extension: Arc<HashMap<String, Arc<str>>>,
    pub default: Arc<str>,
}

without_templates!(Types);

level! {
    pub struct TypesLevel {
        by_extension: Arc<HashMap<String, Arc<str>>>,
        default: Arc<str>,
    }
}

impl Feature for TypesLevel {
    type Settings = Types;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Types {
        Types {
            by_extension: self.by_extension.clone().unwrap_or_else(default_types),
            default: self.default.clone().unwrap_or_else(|| "text/plain".into()),
        }
    }
}

/// nginx's media types without a `types` block.
fn default_types() -> Arc<HashMap<String, Arc<str>>> {
    let pairs = [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];
    Arc::new(pairs.into_iter().map(|(extension, media)| (extension.to_owned(), media.into())).collect())
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("types", HTTP_SERVER_LOCATION, (0, 0), "{ type extension …; … }",
        "text/html html; image/gif gif; image/jpeg jpg;",
        "Maps file extensions to media types.",
        Apply::Lines(types)),
    once("default_type", HTTP_SERVER_LOCATION, (1, 1), "type", "text/plain",
        "Sets the media type of files with an unknown extension, and of the text of `return`.",
        Apply::Level(|l, d, _| l.types.default = Some(d.args[0].text.as_str().into()))),
    idle("types_hash_max_size", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The maximum size of the hash table of media types.",
        "hash tables grow as needed"),
    idle("types_hash_bucket_size", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The bucket size of the hash table of media types.",
        "hash tables grow as needed"),
];

fn types(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let by_extension = Arc::make_mut(level.types.by_extension.get_or_insert_default());
    for entry in directive.block.iter().flatten() {
        if entry.block.is_some() {
            reading
                .error(entry.span, format!("\"{}\" cannot have a block here", entry.name.text))
                .help("write a media type and its extensions, as in text/html html htm;");
            continue;
        }
        let media_type: Arc<str> = entry.name.text.as_str().into();
        for word in &entry.args {
            let before = by_extension.insert(word.text.to_ascii_lowercase(), media_type.clone());
            if let Some(before) = before.filter(|before| *before != media_type) {
                reading
                    .diagnostics
                    .warning(word.span, format!("duplicate extension \"{}\"", word.text))
                    .help(format!("it was \"{before}\" before; the later one is used"));
            }
        }
    }
}
