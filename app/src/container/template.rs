//! One template filled: `$NAME` and `${NAME}` become the values of variables that are set, everything else stays as it is.
//!
//! That is what `envsubst` does with a list of names, so nginx's own variables need no escape. Text in, text out.

use std::fmt;

/// What comes of a template has at most so many bytes: each place may name a value of a hundred thousand.
const MAX_FILLED_BYTES: usize = 4 << 20;

/// What came of a template.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// The text.
    pub text: Vec<u8>,
    /// Names that look like the environment's and are not set, each where it stands.
    pub lacking: Vec<Lacking>,
}

/// A variable that is not set. Lines and columns, in bytes, count from 1.
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
            "{line}:{column} {name} is not set in the environment (or not let in by NGINX_ENVSUBST_FILTER), so it stays"
        )
    }
}

/// A template whose values make more of it than may be.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong {
    line: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} what is made of a template has at most {MAX_FILLED_BYTES} bytes", self.line)
    }
}

/// Fills a template.
///
/// # Errors
/// It would become longer than 4 MiB.
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

/// The name that a text beginning with a dollar refers to, and how long the reference is.
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

/// Whether a name is one as the environment has them; nginx's variables are in small letters.
fn is_environments(name: &str) -> bool {
    name.len() > 1
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Line and column of where the rest of a text begins.
fn position(text: &[u8], rest: &[u8]) -> (usize, usize) {
    let before = &text[..text.len() - rest.len()];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    (line, column)
}
