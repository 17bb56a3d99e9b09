//! One template filled: `$NAME` and `${NAME}` become the values of variables that are set, everything else stays as it is.
//!
//! That is what `envsubst` does with a list of names, so nginx's own variables need no escape. Text in, text out.

use std::fmt;

/// A limit is needed because each place may insert a hundred thousand bytes.
const MAX_FILLED_BYTES: usize = 4 << 20;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filled {
    pub text: Vec<u8>,
    pub lacking: Vec<Lacking>,
}

/// An unset variable. Line and column count from 1, the column in bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Lacking {
    line: usize,
    column: usize,
    name: String,
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lacking { line, column, name } = self;
        write!(
            f,
            "{line}:{column} {name} is not set in the environment (or excluded by NGINX_ENVSUBST_FILTER), so it is \
             not replaced"
        )
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct TooLong {
    line: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} the result of the template is larger than {MAX_FILLED_BYTES} bytes", self.line)
    }
}

pub fn fill<'v>(template: &[u8], value: impl Fn(&str) -> Option<&'v [u8]>) -> Result<Filled, TooLong> {
    let mut filled = Filled::default();
    let mut rest = template;
    while let Some(dollar) = rest.iter().position(|&byte| byte == b'$') {
        filled.text.extend_from_slice(&rest[..dollar]);
        rest = &rest[dollar..];
        let reference = reference(rest);
        let known = reference.and_then(|(name, length)| Some((value(name)?, length)));
        let (text, length) = known.unwrap_or((b"$", 1));
        if filled.text.len() + text.len() > MAX_FILLED_BYTES {
            return Err(TooLong { line: position(template, rest).0 });
        }
        filled.text.extend_from_slice(text);
        if let (None, Some((name, _))) = (known, reference)
            && is_environments(name)
        {
            let (line, column) = position(template, rest);
            filled.lacking.push(Lacking { line, column, name: name.to_owned() });
        }
        rest = &rest[length..];
    }
    filled.text.extend_from_slice(rest);
    Ok(filled)
}

/// The name behind a leading dollar, and the length of the reference.
fn reference(text: &[u8]) -> Option<(&str, usize)> {
    let is_braced = text.get(1) == Some(&b'{');
    let start = if is_braced { 2 } else { 1 };
    let is_inside = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let length = text[start.min(text.len())..].iter().take_while(is_inside).count();
    let name = std::str::from_utf8(text.get(start..start + length)?).ok()?;
    let end = start + length;
    let is_closed = !is_braced || text.get(end) == Some(&b'}');
    let is_name = name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    (is_name && is_closed).then_some((name, end + usize::from(is_braced)))
}

/// Environment variables have capitals; nginx's variables are in lower case.
fn is_environments(name: &str) -> bool {
    name.len() > 1
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn position(text: &[u8], rest: &[u8]) -> (usize, usize) {
    let before = &text[..text.len() - rest.len()];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    (line, column)
}
