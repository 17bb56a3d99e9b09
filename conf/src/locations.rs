//! Reads server and location blocks: levels are inherited downwards, and each block becomes one location of the arena.
//!
//! Which location may stand in which is decided here, as nginx decides it. Before: `block`, `features/location`; next: `millstream-server`'s `route`.

use crate::advise;
use crate::block::{blocks, checked, inside, set};
use crate::features::context::Context;
use crate::features::listen::ServerDraft;
use crate::features::location::{methods, parse};
use crate::features::{Apply, Level, Row, acme, rewrite};
use crate::model::{
    Http, LimitExcept, Location, LocationId, LocationMatch, LocationTree, Server, ServerName,
};
use crate::reading::Reading;
use crate::source::Span;
use crate::tree::{Directive, Word};
use crate::zones;
use std::sync::Arc;

const MOST_NESTING: usize = 32;

/// Its draft keeps what `listeners` needs.
pub fn server(
    directive: &Directive,
    above: &Level,
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> ServerDraft {
    let rows = checked(inside(directive), Context::Server, reading);
    let mut draft = ServerDraft { span: directive.span, ..ServerDraft::default() };
    for (row, directive) in &rows {
        match row.apply {
            Apply::Server(apply) => apply(&mut draft, directive, reading),
            Apply::Block(Context::IfInLocation) => {
                condition(directive, Context::IfInServer, &mut draft.level, reading);
            }
            _ => set(&mut draft.level, row, directive, reading),
        }
    }
    if draft.names.is_empty() {
        draft.names.push((ServerName::Exact(String::new()), directive.span));
    }
    draft.level.valid_referers.stands_in(&draft.names);
    draft.level.inherit(above);
    let status_zone = draft.level.status_zone.take();
    let locations = tree(&rows, &draft.level, None, http, reading);
    let own =
        push(LocationMatch::Server, directive.span, LocationTree::default(), &draft.level, http, reading);
    let acme = acme::certificate(&draft, reading);
    let settings = draft.level.server_settings(reading);
    acme::check(&draft, settings.tls.as_ref(), reading);
    http.servers.push(Server {
        span: directive.span,
        name: draft.name.clone().unwrap_or_default(),
        names: draft.names.iter().map(|(name, _)| name.clone()).collect(),
        own,
        locations,
        settings,
        status_zone,
        acme,
    });
    draft
}

/// Puts a location into the arena, with everything that applies in it.
fn push(
    matches: LocationMatch,
    span: Span,
    nested: LocationTree,
    level: &Level,
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> LocationId {
    let mut settings = level.settings(&matches, reading);
    advise::location(level, &settings, reading);
    let in_zones = zones::apart(&mut settings, &reading.declared.cache_zones);
    let id = LocationId(http.locations.len() as u32);
    let numbers = (id.0 + 1..).map(LocationId);
    let zones: Arc<[_]> = in_zones.iter().map(|(name, _)| name.clone()).zip(numbers).collect();
    let mut add = |matches, nested, settings| {
        let (zones, faces) = (zones.clone(), Vec::new());
        http.locations.push(Location { matches, span, nested, settings, faces, zones, except: None });
    };
    add(matches.clone(), nested, settings);
    for (_, settings) in in_zones {
        add(matches.clone(), LocationTree::default(), settings);
    }
    id
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
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> LocationTree {
    let mut tree = LocationTree::default();
    let mut seen: Vec<(String, Span)> = Vec::new();
    for (_, directive) in blocks(rows, Context::Location) {
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
        let id = location(directive, matches, (&text, depth), above, http, reading);
        if !unusable {
            insert(&mut tree, id, http);
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
    (text, depth): (&str, usize),
    above: &Level,
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> LocationId {
    let rows = checked(inside(directive), Context::Location, reading);
    let mut level = Level::default();
    let (mut blocks, mut except) = (Vec::new(), None);
    for (row, directive) in &rows {
        match row.apply {
            Apply::Block(Context::IfInLocation) => {
                blocks.extend(condition(directive, Context::IfInLocation, &mut level, reading));
            }
            Apply::Block(Context::LimitExcept) => except = Some(limit_except(directive, reading)),
            _ => set(&mut level, row, directive, reading),
        }
    }
    advise::written(&level, rows.iter().map(|(_, directive)| *directive), reading);
    level.files.stands_in(&matches, directive.span, reading);
    level.inherit(above);
    let mut faces = settle(blocks, &matches, &mut level, http, reading);
    let except = except.map(|(methods, inner)| {
        let location = face(inner, &matches, directive.span, &level, http, reading);
        faces.push(location);
        LimitExcept { methods, location }
    });
    let nested = if depth < MOST_NESTING {
        tree(&rows, &level, Some(&Outer { matches: &matches, text, depth }), http, reading)
    } else {
        reading.error(directive.span, "locations are nested too deep").help("put them next to each other");
        LocationTree::default()
    };
    let id = push(matches, directive.span, nested, &level, http, reading);
    http.locations[id.0 as usize].except = except;
    faces.push(id);
    acquaint(faces, http);
    id
}

/// Tells each face of a location about the others, those for zones included.
fn acquaint(mut faces: Vec<LocationId>, http: &mut Http) {
    let in_zones = faces.iter().flat_map(|face| http.location(*face).zones.iter().map(|(_, id)| *id));
    let in_zones: Vec<LocationId> = in_zones.collect();
    faces.extend(in_zones);
    for face in &faces {
        let others = faces.iter().filter(|other| *other != face);
        http.locations[face.0 as usize].faces = others.copied().collect();
    }
}

struct Block {
    at: usize,
    level: Level,
    span: Span,
}

/// Its condition and rewriting directives go to the script around it; the rest is a level of its own.
fn condition(
    directive: &Directive,
    inner: Context,
    around: &mut Level,
    reading: &mut Reading<'_>,
) -> Option<Block> {
    let condition = rewrite::condition(directive, reading);
    let at = condition.map(|condition| around.rewrite.open(condition));
    let mut level = Level::default();
    std::mem::swap(&mut level.rewrite.script, &mut around.rewrite.script);
    for (row, directive) in checked(inside(directive), inner, reading) {
        set(&mut level, row, directive, reading);
    }
    std::mem::swap(&mut level.rewrite.script, &mut around.rewrite.script);
    let at = at?;
    around.rewrite.close(at);
    Some(Block { at, level, span: directive.span })
}

/// Puts the `if` blocks of a location into the arena. Each inherits what it leaves open, and who responds
/// unless it says so itself.
fn settle(
    blocks: Vec<Block>,
    matches: &LocationMatch,
    around: &mut Level,
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> Vec<LocationId> {
    let mut ids = Vec::new();
    for Block { at, level, span } in blocks {
        let id = face(level, matches, span, around, http, reading);
        around.rewrite.enters(at, id);
        ids.push(id);
    }
    ids
}

/// A block that is a location of its own: it inherits what it leaves open, and who responds, from the
/// enclosing one.
fn face(
    mut level: Level,
    matches: &LocationMatch,
    span: Span,
    around: &Level,
    http: &mut Http,
    reading: &mut Reading<'_>,
) -> LocationId {
    level.inherit(around);
    level.inherit_content(around, reading);
    push(matches.clone(), span, LocationTree::default(), &level, http, reading)
}

/// Returns the excepted methods, and what applies to the others.
fn limit_except(directive: &Directive, reading: &mut Reading<'_>) -> (Box<[Box<str>]>, Level) {
    let methods = methods(&directive.args, reading);
    let mut level = Level::default();
    for (row, directive) in checked(inside(directive), Context::LimitExcept, reading) {
        set(&mut level, row, directive, reading);
    }
    (methods, level)
}

fn insert(tree: &mut LocationTree, id: LocationId, http: &Http) {
    match &http.location(id).matches {
        LocationMatch::Exact(path) => tree.exact.push((path.clone(), id)),
        LocationMatch::Prefix { path, .. } => tree.prefixes.push((path.clone(), id)),
        LocationMatch::Regex(_) => tree.regexes.push(id),
        LocationMatch::Named(name) => tree.named.push((name.clone(), id)),
        LocationMatch::Server => {}
    }
}

/// Two named locations of one name are no error in nginx; the first is always taken.
fn duplicate(
    matches: &Option<LocationMatch>,
    text: &str,
    span: Span,
    first: Span,
    reading: &mut Reading<'_>,
) {
    let message = format!("duplicate location \"{text}\"");
    if matches!(matches, Some(LocationMatch::Named(_))) {
        let help = format!("the one at {} is used, this one never", reading.sources.locate(first));
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
        (_, LocationMatch::Named(_)) => format!("named location \"{text}\" can only be on the server level"),
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
    reading.error(span, message).help("put it next to the other location, in the server block");
}
