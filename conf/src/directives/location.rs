//! Directives of locations: fixed answers, error pages, files and their types.
//!
//! The `location` blocks themselves are read by `locations`. Next: `millstream-server`'s `route` and `answer`.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Apply, HTTP_SERVER_LOCATION, MANY, Row, SERVER_LOCATION, idle, often, once};
use crate::inherit::Level;
use crate::model::{ErrorPage, ErrorPageStatus, Return, ReturnBody, Template, Types};
use crate::reading::Reading;
use crate::template;
use crate::tree::{Directive, Word};

/// The rows of this family.
pub const ROWS: &[Row] = &[
    often(
        "location",
        SERVER_LOCATION,
        (1, 2),
        "[ = | ~ | ~* | ^~ ] uri { … } | @name { … }",
        "",
        "Settings for a part of the URIs. `=` takes one path; the longest prefix wins over shorter ones; the first expression (`~`, \
         or `~*` without case) that fits wins over prefixes, unless the longest one was written with `^~`. `@name` is reached \
         by `error_page` only.",
        Apply::Block,
    ),
    often(
        "return",
        SERVER_LOCATION,
        (1, 2),
        "code [text] | code URL | URL",
        "",
        "Answers at once. A URL goes with 301, 302, 303, 307 and 308 (left out, it is empty); without a text the statuses from 400 on \
         get their built-in page or `error_page`, others an empty body. 444 closes the connection without an answer. In a server it \
         comes before any location. Of several the first is taken.",
        Apply::Level(returns),
    ),
    often(
        "error_page",
        HTTP_SERVER_LOCATION,
        (2, MANY),
        "code … [=[status]] uri",
        "",
        "What is answered for a status from 300 on: a path, an `@name` or a URL. `=200` changes the status, `=` alone takes the \
         page's own. A level that writes one has none of the level above.",
        Apply::Level(error_page),
    ),
    once(
        "root",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "path",
        "html",
        "The directory that files are served from, where a location has no `proxy_pass`.",
        Apply::Level(root),
    ),
    often(
        "index",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "file …",
        "index.html",
        "The files that stand for a directory; the first that is there is taken.",
        Apply::Level(index),
    ),
    often(
        "types",
        HTTP_SERVER_LOCATION,
        (0, 0),
        "{ type extension …; … }",
        "text/html html; image/gif gif; image/jpeg jpg;",
        "Media types by file extension.",
        Apply::Level(types),
    ),
    once(
        "default_type",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "type",
        "text/plain",
        "The media type of files whose extension says none, and of `return` with a text.",
        Apply::Level(|l, d, _| l.default_type = Some(d.args[0].text.as_str().into())),
    ),
    once(
        "status_zone",
        SERVER_LOCATION,
        (1, 1),
        "name | off",
        "",
        "Counts the requests under this name. Nested locations count where their outer one does, unless they say `off`.",
        Apply::Level(status_zone),
    ),
    idle(
        "types_hash_max_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "The largest hash table of media types.",
        "hash tables grow as they need to",
    ),
    idle(
        "types_hash_bucket_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "The bucket size of the hash table of media types.",
        "hash tables grow as they need to",
    ),
    idle(
        "open_file_cache",
        HTTP_SERVER_LOCATION,
        (1, 2),
        "max=number [inactive=time] | off",
        "Keeps files open between requests.",
        "cached answers are held in memory, so there are no files to keep open",
    ),
    idle(
        "open_file_cache_errors",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "Whether `open_file_cache` remembers failures.",
        "cached answers are held in memory, so there are no files to keep open",
    ),
    idle(
        "open_file_cache_min_uses",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "number",
        "How often a file must be used to stay open.",
        "cached answers are held in memory, so there are no files to keep open",
    ),
    idle(
        "open_file_cache_valid",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "How long an open file is not looked at again.",
        "cached answers are held in memory, so there are no files to keep open",
    ),
];

fn returns(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let first = &directive.args[0];
    let second = directive.args.get(1);
    let is_code = !first.text.is_empty() && first.text.bytes().all(|byte| byte.is_ascii_digit());
    let looks_like_url = ["http://", "https://", "$scheme"].iter().any(|start| first.text.starts_with(start));
    let parsed = if is_code {
        reading.number(first, 0, 999).map(|status| (status as u16, second))
    } else if second.is_none() && looks_like_url {
        Some((302, Some(first)))
    } else {
        reading.error(first.span, format!("invalid return code \"{}\"", first.text)).help(
            "write return 200 \"text\"; or return 301 https://example.com/; or return https://example.com/;",
        );
        None
    };
    let Some((status, text)) = parsed else { return };
    let text = text.map_or_else(|| Template::literal(""), |word| reading.template(word));
    let is_empty = text.parts.is_empty();
    // Without a text nginx sends the built-in page from 400 on, an empty Location with a redirect, and an empty body else.
    let body = match status {
        301 | 302 | 303 | 307 | 308 => ReturnBody::Url(text),
        0..200 | 204 | 304 | 400.. if is_empty => ReturnBody::None,
        _ => ReturnBody::Text(text),
    };
    // The second `return` of a block is never reached, in nginx as here.
    level.returns.get_or_insert(Return { status, body });
}

fn error_page(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (uri, rest) = directive.args.split_last().expect("the table asks for two words");
    let (answer, codes) = match rest.split_last() {
        Some((word, codes)) if word.text.starts_with('=') => (answer_status(word, reading), codes),
        _ => (Some(ErrorPageStatus::Keep), rest),
    };
    if codes.is_empty() {
        reading
            .error(directive.span, "error_page names no status")
            .help("write the statuses first, as in error_page 500 502 /error.html;");
    }
    let uri = reading.template(uri);
    for word in codes {
        let Some(status) = reading.number(word, 300, 599).map(|status| status as u16) else { continue };
        if status == 499 {
            reading
                .error(word.span, "invalid value \"499\"")
                .help("499 is a client that went away; no page can reach it");
            continue;
        }
        let answer = match (answer, status) {
            // nginx's own numbers for kinds of 400 never leave the server.
            (Some(ErrorPageStatus::Keep), 494..=497) => ErrorPageStatus::Is(400),
            (Some(answer), _) => answer,
            (None, _) => continue,
        };
        level.error_pages.get_or_insert_default().push(ErrorPage { status, answer, uri: uri.clone() });
    }
}

fn answer_status(word: &Word, reading: &mut Reading<'_>) -> Option<ErrorPageStatus> {
    let text = &word.text[1..];
    if text.is_empty() {
        return Some(ErrorPageStatus::FromPage);
    }
    let status = reading.number(&Reading::part(word, text), 100, 999)?;
    Some(ErrorPageStatus::Is(status as u16))
}

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
    level.root = Some(reading.template(&Reading::part(word, full.to_string_lossy())));
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
        level.index.get_or_insert_default().push(name);
    }
}

fn types(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let mut by_extension: HashMap<String, Arc<str>> =
        level.types.take().map(|types| types.by_extension.clone()).unwrap_or_default();
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
                    .help(format!("it was \"{before}\" before; the later one holds"));
            }
        }
    }
    level.types = Some(Arc::new(Types { by_extension }));
}

fn status_zone(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "off" {
        level.status_zone = Some(None);
    } else if template::is_literal(&word.text) {
        level.status_zone = Some(Some(reading.status_zone(&word.text)));
    } else {
        reading.without_variables(word, "a status_zone");
    }
}
