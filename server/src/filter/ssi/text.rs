//! What the values of parameters mean: texts with variables, conditions.
//!
//! Variables are looked up by name, those of the page first. Before: `command`; next: `ssi`.

use crate::request::Request;
use crate::variables::{self, Found};
use bytes::Bytes;
use millstream_conf::regular_expression::{self, PageRegex};

const LONGEST_VALUE: usize = 256 * 1024;
/// Bytes of a text for a linear expression.
const LONGEST_MATCHED: usize = 8 * 1024;
/// Bytes for a backtracking one, which may search all of it from each position.
const LONGEST_BACKTRACKED: usize = 512;
const COMPILING: usize = 16 * 1024;
/// Work of a byte for an expression with the most states.
const MATCHING: usize = 32;

pub(super) fn variable(request: &Request, name: &[u8]) -> Option<Bytes> {
    let name = name.to_ascii_lowercase();
    if let Some(sheet) = request.reply.sheet.get()
        && let Some(value) = sheet.page.value(&name)
    {
        return Some(value);
    }
    let mut value = Vec::new();
    let found = variables::named(std::str::from_utf8(&name).ok()?, request, &mut value);
    (found == Found::Value).then(|| value.into())
}

/// Expands variables and escapes; an error beyond [`LONGEST_VALUE`].
pub(super) fn evaluate(request: &Request, text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'$' => {
                let (name, behind) = reference(behind, text)?;
                rest = behind;
                let value = variable(request, name).unwrap_or_default();
                if out.len() + value.len() > LONGEST_VALUE {
                    return Err(format!("too long value of \"{}\"", text.escape_ascii()));
                }
                out.extend_from_slice(&value);
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
    request.sheet().page.worked(out.len());
    Ok(out)
}

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

/// Sets the page's captures. Compiles each time, which counts as work and costs less than keeping it.
fn matches(request: &Request, expression: &[u8], text: &[u8]) -> Result<bool, String> {
    let source =
        std::str::from_utf8(expression).map_err(|_| "a regular expression is not valid UTF-8".to_owned())?;
    if source.len() > regular_expression::MAX_PAGE_LENGTH {
        return Err("too long regular expression".to_owned());
    }
    let page = &request.sheet().page;
    let too_many = |_| "too many regular expressions on this page".to_owned();
    page.expression(COMPILING).map_err(too_many)?;
    let (regex, work, longest) = match regular_expression::compile_for_page(source) {
        None => return Err(format!("invalid regular expression \"{source}\"")),
        Some(PageRegex::Linear(regex)) => (regex, text.len() * MATCHING, LONGEST_MATCHED),
        Some(PageRegex::Backtracking(regex)) => {
            (regex, text.len().saturating_pow(2).saturating_mul(4), LONGEST_BACKTRACKED)
        }
    };
    if text.len() > longest {
        return Err(format!("too long text for the regular expression \"{source}\""));
    }
    page.expression(work).map_err(too_many)?;
    let captured = regex
        .captures(text)
        .map_err(|_| format!("regular expression \"{source}\" reached its backtracking limit"))?;
    let Some(captured) = captured else { return Ok(false) };
    let group = |at: usize| captured.get(at).map_or(&b""[..], |group| group.as_bytes());
    for (name, at) in &regex.names {
        let name = name.to_ascii_lowercase();
        page.set(name.as_bytes(), group(*at).to_vec()).map_err(super::no_room)?;
    }
    let groups = (0..captured.len().min(10)).map(|at| Bytes::copy_from_slice(group(at))).collect();
    page.capture(groups).map_err(super::no_room)?;
    Ok(true)
}
