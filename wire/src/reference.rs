//! URI references as they stand in Location and Content-Location (RFC 3986 §4.1), resolved against the target of a
//! request.
//!
//! Only what HTTP needs of it: scheme, authority, path and query; a fragment is dropped. Nothing is decoded or
//! normalised but for dot segments, which resolving is about. Next: `target`, for what a path means here.

#[cfg(test)]
mod tests;

/// The parts of a reference, or of a target to resolve one against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference<'a> {
    /// Without its colon.
    pub scheme: Option<&'a [u8]>,
    /// `host[:port]`, without the slashes.
    pub authority: Option<&'a [u8]>,
    /// May be empty.
    pub path: &'a [u8],
    /// Without its question mark.
    pub query: Option<&'a [u8]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub scheme: Vec<u8>,
    /// `host[:port]`.
    pub authority: Vec<u8>,
    /// Begins with a slash.
    pub path: Vec<u8>,
    /// Without its question mark.
    pub query: Option<Vec<u8>>,
}

impl<'a> Reference<'a> {
    /// `None` if it has white space, control bytes, a backslash (which some clients read as a slash), or user
    /// information.
    pub fn read(text: &'a [u8]) -> Option<Reference<'a>> {
        if text.iter().any(|&byte| byte <= b' ' || byte == 0x7f || byte == b'\\') {
            return None;
        }
        let text = &text[..position(text, b"#").unwrap_or(text.len())];
        let (text, query) = match position(text, b"?") {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let (scheme, text) = match position(text, b":/") {
            Some(at) if text[at] == b':' && is_scheme(&text[..at]) => (Some(&text[..at]), &text[at + 1..]),
            // A first segment with a colon that is no scheme is no path either (§4.2).
            Some(at) if text[at] == b':' => return None,
            _ => (None, text),
        };
        let (authority, path) = match text.strip_prefix(b"//") {
            Some(rest) => {
                let end = position(rest, b"/").unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, text),
        };
        let has_user = authority.is_some_and(|authority| authority.contains(&b'@'));
        // "mailto:x": nothing that HTTP could ask for.
        let is_opaque = scheme.is_some() && authority.is_none();
        (!has_user && !is_opaque).then_some(Reference { scheme, authority, path, query })
    }

    /// Resolves the reference (§5.2.2). `base` has all parts.
    pub fn resolved(&self, base: &Reference<'_>) -> Resolved {
        let of =
            |scheme: Option<&[u8]>, authority: Option<&[u8]>, path: &[u8], query: Option<&[u8]>| Resolved {
                scheme: scheme.unwrap_or_default().to_vec(),
                authority: authority.unwrap_or_default().to_vec(),
                path: without_dots(path),
                query: query.map(<[u8]>::to_vec),
            };
        if self.authority.is_some() {
            return of(self.scheme.or(base.scheme), self.authority, self.path, self.query);
        }
        if self.path.is_empty() {
            return of(base.scheme, base.authority, base.path, self.query.or(base.query));
        }
        if self.path.starts_with(b"/") {
            return of(base.scheme, base.authority, self.path, self.query);
        }
        let folder = base.path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let path = [&base.path[..folder], self.path].concat();
        of(base.scheme, base.authority, &path, self.query)
    }
}

impl Resolved {
    /// RFC 9110 §4.3.1; the scheme's default port may be omitted.
    pub fn is_same_origin(&self, other: &Reference<'_>) -> bool {
        let scheme = other.scheme.unwrap_or_default();
        let usual: &[u8] = if scheme.eq_ignore_ascii_case(b"https") { b":443" } else { b":80" };
        let bare = |authority: &[u8]| {
            let bare = authority.strip_suffix(usual).unwrap_or(authority);
            bare.strip_suffix(b":").unwrap_or(bare).to_ascii_lowercase()
        };
        self.scheme.eq_ignore_ascii_case(scheme)
            && bare(&self.authority) == bare(other.authority.unwrap_or_default())
    }
}

/// Removes dot segments (§5.2.4); adds a missing leading slash.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len() + 1);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." if is_last => out.push(b'/'),
            b"." => {}
            b".." => {
                let end = out.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                out.truncate(end);
                if is_last {
                    out.push(b'/');
                }
            }
            segment => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

fn position(text: &[u8], any: &[u8]) -> Option<usize> {
    text.iter().position(|byte| any.contains(byte))
}

fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}
