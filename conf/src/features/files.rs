//! Files: where they are, and which stands for a directory.
//!
//! Next: `millstream-server`'s `answer/file`, which serves them; `types`, what they are said to be.

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::level::settings;
use super::{Apply, Level, MANY, Row, idle, often, once};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;

settings! {
    /// `root`, `index` of a location.
    pub struct Files, FilesLevel(place, reading) {
        /// `root`.
        root: Template = Template::literal(&reading.path("html").to_string_lossy()),
        /// `index` names, first that exists.
        index: Vec<Template> = vec![Template::literal("index.html")],
    }
}

/// The rows of this feature.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("root", UP_TO_IF, (1, 1), "path", "html",
        "The directory that files are served from, where a location has no `proxy_pass`.",
        Apply::Level(root)),
    often("index", HTTP_SERVER_LOCATION, (1, MANY), "file …", "index.html",
        "The files that stand for a directory; the first that is there is taken.",
        Apply::Level(index)),
    idle("open_file_cache", HTTP_SERVER_LOCATION, (1, 2), "max=number [inactive=time] | off",
        "Keeps files open between requests.",
        "cached answers are held in memory, so there are no files to keep open"),
    idle("open_file_cache_errors", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Whether `open_file_cache` remembers failures.",
        "cached answers are held in memory, so there are no files to keep open"),
    idle("open_file_cache_min_uses", HTTP_SERVER_LOCATION, (1, 1), "number",
        "How often a file must be used to stay open.",
        "cached answers are held in memory, so there are no files to keep open"),
    idle("open_file_cache_valid", HTTP_SERVER_LOCATION, (1, 1), "time",
        "How long an open file is not looked at again.",
        "cached answers are held in memory, so there are no files to keep open"),
    idle("aio", HTTP_SERVER_LOCATION, (1, 1), "on | off | threads[=pool]",
        "Asynchronous reading of files.",
        "files are never read on a worker's loop in the first place"),
    idle("aio_write", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Asynchronous writing of files.",
        "files are never written on a worker's loop in the first place"),
    idle("directio", HTTP_SERVER_LOCATION, (1, 1), "size | off",
        "Reading of large files past the page cache.",
        "files are read through the page cache"),
    idle("directio_alignment", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The alignment for `directio`.",
        "files are read through the page cache"),
    idle("read_ahead", HTTP_SERVER_LOCATION, (1, 1), "size",
        "How far the kernel reads files ahead.",
        "the kernel's own choice stays"),
    idle("output_buffers", HTTP_SERVER_LOCATION, (2, 2), "number size",
        "Buffers for reading an answer from disk.",
        "files are read in pieces of a fixed size"),
];

fn root(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    for own in ["$document_root", "${document_root}", "$realpath_root", "${realpath_root}"] {
        if word.text.contains(own) {
            reading
                .error(word.span, format!("the {own} variable cannot be used in the \"root\" directive"))
                .help("it is what this directive sets; write a path");
            return;
        }
    }
    let trimmed = match word.text.trim_end_matches('/') {
        "" => "/",
        trimmed => trimmed,
    };
    let full = if trimmed.starts_with('$') { trimmed.into() } else { reading.path(trimmed) };
    level.files.root = Some(reading.template(&Reading::part(word, full.to_string_lossy())));
}

fn index(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    for word in &directive.args {
        if word.text.is_empty() {
            reading
                .error(word.span, "index \"\" in \"index\" directive is invalid")
                .help("write the name of a file");
            continue;
        }
        let name = reading.template(word);
        level.files.index.get_or_insert_default().push(name);
    }
}
