//! Files: where they are (`root`, `alias`), and which stands for a directory.
//!
//! Next: `millstream-server`'s `content/file`, which serves them; `types`, what they are said to be.

use super::context::{HTTP_SERVER_LOCATION, LOCATION, UP_TO_IF};
use super::level::settings;
use super::location::LocationMatch;
use super::templates::{record, without_templates};
use super::{Apply, Level, MANY, Row, idle, often, once};
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::source::Span;
use crate::template::Template;
use crate::tree::Directive;

settings! {
    pub struct Files, FilesLevel(place, reading) {
        root: Root = Root {
            path: Template::literal(&reading.path("html").to_string_lossy()),
            prefix: String::new(),
            replaces: Replaces::Nothing,
        },
        index: Vec<Template> = vec![Template::literal("index.html")],
        log_not_found: bool = true,
    }
}

record! {
    /// Inherited as it is: an `alias` replaces the name of its own location.
    pub struct Root {
        pub path: Template,
        /// Base of a path that starts with a variable and turns out to be relative; ends in a slash.
        pub prefix: String,
        pub replaces: Replaces,
    }
}

/// What a path of the configuration replaces of a URI; the rest is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    Nothing,
    /// The name of the location, of this many bytes.
    Name(usize),
    /// An `alias` of a location with an expression is the whole path of the file.
    Whole,
}

without_templates!(Replaces);

impl FilesLevel {
    /// Sets the location that an `alias` of this level is for.
    pub fn stands_in(&mut self, matches: &LocationMatch, span: Span, reading: &mut Reading<'_>) {
        let Some(Root { replaces: replaces @ Replaces::Name(_), .. }) = &mut self.root else { return };
        *replaces = match matches {
            LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => Replaces::Name(path.len()),
            LocationMatch::Regex(_) => Replaces::Whole,
            LocationMatch::Server => Replaces::Nothing,
            LocationMatch::Named(_) => {
                reading
                    .error(span, "the \"alias\" directive cannot be used inside the named location")
                    .help("a named location has no path to replace; write root");
                return;
            }
        };
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("root", UP_TO_IF, (1, 1), "path", "html",
        "Sets the directory from which files are served.",
        Apply::Level(|l, d, r| place(l, d, Replaces::Nothing, r))),
    once("alias", LOCATION, (1, 1), "path", "",
        "Sets the path that replaces the location's prefix in a URI. In a location with a regular expression, it is the whole path of the file and \
        may contain captures. A path that would lead out of it is rejected.",
        Apply::Level(|l, d, r| place(l, d, Replaces::Name(0), r))),
    often("index", HTTP_SERVER_LOCATION, (1, MANY), "file …", "index.html",
        "Sets the files that are served for a directory. The first that exists is used.",
        Apply::Level(index)),
    once("log_not_found", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Reports missing files in the error log.",
        Apply::Level(|l, d, r| l.files.log_not_found = r.flag(&d.args[0]))),
    idle("aio", HTTP_SERVER_LOCATION, (1, 1), "on | off | threads[=pool]",
        "Reads files asynchronously.",
        "workers never wait for disk reads"),
    idle("aio_write", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Writes files asynchronously.",
        "workers never wait for disk writes"),
    idle("directio", HTTP_SERVER_LOCATION, (1, 1), "size | off",
        "Reads large files without the page cache.",
        "files are read through the page cache"),
    idle("directio_alignment", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The alignment for `directio`.",
        "files are read through the page cache"),
    idle("read_ahead", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The amount of data that the kernel reads ahead.",
        "the kernel's default is used"),
    idle("output_buffers", HTTP_SERVER_LOCATION, (2, 2), "number size",
        "Buffers for reading a response from disk.",
        "files are read in blocks of a fixed size"),
];

fn place(level: &mut Level, directive: &Directive, replaces: Replaces, reading: &mut Reading<'_>) {
    let (name, word) = (&directive.name.text, &directive.args[0]);
    if let Some(earlier) = &level.files.root {
        let earlier = if earlier.replaces == Replaces::Nothing { "root" } else { "alias" };
        let message =
            format!("\"{name}\" directive is duplicate, \"{earlier}\" directive was specified earlier");
        reading.error(directive.span, message).help("keep one of them");
        return;
    }
    for own in ["$document_root", "${document_root}", "$realpath_root", "${realpath_root}"] {
        if word.text.contains(own) {
            let message = format!("the {own} variable cannot be used in the \"{name}\" directive");
            reading.error(word.span, message).help("it is what this directive sets; write a path");
            return;
        }
    }
    let written = match (replaces, word.text.trim_end_matches('/')) {
        (Replaces::Nothing, "") => "/",
        (Replaces::Nothing, trimmed) => trimmed,
        _ => word.text.as_str(),
    };
    let below = reading.named_path(word, written, PathUse::Served);
    let full = if written.starts_with('$') { written.into() } else { below };
    level.files.root = Some(Root {
        path: reading.template(&Reading::part(word, full.to_string_lossy())),
        prefix: reading.path("").to_string_lossy().into_owned(),
        replaces,
    });
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
