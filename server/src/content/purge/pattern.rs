//! Regular expressions that purging clients send (written for Varnish's `ban`), as far as they say exactly what can be
//! purged here: tags, a URL or everything below one, hosts.
//!
//! An expression that says anything else is refused with a sentence, because purging less than was asked leaves old
//! answers in the cache and purging more empties it. Pure.

#[cfg(test)]
mod tests;

/// A regular expression without an exact meaning here, and what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmappable(pub &'static str);

const TAGS: Unmappable =
    Unmappable("an expression for tags must be (^|,)(one|other)(,|$) with each tag listed in full, or .*");
const HOSTS: Unmappable = Unmappable("an expression for hosts must be ^(one|other)$ or .*");
const UNANCHORED: Unmappable = Unmappable(
    "an expression for a URL must begin with ^, because without ^ it also matches in the middle of other URLs",
);
const URL: Unmappable = Unmappable(
    "an expression for a URL must be ^/path, ^/path.* or ^/path$ without other special characters, or .*",
);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Urls {
    Any,
    Prefix(Vec<u8>),
    Exact(Vec<u8>),
}

/// `None` for all.
/// Accepts `(^|,)(a|b)(,|$)` and `((^|,)a(,|$))|((^|,)b(,|$))`, as FOSHttpCache and Magento write them.
pub fn tags(expression: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Unmappable> {
    if matches!(expression, b"" | b".*" | b"^.*" | b".*$" | b"^.*$") {
        return Ok(None);
    }
    let mut found = Vec::new();
    for alternative in alternatives(expression) {
        let alternative = within_parentheses(alternative).unwrap_or(alternative);
        let names =
            alternative.strip_prefix(b"(^|,)").and_then(|rest| rest.strip_suffix(b"(,|$)")).ok_or(TAGS)?;
        for name in alternatives(within_parentheses(names).unwrap_or(names)) {
            found.push(literal(name, false).filter(|name| !name.is_empty()).ok_or(TAGS)?);
        }
    }
    Ok(Some(found))
}

/// `None` for all. A dot is literal, even without a backslash.
pub fn hosts(expression: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Unmappable> {
    if is_anything(expression) {
        return Ok(None);
    }
    let names = expression.strip_prefix(b"^").and_then(|rest| rest.strip_suffix(b"$")).ok_or(HOSTS)?;
    let names = alternatives(within_parentheses(names).unwrap_or(names));
    let each = |name: &[u8]| literal(name, true).filter(|name| !name.is_empty()).ok_or(HOSTS);
    names.into_iter().map(each).collect::<Result<_, _>>().map(Some)
}

pub fn urls(expression: &[u8]) -> Result<Urls, Unmappable> {
    if is_anything(expression) {
        return Ok(Urls::Any);
    }
    let rest = expression.strip_prefix(b"^").ok_or(UNANCHORED)?;
    let (text, exact) = match rest.strip_suffix(b"$") {
        Some(whole) if !whole.ends_with(b"\\") => match whole.strip_suffix(b".*") {
            Some(start) if !start.ends_with(b"\\") => (start, false),
            _ => (whole, true),
        },
        _ => match rest.strip_suffix(b".*") {
            Some(start) if !start.ends_with(b"\\") => (start, false),
            _ => (rest, false),
        },
    };
    let path = literal(text, false).filter(|path| path.starts_with(b"/")).ok_or(URL)?;
    Ok(if exact { Urls::Exact(path) } else { Urls::Prefix(path) })
}

/// The target without a final `.*` or `*`; `None` without either.
/// The rest is a URL, not an expression: clients append `.*` to a page's URL.
pub fn target_prefix(target: &[u8]) -> Option<&[u8]> {
    target.strip_suffix(b".*").or_else(|| target.strip_suffix(b"*"))
}

/// Fails unless an alleged expression is a plain URL, perhaps with a final `.*`.
pub fn plain_target(target: &[u8]) -> Result<(), Unmappable> {
    let url = target.strip_suffix(b"$").unwrap_or(target);
    let url = target_prefix(url).unwrap_or(url);
    let plain = |byte: &u8| !b"*+()[]{}|\\^$".contains(byte);
    if url.iter().all(plain) { Ok(()) } else { Err(URL) }
}

fn is_anything(expression: &[u8]) -> bool {
    matches!(expression, b"" | b".*" | b"^.*" | b".*$" | b"^.*$" | b"." | b".+" | b"^")
}

fn alternatives(expression: &[u8]) -> Vec<&[u8]> {
    let (mut depth, mut start, mut escaped) = (0u32, 0, false);
    let mut parts = Vec::new();
    for (at, &byte) in expression.iter().enumerate() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match byte {
            b'\\' => escaped = true,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'|' if depth == 0 => {
                parts.push(&expression[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    parts
}

fn within_parentheses(expression: &[u8]) -> Option<&[u8]> {
    let inside = expression.strip_prefix(b"(")?.strip_suffix(b")")?;
    let (mut depth, mut escaped) = (0u32, false);
    for &byte in inside {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match byte {
            b'\\' => escaped = true,
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    (depth == 0 && !escaped).then_some(inside)
}

/// The text, if the expression matches only one; without backslashes.
fn literal(expression: &[u8], dots_are_dots: bool) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(expression.len());
    let mut bytes = expression.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                // A backslash before a letter or a digit makes it special, before anything else it takes that away.
                Some(&next) if !next.is_ascii_alphanumeric() => text.push(next),
                _ => return None,
            },
            b'.' if dots_are_dots => text.push(b'.'),
            b'.' | b'*' | b'+' | b'?' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'|' | b'^' | b'$' => {
                return None;
            }
            other => text.push(other),
        }
    }
    Some(text)
}
