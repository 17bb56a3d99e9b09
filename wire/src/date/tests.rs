//! Dates there and back.

use proptest::prelude::*;

use super::*;

const EXAMPLE: i64 = 784_111_777;

#[test]
fn the_three_formats_of_the_rfc_are_read() {
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun Nov 06 08:49:37 1994",
        "SUN, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nOV 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 gMT",
        "sunday, 06-NOV-94 08:49:37 gmt",
        "sun nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse_http(text.as_bytes()), Some(EXAMPLE), "{text}");
    }
    assert_eq!(parse_http(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    assert_eq!(parse_http(b"Monday, 01-Jan-69 00:00:00 GMT"), parse_http(b"Tue, 01 Jan 2069 00:00:00 GMT"));
    assert_eq!(parse_http(b"Sat, 31 Dec 2016 23:59:60 GMT"), parse_http(b"Sun, 01 Jan 2017 00:00:00 GMT"));
}

#[test]
fn what_logs_write_is_read_again() {
    for offset in [0, 3600, -9 * 3600 - 1800] {
        assert_eq!(parse_clf(&format_clf(EXAMPLE, offset)), Some(EXAMPLE), "{offset}");
    }
    for text in [
        "",
        "nonsense",
        "06/Nov/1994:08:49:37 0000",
        "06/Nov/1994 08:49:37 +0000",
        "31/Feb/1994:08:49:37 +0000",
    ] {
        assert_eq!(parse_clf(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn what_is_no_date_is_none() {
    for text in [
        "",
        "0",
        "-1",
        "GMT",
        " GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Xxx, 06 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 19\u{e4} 08:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(parse_http(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn every_format_is_nginxs_byte_for_byte() {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(text(&format_http(EXAMPLE)), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(text(&format_clf(EXAMPLE, 0)), "06/Nov/1994:08:49:37 +0000");
    assert_eq!(text(&format_clf(EXAMPLE, -34_200)), "05/Nov/1994:23:19:37 -0930");
    assert_eq!(text(&format_iso8601(EXAMPLE, 20_700)), "1994-11-06T14:34:37+05:45");
    assert_eq!(text(&format_error_log(EXAMPLE, 3_600)), "1994/11/06 09:49:37");
    assert_eq!(text(&format_http(i64::MAX)), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(text(&format_http(i64::MIN)), "Sat, 01 Jan 0000 00:00:00 GMT");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_date_that_is_written_is_read_again(seconds in -62_167_219_200i64..253_402_300_800) {
        prop_assert_eq!(parse_http(&format_http(seconds)), Some(seconds));
    }

    #[test]
    fn random_text_never_panics(text in "[A-Za-z0-9,: -]{0,34}") {
        let _ = parse_http(text.as_bytes());
    }
}
