//! A request as HTTP/2 sends it: its header block, made once, and where its body is.
//!
//! It is made of the same bytes that HTTP/1 would send. Each connection's first request puts its lines into the server's header
//! table (RFC 7541 §2.3.2), so that the same request again is an octet for each line. Next: `multiplex`, which frames it.

use millstream_wire::FieldId;
use millstream_wire::h1::head::{HeadLimits, Progress, RequestHead};
use millstream_wire::h2::hpack::encoder;
use std::sync::Arc;

/// How large a head may be: what the user gives on a command line is far less.
pub(crate) const HEAD: HeadLimits = HeadLimits { line: 256 * 1024, total: 512 * 1024, fields: 1000 };

/// What a line counts for in a table besides its text (RFC 7541 §4.1).
const BESIDE: usize = 32;

#[derive(Debug)]
pub struct Http2Request {
    /// For a server whose table has nothing of it.
    pub(crate) plain: Box<[u8]>,
    /// Puts its lines into the table.
    pub(crate) filling: Box<[u8]>,
    /// Takes them from there.
    pub(crate) filled: Box<[u8]>,
    /// Octets of the table that its lines take.
    pub(crate) table: usize,
    whole: Arc<[u8]>,
    body: usize,
}

/// The fields of a head in the order of RFC 9113 §8.3: those of the request line first.
type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

impl Http2Request {
    /// The request that these bytes of HTTP/1 are, body included. Errors: what is wrong with them.
    pub fn of(whole: &Arc<[u8]>, is_https: bool) -> Result<Http2Request, &'static str> {
        let mut head = RequestHead::default();
        if head.parse(whole, &HEAD).map_err(|_| "its header is not valid HTTP")? == Progress::Partial {
            return Err("its header is incomplete");
        }
        let lines = lines(&head, whole, is_https).ok_or("it has no host")?;
        let (mut plain, mut filling, mut filled) = (Vec::new(), Vec::new(), Vec::new());
        let is_kept: Vec<bool> = lines
            .iter()
            .map(|(name, value)| {
                encoder::field(&mut plain, name, value);
                encoder::kept_field(&mut filling, name, value)
            })
            .collect();
        let (mut age, mut table) = (is_kept.iter().filter(|is_kept| **is_kept).count(), 0);
        for ((name, value), is_kept) in lines.iter().zip(is_kept) {
            if is_kept {
                age -= 1;
                table += name.len() + value.len() + BESIDE;
                encoder::from_table(&mut filled, age);
            } else {
                encoder::field(&mut filled, name, value);
            }
        }
        Ok(Http2Request {
            plain: plain.into(),
            filling: filling.into(),
            filled: filled.into(),
            table,
            whole: Arc::clone(whole),
            body: head.length,
        })
    }

    #[inline]
    pub(crate) fn body(&self) -> &[u8] {
        &self.whole[self.body..]
    }
}

/// `None` where no host is named. Fields that belong to a connection are left out (RFC 9113 §8.2.2).
fn lines(head: &RequestHead, bytes: &[u8], is_https: bool) -> Option<FieldList> {
    let mut path = Vec::new();
    head.write_origin_form(bytes, &mut path);
    let scheme = if is_https { &b"https"[..] } else { b"http" };
    let pseudo = [
        (&b":method"[..], head.method_text.of(bytes)),
        (b":scheme", scheme),
        (b":authority", head.host_text(bytes)?),
        (b":path", &path),
    ];
    let mut lines: FieldList = pseudo.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    let fields = head.view(bytes);
    for (id, name, value) in fields.iter() {
        let is_trailers = id == FieldId::Te && value.eq_ignore_ascii_case(b"trailers");
        let is_of_connection = id.is_hop_by_hop() || fields.connection_lists(name);
        if id != FieldId::Host && (is_trailers || !is_of_connection) {
            lines.push((name.to_ascii_lowercase(), value.to_vec()));
        }
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::h2::hpack::HpackDecoder;

    fn decoded(decoder: &mut HpackDecoder, block: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let give = |line: millstream_wire::h2::hpack::Line<'_>| {
            lines.push(format!("{}: {}", text(line.name()), text(line.value())));
        };
        decoder.decode(block, usize::MAX, give).expect("it is a block");
        lines
    }

    #[test]
    fn all_three_blocks_say_what_the_bytes_of_http_1_say_but_for_the_connection() {
        let bytes: Arc<[u8]> = Arc::from(
            &b"POST /a?b HTTP/1.1\r\nHost: h:1\r\nConnection: x-hop\r\nX-Hop: 1\r\nTE: gzip\r\nX-A: 1\r\n\
               Authorization: secret\r\nContent-Length: 2\r\n\r\nhi"[..],
        );
        let request = Http2Request::of(&bytes, true).expect("it is a request");
        let expected = [
            ":method: POST",
            ":scheme: https",
            ":authority: h:1",
            ":path: /a?b",
            "x-a: 1",
            "authorization: secret",
            "content-length: 2",
        ];
        let mut decoder = HpackDecoder::default();
        assert_eq!(decoded(&mut decoder, &request.plain), expected);
        assert_eq!(decoder.table_size(), 0);
        assert_eq!(decoded(&mut decoder, &request.filling), expected);
        assert_eq!(decoder.table_size(), request.table);
        assert_eq!(decoded(&mut decoder, &request.filled), expected);
        assert_eq!(request.body(), b"hi");
        assert!(request.filled.len() < request.plain.len());
    }
}
