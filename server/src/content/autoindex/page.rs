//! The list of a directory as text, in the forms of nginx, which programs read.
//!
//! Pure: entries in, bytes out.

use crate::html;
use millstream_wire::date::{self, Civil};
use millstream_wire::target;
use std::io::Write;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
    Other,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Directory => "directory",
            Kind::File => "file",
            Kind::Other => "other",
        }
    }
}

pub(super) struct DirectoryEntry {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// Seconds since 1970.
    pub(super) modified: i64,
    pub(super) size: u64,
}

pub(super) struct Look {
    pub(super) exact_size: bool,
    /// Seconds east of UTC.
    pub(super) utc_offset: i32,
    pub(super) is_utf8: bool,
}

/// Characters of a name in an HTML list.
const NAME_LENGTH: usize = 50;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

pub(super) fn html(uri: &[u8], entries: &[DirectoryEntry], look: &Look) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + 160 * entries.len());
    out.extend_from_slice(b"<html>\r\n<head><title>Index of ");
    html::escape(uri, &mut out);
    out.extend_from_slice(b"</title></head>\r\n<body>\r\n<h1>Index of ");
    html::escape(uri, &mut out);
    out.extend_from_slice(b"</h1><hr><pre><a href=\"../\">../</a>\r\n");
    for entry in entries {
        link(entry, look, &mut out);
        let Civil { day, month, year, hour, minute, .. } = date::civil(entry.modified, look.utc_offset);
        let month = MONTHS[usize::from(month) - 1];
        _ = write!(out, " {day:02}-{month}-{year} {hour:02}:{minute:02} ");
        size(entry, look, &mut out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"</pre><hr></body>\r\n</html>\r\n");
    out
}

fn link(entry: &DirectoryEntry, look: &Look, out: &mut Vec<u8>) {
    let is_directory = entry.kind == Kind::Directory;
    out.extend_from_slice(b"<a href=\"");
    target::escape_component(&entry.name, out);
    out.extend_from_slice(if is_directory { b"/\">" } else { b"\">" });
    let text = if look.is_utf8 { std::str::from_utf8(&entry.name).ok() } else { None };
    let length = text.map_or(entry.name.len(), |text| text.chars().count());
    if length > NAME_LENGTH {
        let kept = NAME_LENGTH - 3;
        let end = text.and_then(|text| text.char_indices().nth(kept)).map_or(kept, |(end, _)| end);
        html::escape(&entry.name[..end], out);
        out.extend_from_slice(b"..&gt;</a>");
        return;
    }
    html::escape(&entry.name, out);
    let mut room = NAME_LENGTH - length;
    if is_directory && room > 0 {
        out.push(b'/');
        room -= 1;
    }
    out.extend_from_slice(b"</a>");
    out.resize(out.len() + room, b' ');
}

fn size(entry: &DirectoryEntry, look: &Look, out: &mut Vec<u8>) {
    let (width, bytes) = (if look.exact_size { 19 } else { 7 }, entry.size);
    if entry.kind == Kind::Directory {
        _ = write!(out, "{:>width$}", "-");
        return;
    }
    let rounded = |unit: u64| bytes / unit + u64::from(bytes % unit > unit / 2 - 1);
    _ = match bytes {
        _ if look.exact_size => write!(out, "{bytes:>width$}"),
        0..=9_999 => write!(out, "{bytes:>width$}"),
        10_000..=0xf_ffff => write!(out, "{:>6}K", rounded(1 << 10)),
        0x10_0000..=0x3fff_ffff => write!(out, "{:>6}M", rounded(1 << 20)),
        _ => write!(out, "{:>6}G", rounded(1 << 30)),
    };
}

pub(super) fn json(entries: &[DirectoryEntry], callback: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + 128 * entries.len());
    if let Some(callback) = callback {
        out.extend_from_slice(b"/* callback */\r\n");
        out.extend_from_slice(callback);
        out.push(b'(');
    }
    out.push(b'[');
    for (at, entry) in entries.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"\r\n{ \"name\":\"" } else { b",\r\n{ \"name\":\"" });
        escape_json(&entry.name, &mut out);
        _ = write!(out, "\", \"type\":\"{}\", \"mtime\":\"", entry.kind.name());
        out.extend_from_slice(&date::format_http(entry.modified));
        out.push(b'"');
        if entry.kind == Kind::File {
            _ = write!(out, ", \"size\":{}", entry.size);
        }
        out.extend_from_slice(b" }");
    }
    out.extend_from_slice(b"\r\n]");
    if callback.is_some() {
        out.extend_from_slice(b");");
    }
    out
}

pub(super) fn xml(entries: &[DirectoryEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + 128 * entries.len());
    out.extend_from_slice(b"<?xml version=\"1.0\"?>\r\n<list>\r\n");
    for entry in entries {
        let Civil { day, month, year, hour, minute, second, .. } = date::civil(entry.modified, 0);
        let name = entry.kind.name();
        _ = write!(out, "<{name} mtime=\"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\"");
        if entry.kind == Kind::File {
            _ = write!(out, " size=\"{}\"", entry.size);
        }
        out.push(b'>');
        html::escape(&entry.name, &mut out);
        _ = write!(out, "</{name}>\r\n");
    }
    out.extend_from_slice(b"</list>\r\n");
    out
}

/// Inside a string (RFC 8259 §7).
fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..=0x1f => _ = write!(out, "\\u{byte:04X}"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: Kind, size: u64) -> DirectoryEntry {
        DirectoryEntry { name: name.into(), kind, modified: 784_111_777, size }
    }

    fn lines(entries: &[DirectoryEntry], look: &Look) -> Vec<String> {
        let page = String::from_utf8(html(b"/<a>/", entries, look)).expect("it is UTF-8");
        let (head, rest) = page.split_once("../</a>\r\n").expect("the directory above is linked");
        assert_eq!(
            head,
            "<html>\r\n<head><title>Index of /&lt;a&gt;/</title></head>\r\n<body>\r\n\
             <h1>Index of /&lt;a&gt;/</h1><hr><pre><a href=\"../\">"
        );
        let (list, tail) = rest.split_once("</pre>").expect("the list ends");
        assert_eq!(tail, "<hr></body>\r\n</html>\r\n");
        list.split_terminator("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn an_html_list_has_names_times_and_sizes_in_columns() {
        let long = "é".repeat(51);
        let entries = [
            entry("a b", Kind::Directory, 4096),
            entry("x&\"y", Kind::File, 7),
            entry(&long, Kind::File, 10_240),
        ];
        let exact = Look { exact_size: true, utc_offset: 3600, is_utf8: true };
        let pad = |text: &str, width: usize| " ".repeat(width - text.len());
        let gap = " ".repeat(18);
        let encoded = "%C3%A9".repeat(51);
        assert_eq!(
            lines(&entries, &exact),
            [
                format!("<a href=\"a%20b/\">a b/</a>{} 06-Nov-1994 09:49 {gap}-", pad("a b/", 50)),
                format!(
                    "<a href=\"x%26%22y\">x&amp;&quot;y</a>{} 06-Nov-1994 09:49 {gap}7",
                    pad("x&\"y", 50)
                ),
                format!(
                    "<a href=\"{encoded}\">{}..&gt;</a> 06-Nov-1994 09:49 {}10240",
                    "é".repeat(47),
                    pad("10240", 19)
                ),
            ]
        );
        let rounded = Look { exact_size: false, utc_offset: 0, is_utf8: false };
        let sizes = |bytes: u64| {
            let line = lines(&[entry("a", Kind::File, bytes)], &rounded).remove(0);
            line.rsplit_once("08:49 ").expect("it has a time").1.to_owned()
        };
        for (bytes, expected) in [
            (0, "      0"),
            (9_999, "   9999"),
            (10_000, "    10K"),
            (1_048_575, "  1024K"),
            (1_048_576, "     1M"),
            (1_572_864, "     2M"),
            (1_073_741_823, "  1024M"),
            (1_073_741_824, "     1G"),
        ] {
            assert_eq!(sizes(bytes), expected, "{bytes}");
        }
        assert!(lines(&[entry("d", Kind::Directory, 1)], &rounded)[0].ends_with(" 08:49       -"));
    }

    #[test]
    fn lists_for_programs_say_the_same() {
        let entries =
            [entry("d", Kind::Directory, 1), entry("a\"\u{1}\n<", Kind::File, 5), entry("o", Kind::Other, 0)];
        let time = "Sun, 06 Nov 1994 08:49:37 GMT";
        let list = format!(
            "[\r\n{{ \"name\":\"d\", \"type\":\"directory\", \"mtime\":\"{time}\" }},\
             \r\n{{ \"name\":\"a\\\"\\u0001\\n<\", \"type\":\"file\", \"mtime\":\"{time}\", \"size\":5 }},\
             \r\n{{ \"name\":\"o\", \"type\":\"other\", \"mtime\":\"{time}\" }}\r\n]"
        );
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is UTF-8");
        assert_eq!(text(json(&entries, None)), list);
        assert_eq!(text(json(&entries, Some(b"f"))), format!("/* callback */\r\nf({list});"));
        assert_eq!(text(json(&[], None)), "[\r\n]");
        assert_eq!(
            text(xml(&entries)),
            "<?xml version=\"1.0\"?>\r\n<list>\r\n<directory mtime=\"1994-11-06T08:49:37Z\">d</directory>\r\n\
             <file mtime=\"1994-11-06T08:49:37Z\" size=\"5\">a&quot;\u{1}\n&lt;</file>\r\n\
             <other mtime=\"1994-11-06T08:49:37Z\">o</other>\r\n</list>\r\n"
        );
    }
}
