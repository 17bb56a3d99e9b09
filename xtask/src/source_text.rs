//! Rust source with its comments and the insides of its literals blanked out, so that looking for words and braces finds
//! code only. Lines and columns stay where they are. Not a parser: what the checks need, and no more.

/// Blanks comments and literal contents; lengths and lines stay.
pub(crate) fn code_only(source: &str) -> String {
    blanked(source, &blanks(source.as_bytes()))
}

fn blanked(source: &str, blanks: &[(usize, usize, Blank)]) -> String {
    let mut out = source.as_bytes().to_vec();
    for &(start, end, _) in blanks {
        for byte in out[start..end].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The texts in the product's code, each with the line that it begins in. Lines that a backslash continues are one.
pub(crate) fn texts(source: &str) -> Vec<(usize, String)> {
    let blanks = blanks(source.as_bytes());
    let product = without_tests(&blanked(source, &blanks)).len();
    let mut texts = Vec::new();
    for (start, end, _) in
        blanks.into_iter().filter(|&(start, _, blank)| blank == Blank::Text && start < product)
    {
        let number = source[..start].matches('\n').count() + 1;
        let lines = source[start..end].split("\\\n").map(|line| line.trim_start_matches(' '));
        texts.push((number, lines.collect::<String>()));
    }
    texts
}

/// What is not code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blank {
    Comment,
    Character,
    Text,
}

/// Where comments and literals are, from first to last.
fn blanks(bytes: &[u8]) -> Vec<(usize, usize, Blank)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let blank = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => Some((line_end(bytes, at), Blank::Comment)),
            b'/' if bytes.get(at + 1) == Some(&b'*') => Some((comment_end(bytes, at), Blank::Comment)),
            b'"' => Some((string_end(bytes, at + 1), Blank::Text)),
            b'r' | b'b' | b'c' if !follows_word(bytes, at) => {
                raw_start(bytes, at).map(|(body, hashes)| (raw_end(bytes, body, hashes), Blank::Text))
            }
            b'\'' => character_end(bytes, at).map(|end| (end, Blank::Character)),
            _ => None,
        };
        match blank {
            Some((end, kind)) => {
                let end = end.min(bytes.len());
                found.push((at, end, kind));
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start + 2, 1);
    while at < bytes.len() && depth > 0 {
        match (bytes[at], bytes.get(at + 1)) {
            (b'*', Some(b'/')) => (depth, at) = (depth - 1, at + 2),
            (b'/', Some(b'*')) => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Where the body of a raw string that may start here begins, and its number of `#`.
fn raw_start(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let prefix = [&b"br"[..], b"cr", b"r"].into_iter().find(|prefix| bytes[at..].starts_with(prefix))?;
    let hashes = bytes[at + prefix.len()..].iter().take_while(|&&byte| byte == b'#').count();
    let quote = at + prefix.len() + hashes;
    (bytes.get(quote) == Some(&b'"')).then_some((quote + 1, hashes))
}

fn raw_end(bytes: &[u8], body: usize, hashes: usize) -> usize {
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    bytes[body..]
        .windows(close.len())
        .position(|window| window == close)
        .map_or(bytes.len(), |end| body + end + close.len())
}

/// `None` for a lifetime.
fn character_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes.get(at + 3..)?.iter().position(|&byte| byte == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    // One character of at most four bytes, then the quote.
    let limit = bytes.len().min(at + 6);
    let close = bytes.get(at + 2..limit)?.iter().position(|&byte| byte == b'\'')?;
    let inside = &bytes[at + 1..at + 2 + close];
    let one = std::str::from_utf8(inside).is_ok_and(|text| text.chars().count() == 1);
    one.then_some(at + 2 + close + 1)
}

/// The code before a file's `#[cfg(test)] mod tests {`: what the rules for product code are about.
pub(crate) fn without_tests(code: &str) -> &str {
    let mut at = 0;
    while let Some(found) = code[at..].find("#[cfg(test)]") {
        let start = at + found;
        let rest = code[start + "#[cfg(test)]".len()..].trim_start();
        if rest.starts_with("mod ")
            && rest.find('{').unwrap_or(usize::MAX) < rest.find(';').unwrap_or(usize::MAX)
        {
            return &code[..start];
        }
        at = start + 1;
    }
    code
}

/// `line` counts from 1.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) length: usize,
}

pub(crate) fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if follows_word(bytes, at) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.is_empty() {
            continue; // A function pointer's type.
        }
        if let Some(end) = body_end(bytes, at) {
            let line = 1 + code[..at].matches('\n').count();
            found.push(Function { name, line, length: 1 + code[at..end].matches('\n').count() });
        }
    }
    found
}

/// `None` without a body.
fn body_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut braces, mut others) = (0_i32, 0_i32);
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => others += 1,
            b')' | b']' => others -= 1,
            b';' if braces == 0 && others == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 && others == 0 {
                    return Some(at);
                }
                if braces < 0 {
                    return None;
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays() {
        let source = "let a = \"fn x() { \\\" \"; // fn y\nlet b = r#\"}\"}\"#; let c = '{'; let d: &'static str = b\"{\"; /* { */ f()";
        let code = code_only(source);
        assert_eq!(code.len(), source.len());
        assert!(!code.contains('{') && !code.contains('}') && !code.contains("fn "), "{code}");
        assert!(code.contains("&'static str") && code.contains("f()"), "{code}");
    }

    #[test]
    fn a_function_is_measured_from_its_word_to_its_closing_brace() {
        let code = "fn one() {\n}\ntrait T { fn none(&self);\nfn two(a: [u8; 3]) -> u8 {\n if a { }\n 1\n} }";
        let expected = [("one", 1, 2), ("two", 4, 4)];
        let found: Vec<_> = functions(code).into_iter().map(|f| (f.name, f.line, f.length)).collect();
        assert_eq!(found, expected.map(|(name, line, length)| (name.to_owned(), line, length)));
    }

    #[test]
    fn inline_tests_are_cut_off_and_a_sibling_file_is_not_the_end() {
        assert_eq!(without_tests("a #[cfg(test)]\nmod tests;\nb"), "a #[cfg(test)]\nmod tests;\nb");
        assert_eq!(without_tests("a #[cfg(test)]\nmod tests { b }"), "a ");
    }
}
