//! Reads server and location blocks: levels are inherited downwards, and each block becomes one location of the arena.
//!
//! Which location may stand in which is decided here, as nginx decides it. Next: `resolve`; `millstream-server`'s `route`.

use crate::block::{checked, inside, set};
use crate::directives::listen::ServerDraft;
use crate::directives::{Apply, Context, Row};
use crate::inherit::Level;
use crate::model::{
    AccessLog, Location, LocationId, LocationMatch, LocationTree, LogFile, LogFileId, Server, ServerName,
};
use crate::reading::Reading;
use crate::resolve;
use crate::source::Span;
use crate::tree::{Directive, Word};

/// How deep locations may stand in each other.
const MOST_NESTING: usize = 32;

/// Puts nginx's default access log where the http block writes none.
pub fn default_access_log(level: &mut Level, reading: &mut Reading<'_>) {
    if level.access_logs.is_some() {
        return;
    }
    let path = reading.path("logs/access.log");
    let files = &mut reading.http.log_files;
    let index = files.iter().position(|file| file.path == path).unwrap_or_else(|| {
        files.push(LogFile { path, buffer: None, flush: None, gzip: None });
        files.len() - 1
    });
    let format = reading.log_formats.first().cloned().expect("`combined` is made before anything is read");
    level.access_logs =
        Some(Some(vec![AccessLog { file: LogFileId(index as u32), format, condition: None }]));
}

/// Reads a server block; its draft keeps what `listeners` needs.
pub fn server(directive: &Directive, above: &Level, reading: &mut Reading<'_>) -> ServerDraft {
    let rows = checked(inside(directive), Context::Server, reading);
    let mut draft = ServerDraft { span: directive.span, ..ServerDraft::default() };
    for (row, directive) in &rows {
        match row.apply {
            Apply::Server(apply) => apply(&mut draft, directive, reading),
            _ => set(&mut draft.level, row, directive, reading),
        }
    }
    if draft.names.is_empty() {
        draft.names.push((ServerName::Exact(String::new()), directive.span));
    }
    draft.level.inherit(above);
    let status_zone = draft.level.status_zone.take().flatten();
    let tree = tree(&rows, &draft.level, None, reading);
    let settings = resolve::settings(&draft.level, &LocationMatch::Server, reading);
    let own = push(
        Location {
            matches: LocationMatch::Server,
            span: directive.span,
            nested: LocationTree::default(),
            settings,
        },
        reading,
    );
    let level = &draft.level;
    let server = Server {
        span: directive.span,
        name: draft.name.clone().unwrap_or_default(),
        names: draft.names.iter().map(|(name, _)| name.clone()).collect(),
        own,
        locations: tree,
        tls: resolve::tls(level, reading),
        status_zone,
        client_header_timeout: level.client_header_timeout.unwrap_or(std::time::Duration::from_secs(60)),
        client_header_buffer_size: level.client_header_buffer_size.unwrap_or(1024),
        large_client_header_buffers: level.large_client_header_buffers.unwrap_or((4, 8192)),
        merge_slashes: level.merge_slashes.unwrap_or(true),
    };
    reading.http.servers.push(server);
    draft
}

fn push(location: Location, reading: &mut Reading<'_>) -> LocationId {
    reading.http.locations.push(location);
    LocationId(reading.http.locations.len() as u32 - 1)
}

/// The location that a block stands in.
struct Outer<'a> {
    matches: &'a LocationMatch,
    text: &'a str,
    depth: usize,
}

fn tree(
    rows: &[(&'static Row, &Directive)],
    above: &Level,
    outer: Option<&Outer<'_>>,
    reading: &mut Reading<'_>,
) -> LocationTree {
    let mut tree = LocationTree::default();
    let mut seen: Vec<(String, Span)> = Vec::new();
    for (_, directive) in rows.iter().filter(|(row, _)| row.name == "location") {
        let matches = parse(&directive.args, directive.span, reading);
        let text = text(&matches, &directive.args);
        let key = key(&matches, &text);
        let first = seen.iter().find(|(known, _)| key.as_ref() == Some(known)).map(|(_, first)| *first);
        if let Some(first) = first {
            duplicate(&matches, &text, directive.span, first, reading);
        }
        seen.extend(key.map(|key| (key, directive.span)));
        let depth = outer.map_or(0, |outer| outer.depth + 1);
        if let (Some(outer), Some(matches)) = (outer, &matches) {
            may_stand_in(outer, matches, &text, directive.span, reading);
        }
        // A location whose own words are wrong is read all the same, for the errors in its block.
        let unusable = matches.is_none() || first.is_some();
        let matches = matches.unwrap_or(LocationMatch::Server);
        let id = location(directive, matches, &text, depth, above, reading);
        if !unusable {
            insert(&mut tree, id, reading);
        }
    }
    tree.exact.sort();
    tree.prefixes.sort();
    tree.named.sort();
    tree
}

fn location(
    directive: &Directive,
    matches: LocationMatch,
    text: &str,
    depth: usize,
    above: &Level,
    reading: &mut Reading<'_>,
) -> LocationId {
    let rows = checked(inside(directive), Context::Location, reading);
    let mut level = Level::default();
    for (row, directive) in &rows {
        set(&mut level, row, directive, reading);
    }
    level.inherit(above);
    if level.status_zone.is_none() {
        level.status_zone = above.status_zone;
    }
    let nested = if depth < MOST_NESTING {
        tree(&rows, &level, Some(&Outer { matches: &matches, text, depth }), reading)
    } else {
        reading.error(directive.span, "locations are nested too deep").help("put them beside each other");
        LocationTree::default()
    };
    let settings = resolve::settings(&level, &matches, reading);
    push(Location { matches, span: directive.span, nested, settings }, reading)
}

fn insert(tree: &mut LocationTree, id: LocationId, reading: &Reading<'_>) {
    match &reading.http.location(id).matches {
        LocationMatch::Exact(path) => tree.exact.push((path.clone(), id)),
        LocationMatch::Prefix { path, .. } => tree.prefixes.push((path.clone(), id)),
        LocationMatch::Regex(_) => tree.regexes.push(id),
        LocationMatch::Named(name) => tree.named.push((name.clone(), id)),
        LocationMatch::Server => {}
    }
}

/// Understands the words of a `location`: the modifier may stand apart or at the front of the path.
fn parse(args: &[Word], span: Span, reading: &mut Reading<'_>) -> Option<LocationMatch> {
    let prefix = |path: &str, no_regex| Some(LocationMatch::Prefix { path: path.to_owned(), no_regex });
    if let [modifier, word] = args {
        let path = word.text.as_str();
        return match modifier.text.as_str() {
            "=" => Some(LocationMatch::Exact(path.to_owned())),
            "^~" => prefix(path, true),
            "~" => reading.regex(word, path, false).map(LocationMatch::Regex),
            "~*" => reading.regex(word, path, true).map(LocationMatch::Regex),
            other => {
                reading
                    .error(modifier.span, format!("invalid location modifier \"{other}\""))
                    .help("the modifiers are =, ^~, ~ and ~*; a path with spaces stands in quotes");
                None
            }
        };
    }
    let Some(word) = args.first() else {
        reading.error(span, "a location needs a path").help("write location / { … }");
        return None;
    };
    let text = word.text.as_str();
    if let Some(path) = text.strip_prefix('=') {
        return Some(LocationMatch::Exact(path.to_owned()));
    }
    if let Some(path) = text.strip_prefix("^~") {
        return prefix(path, true);
    }
    if let Some(source) = text.strip_prefix("~*") {
        return reading.regex(word, source, true).map(LocationMatch::Regex);
    }
    if let Some(source) = text.strip_prefix('~') {
        return reading.regex(word, source, false).map(LocationMatch::Regex);
    }
    if text.starts_with('@') {
        return Some(LocationMatch::Named(text.to_owned()));
    }
    prefix(text, false)
}

/// Two named locations of one name are no error in nginx; the first one is always taken.
fn duplicate(
    matches: &Option<LocationMatch>,
    text: &str,
    span: Span,
    first: Span,
    reading: &mut Reading<'_>,
) {
    let message = format!("duplicate location \"{text}\"");
    if matches!(matches, Some(LocationMatch::Named(_))) {
        let help = format!("the one at {} is taken, this one never", reading.sources.locate(first));
        reading.diagnostics.warning(span, message).help(help);
    } else {
        reading.duplicate(span, message, first);
    }
}

fn text(matches: &Option<LocationMatch>, args: &[Word]) -> String {
    match matches {
        Some(LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. }) => path.clone(),
        Some(LocationMatch::Regex(expression)) => expression.source.clone(),
        _ => args.last().map(|word| word.text.clone()).unwrap_or_default(),
    }
}

/// What two locations of one level may not share; expressions may be repeated.
fn key(matches: &Option<LocationMatch>, text: &str) -> Option<String> {
    match matches.as_ref()? {
        LocationMatch::Exact(_) => Some(format!("={text}")),
        LocationMatch::Prefix { .. } => Some(format!("^{text}")),
        LocationMatch::Named(_) => Some(text.to_owned()),
        LocationMatch::Regex(_) | LocationMatch::Server => None,
    }
}

fn may_stand_in(
    outer: &Outer<'_>,
    matches: &LocationMatch,
    text: &str,
    span: Span,
    reading: &mut Reading<'_>,
) {
    let message = match (outer.matches, matches) {
        (LocationMatch::Exact(_), _) => {
            format!("location \"{text}\" cannot be inside the exact location \"{}\"", outer.text)
        }
        (LocationMatch::Named(_), _) => {
            format!("location \"{text}\" cannot be inside the named location \"{}\"", outer.text)
        }
        (_, LocationMatch::Named(_)) => format!("named location \"{text}\" can be on the server level only"),
        (LocationMatch::Prefix { path, .. }, LocationMatch::Exact(_) | LocationMatch::Prefix { .. })
            if !text.starts_with(path.as_str()) =>
        {
            format!("location \"{text}\" is outside location \"{}\"", outer.text)
        }
        (LocationMatch::Regex(_), LocationMatch::Exact(_) | LocationMatch::Prefix { .. }) => {
            format!("location \"{text}\" is outside location \"{}\"", outer.text)
        }
        _ => return,
    };
    reading.error(span, message).help("put it beside the other location, in the server block");
}
