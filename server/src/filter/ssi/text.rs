//! What the values of parameters mean: texts with variables, conditions, URIs.
//!
//! Variables are looked up by name, those of the page first. Before: `command`; next: `ssi`.

use super::decoded;
use crate::request::Request;
use crate::variables::{self, Found};
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::regular_expression;
use millstream_conf::source::Span;

/// A variable's value; the name may be in any case.
pub(super) fn variable(request: &Request, name: &[u8]) -> Option<Vec<u8>> {
    let name = name.to_ascii_lowercase();
    if let Some(sheet) = request.sheet.get()
        && let Some(value) = sheet.page.value(&name)
    {
        return Some(value);
    }
    let mut value = Vec::new();
    let found = variables::named(std::str::from_utf8(&name).ok()?, request, &mut value);
    (found == Found::Value).then_some(value)
}

/// A text with its variables and without its escapes.
pub(super) fn evaluate(request: &Request, text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'$' => {
                let (name, behind) = reference(behind, text)?;
                rest = behind;
                out.extend(variable(request, name).unwrap_or_default());
            }
            b'\\' => {
                if let Some((&escaped, behind)) = rest.split_first() {
                    rest = behind;
                    if !matches!(escaped, b'\\' | b'\'' | b'"' | b'$') {
                        out.push(b'\\');
                    }
                    out.push(escaped);
                }
            }
            _ => out.push(byte),
        }
    }
    Ok(out)
}

/// The name behind a dollar, and what follows it.
fn reference<'t>(behind: &'t [u8], whole: &[u8]) -> Result<(&'t [u8], &'t [u8]), String> {
    let (is_braced, start) = match behind.strip_prefix(b"{") {
        Some(inner) => (true, inner),
        None => (false, behind),
    };
    let length = start.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let (name, rest) = start.split_at(length);
    let rest = match (is_braced, rest.strip_prefix(b"}")) {
        (false, _) => rest,
        (true, Some(rest)) => rest,
        (true, None) => {
            let name = String::from_utf8_lossy(name);
            return Err(format!("the closing bracket in \"{name}\" variable is missing"));
        }
    };
    if name.is_empty() {
        return Err(format!("invalid variable name in \"{}\"", String::from_utf8_lossy(whole)));
    }
    Ok((name, rest))
}

/// Whether a condition holds: a text that is not empty, or two that are compared, or one with an expression.
pub(super) fn holds(request: &Request, condition: &[u8]) -> Result<bool, String> {
    let invalid = || format!("invalid expression in \"{}\"", String::from_utf8_lossy(condition));
    let is_of_left = |byte: &&u8| byte.is_ascii_alphanumeric() || b"${}_\"'".contains(byte);
    let (left, rest) = condition.split_at(condition.iter().take_while(is_of_left).count());
    // As in nginx, what stands on the left is in lower case.
    let left = evaluate(request, &left.to_ascii_lowercase())?;
    let rest = trimmed(rest);
    if rest.is_empty() {
        return Ok(!left.is_empty());
    }
    let (is_negated, right) = match rest {
        [b'=', right @ ..] => (false, trimmed(right)),
        [b'!', b'=', right @ ..] => (true, trimmed(right)),
        _ => return Err(invalid()),
    };
    let is_equal = match right {
        [b'/', inner @ .., b'/'] => matches(request, &evaluate(request, inner)?, &left)?,
        [b'/', _, ..] => return Err(invalid()),
        [b'\\', slash @ b'/', rest @ ..] if !rest.is_empty() => {
            left == evaluate(request, &[&[*slash], rest].concat())?
        }
        text => left == evaluate(request, text)?,
    };
    Ok(is_equal != is_negated)
}

fn trimmed(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
    &text[spaces..]
}

/// Whether an expression matches; what it captures is the page's from then on.
fn matches(request: &Request, expression: &[u8], text: &[u8]) -> Result<bool, String> {
    let source = std::str::from_utf8(expression).map_err(|_| "a regular expression is no text".to_owned())?;
    let mut found = Diagnostics::default();
    let Some(regex) = regular_expression::compile(source, false, Span::default(), &mut found) else {
        return Err(format!("invalid regular expression \"{source}\""));
    };
    let captured = regex
        .compiled
        .captures(text)
        .map_err(|_| format!("regular expression \"{source}\" reached its backtracking limit"))?;
    let Some(captured) = captured else { return Ok(false) };
    let page = &request.sheet().page;
    let group = |at: usize| captured.get(at).map_or(&b""[..], |group| group.as_bytes());
    for (name, at) in &regex.names {
        let name = name.to_ascii_lowercase();
        page.set(name.as_bytes(), group(*at).to_vec()).map_err(super::no_room)?;
    }
    page.capture((0..captured.len().min(10)).map(|at| group(at).to_vec()).collect());
    Ok(true)
}

/// Path, decoded, and query of a URI that does not go up.
pub(super) fn safe(uri: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
    let unsafe_uri = || format!("unsafe URI \"{}\" was detected", String::from_utf8_lossy(uri));
    let (path, query) = match uri.iter().position(|&byte| byte == b'?') {
        Some(at) => (&uri[..at], &uri[at + 1..]),
        None => (uri, &b""[..]),
    };
    let decoded = decoded(path);
    let goes_up = |path: &[u8]| path.split(|&byte| byte == b'/').any(|segment| segment == b"..");
    if path.is_empty() || goes_up(path) || goes_up(&decoded) || decoded.contains(&0) {
        return Err(unsafe_uri());
    }
    Ok((decoded, query.to_vec()))
}
