//! Buffering as `buffer=`, `flush=` and `gzip=` ask, and the escapes byte for byte.

use super::*;
use crate::log_writer::LogWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn conf(buffer: Option<usize>, flush: Option<Duration>, gzip: Option<u32>) -> LogFile {
    LogFile { target: LogTarget::File(PathBuf::new()), buffer, flush, gzip }
}

struct Log {
    directory: tempfile::TempDir,
    writer: Arc<LogWriter>,
}

impl Log {
    fn new() -> Self {
        Log { directory: tempfile::tempdir().unwrap(), writer: LogWriter::start().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("access.log")
    }

    fn buffer(&self, conf: LogFile) -> AccessBuffer {
        AccessBuffer::new(self.writer.open(&self.path(), conf.gzip).unwrap(), &conf)
    }

    fn text(&self) -> String {
        assert!(self.writer.drain());
        std::fs::read_to_string::<&Path>(&self.path()).unwrap()
    }
}

#[allow(clippy::disallowed_methods)]
fn moment() -> Instant {
    Instant::now()
}

#[test]
fn an_unbuffered_line_is_sent_at_once() {
    let (log, now) = (Log::new(), moment());
    let mut buffer = log.buffer(conf(None, None, None));
    buffer.line().extend_from_slice(b"one\n");
    assert!(buffer.commit(now).is_some());
    assert_eq!(log.text(), "one\n");
    buffer.line().extend_from_slice(b"two\n");
    assert!(buffer.commit(now).is_some());
    assert_eq!(log.text(), "one\ntwo\n");
}

#[test]
fn buffered_lines_wait_until_there_are_enough_bytes() {
    let (log, now) = (Log::new(), moment());
    let mut buffer = log.buffer(conf(Some(10), None, None));
    buffer.line().extend_from_slice(b"1234\n");
    assert_eq!(buffer.commit(now), None);
    assert_eq!((log.text().as_str(), buffer.due()), ("", None));
    buffer.line().extend_from_slice(b"6789\n");
    assert_eq!(buffer.commit(now), None);
    assert_eq!(log.text(), "1234\n6789\n");
}

#[test]
fn the_flush_time_runs_from_the_first_line_that_waits() {
    let (log, now) = (Log::new(), moment());
    let second = Duration::from_secs(1);
    let mut buffer = log.buffer(conf(Some(1000), Some(5 * second), None));
    assert_eq!(buffer.due(), None);
    for (line, at) in [("a\n", now), ("b\n", now + second)] {
        buffer.line().extend_from_slice(line.as_bytes());
        buffer.commit(at);
    }
    assert_eq!(buffer.due(), Some(now + 5 * second));
    buffer.flush();
    assert_eq!((log.text().as_str(), buffer.due()), ("a\nb\n", None));
}

#[test]
fn a_dropped_buffer_is_flushed_without_the_line_that_was_never_finished() {
    let (log, now) = (Log::new(), moment());
    let mut buffer = log.buffer(conf(Some(1000), None, None));
    buffer.line().extend_from_slice(b"whole\n");
    buffer.commit(now);
    buffer.line().extend_from_slice(b"hal");
    drop(buffer);
    assert_eq!(log.text(), "whole\n");
}

#[test]
fn an_abandoned_line_does_not_run_into_the_next() {
    let (log, now) = (Log::new(), moment());
    for limit in [None, Some(4)] {
        let mut buffer = log.buffer(conf(limit, None, None));
        buffer.line().extend_from_slice(b"hal");
        buffer.line().extend_from_slice(b"whole\n");
        buffer.commit(now);
    }
    assert_eq!(log.text(), "whole\nwhole\n");
}

#[test]
fn a_compressed_log_is_buffered_even_where_no_size_is_given() {
    let (log, now) = (Log::new(), moment());
    let mut buffer = log.buffer(conf(None, None, Some(1)));
    buffer.line().extend_from_slice(b"line\n");
    assert_eq!(buffer.commit(now), None);
}

fn check(how: Escape, value: &[u8], expected: &str) {
    let mut out = Vec::new();
    escape(&mut out, how, value);
    assert_eq!(String::from_utf8_lossy(&out), expected, "{how:?}");
}

#[test]
fn a_value_is_clean_where_escaping_changes_nothing() {
    for how in [Escape::Default, Escape::Json, Escape::None] {
        for (byte, place) in (0..=255u8).flat_map(|byte| (0..40usize).map(move |place| (byte, place))) {
            let mut value = [b'a'; 40];
            value[place] = byte;
            let value = &value[..=place.max(byte as usize % 40)];
            let mut out = Vec::new();
            escape(&mut out, how, value);
            assert_eq!(is_clean(how, value), out == value, "{how:?} of {byte:#x} at {place}");
        }
    }
}

#[test]
fn default_escapes_are_upper_case_hex() {
    check(Escape::Default, b"GET /a?b=c HTTP/1.1", "GET /a?b=c HTTP/1.1");
    check(Escape::Default, b"\"\\", "\\x22\\x5C");
    check(Escape::Default, b"\0\x1f ~\x7f\xff", "\\x00\\x1F ~\\x7F\\xFF");
    check(Escape::Default, "é\n".as_bytes(), "\\xC3\\xA9\\x0A");
    check(Escape::Default, b"", "");
}

#[test]
fn json_escapes_keep_what_json_allows() {
    check(Escape::Json, "é \x7f".as_bytes(), "é \x7f");
    check(Escape::Json, b"\"\\/\n\r\t\x08\x0c", "\\\"\\\\/\\n\\r\\t\\b\\f");
    check(Escape::Json, b"\0\x1f\x0b", "\\u0000\\u001F\\u000B");
}

#[test]
fn no_escape_copies() {
    check(Escape::None, b"\"\\\n", "\"\\\n");
}
