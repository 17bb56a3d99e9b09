//! A `rewrite`: what its expression finds in the path, and what it puts in place of path and query.

use super::condition::told;
use super::value;
use crate::admission::undecided_by;
use crate::failure;
use crate::request::{Arguments, Request};
use crate::route::capture;
use crate::shows::Shows;
use crate::variables::personal::shown_by;
use millstream_conf::model::{Goal, Level, Rewrite, Template, Then};
use millstream_wire::{masked, target};

pub(super) enum Replaced {
    Nothing,
    Uri(Then),
    Redirect(u16, Vec<u8>),
}

pub(super) fn apply(rule: &Rewrite, request: &mut Request) -> Result<Replaced, u16> {
    let uri = std::mem::take(&mut request.route.uri);
    let captured = capture(&rule.regex, &uri);
    let is_match = matches!(captured, Ok(Some(_)));
    if let Ok(Some(captured)) = captured {
        request.take_captures(captured, &uri, Shows::PATH | request.route.shows.path);
        request.route.uri = uri;
    } else {
        request.route.uri = uri;
        request.route.captures.get_mut().groups.clear();
        captured.map_err(|undecided| undecided_by(request, &undecided))?;
    }
    told(request, &rule.regex, is_match, || String::from_utf8_lossy(&request.route.uri).into_owned());
    if !is_match {
        return Ok(Replaced::Nothing);
    }
    request.descent.is_internal = true;
    request.route.is_rewritten = true;
    match &rule.goal {
        Goal::Redirect { status, url, has_query } => {
            let url = redirect(rule, url, *has_query, request);
            Ok(Replaced::Redirect(*status, url))
        }
        Goal::Uri { path, arguments, then } => {
            replace(rule, path, arguments.as_ref(), request)?;
            Ok(Replaced::Uri(*then))
        }
    }
}

fn redirect(rule: &Rewrite, url: &Template, has_query: bool, request: &Request) -> Vec<u8> {
    let mut made = Vec::new();
    target::relax(&value::of(url, request, true), &mut made);
    if rule.keeps_arguments
        && let Some(query) = request.query().filter(|query| !query.is_empty())
    {
        made.push(if has_query { b'&' } else { b'?' });
        made.extend_from_slice(query);
    }
    if request.location().settings.rewrite.log {
        let shown = String::from_utf8_lossy(&made);
        failure::log(request, Level::Notice, format_args!("rewritten redirect: \"{shown}\""));
    }
    made
}

fn replace(
    rule: &Rewrite,
    path: &Template,
    arguments: Option<&Template>,
    request: &mut Request,
) -> Result<(), u16> {
    let uri = value::of(path, request, false);
    request.route.shows.path |= shown_by(path, request);
    if let Some(template) = arguments {
        request.route.shows.query |= shown_by(template, request);
        let mut query = value::of(template, request, true);
        if rule.keeps_arguments
            && let Some(before) = request.query().filter(|before| !before.is_empty())
        {
            query.push(b'&');
            query.extend_from_slice(before);
        }
        request.route.arguments = Arguments::Replaced(query);
    } else if !rule.keeps_arguments {
        request.route.arguments = Arguments::Replaced(Vec::new());
    }
    request.route.uri = uri;
    if request.location().settings.rewrite.log {
        let (uri, query) = (&request.route.uri, request.query().unwrap_or_default());
        let (uri, query) = (String::from_utf8_lossy(uri), String::from_utf8_lossy(query));
        let query = masked::query(&query);
        failure::log(request, Level::Notice, format_args!("rewritten data: \"{uri}\", args: \"{query}\""));
    }
    if request.route.uri.is_empty() {
        failure::log(request, Level::Error, format_args!("the rewritten URI has a zero length"));
        return Err(500);
    }
    Ok(())
}
