//! `\p{…}` of single bytes: PCRE takes a byte for the character with its number (Latin-1), and so does this.

use fancy_regex::Regex;
use std::fmt::Write;

/// The bytes with a property, as the inside of a class.
pub(super) fn bytes(name: &str) -> Result<String, String> {
    let class = match name {
        // PCRE's own names.
        "Xan" => r"\p{L}\p{N}".into(),
        "Xwd" => r"\p{L}\p{N}_".into(),
        "Xsp" | "Xps" => r"\p{Z}\t-\r\x85".into(),
        "L&" => r"\p{Lu}\p{Ll}\p{Lt}".into(),
        name => format!(r"\p{{{name}}}"),
    };
    let unknown = |_| format!(r"unknown property name after \p: {name}");
    let known = Regex::new(&format!("^[{class}]$")).map_err(unknown)?;
    let mut set = String::new();
    for byte in 0..=u8::MAX {
        if known.is_match(&*char::from(byte).encode_utf8(&mut [0; 4])).unwrap_or(false) {
            _ = write!(set, r"\x{byte:02X}");
        }
    }
    // An empty class is none; this one matches nothing.
    Ok(if set.is_empty() { r"a&&b".into() } else { set })
}
