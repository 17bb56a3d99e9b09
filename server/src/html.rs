//! Text as HTML shows it.

/// For an element's text or a quoted attribute (HTML §13.1.2).
pub fn escape(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_html_would_read_as_markup_is_shown_as_it_is() {
        let mut out = Vec::new();
        super::escape(b"a<b> & \"c\" 'd' \xff", &mut out);
        assert_eq!(out, b"a&lt;b&gt; &amp; &quot;c&quot; 'd' \xff");
    }
}
