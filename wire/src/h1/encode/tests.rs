//! What is written, byte by byte.

use super::*;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn status_lines_have_nginxs_reasons_and_unknown_statuses_none() {
    assert_eq!(written(|out| status_line(out, 200)), "HTTP/1.1 200 OK\r\n");
    assert_eq!(written(|out| status_line(out, 503)), "HTTP/1.1 503 Service Temporarily Unavailable\r\n");
    assert_eq!(written(|out| status_line(out, 499)), "HTTP/1.1 499 \r\n");
    assert_eq!(written(|out| status_line_with_reason(out, 200, b"Fine")), "HTTP/1.1 200 Fine\r\n");
    assert_eq!((reason(404), reason(999)), ("Not Found", ""));
    for status in 100..1000 {
        let line = written(|out| status_line(out, status));
        assert_eq!(line, format!("HTTP/1.1 {status} {}\r\n", reason(status)));
    }
}

#[test]
fn fields_and_chunk_heads_end_their_lines() {
    assert_eq!(written(|out| field(out, b"A", b"b")), "A: b\r\n");
    assert_eq!(written(|out| number_field(out, b"Age", u64::MAX)), "Age: 18446744073709551615\r\n");
    for length in [1, 9, 10, 15, 16, 255, 4096, usize::MAX] {
        assert_eq!(written(|out| chunk_head(out, length)), format!("{length:x}\r\n"));
    }
}
