//! Values as tables: what is taken, what is refused and what the help says.

use proptest::prelude::*;

use super::*;

#[test]
fn sizes_take_bytes_k_and_m_in_any_case() {
    for (text, expected) in [
        ("0", 0),
        ("512", 512),
        ("8k", 8192),
        ("8K", 8192),
        ("10m", 10 << 20),
        ("1M", 1 << 20),
        ("007k", 7168),
    ] {
        assert_eq!(size(text), Ok(expected), "{text}");
    }
    assert_eq!(offset("2g"), Ok(2 << 30));
    assert_eq!(offset("2G"), Ok(2 << 30));
}

#[test]
fn a_bad_size_says_what_to_write() {
    for (text, help) in [
        ("10mb", "write \"10m\""),
        ("10MiB", "write \"10m\""),
        ("10kb", "write \"10k\""),
        ("1g", "write \"1024m\""),
        ("2GB", "write \"2048m\""),
        ("5 bytes", "a number and k or m"),
        ("12b", "write \"12\""),
        ("", "a number of bytes"),
        ("k", "a number of bytes"),
        ("-1", "a number of bytes"),
        ("1.5m", "a number and k or m"),
        ("99999999999999999999", "a number"),
        ("9223372036854775807k", "the maximum is"),
    ] {
        let error = size(text).expect_err(text);
        assert_eq!(error.message, format!("invalid size \"{text}\""));
        assert!(
            error.help.as_deref().unwrap_or("").contains(help)
                || error.help.as_deref().unwrap_or("").contains("the maximum"),
            "{text}: {error:?}"
        );
    }
    assert!(offset("2gb").expect_err("2gb").help.expect("help").contains("write \"2g\""));
}

#[test]
fn times_take_all_units_greatest_first() {
    for (text, milliseconds) in [
        ("0", 0),
        ("30", 30_000),
        ("30s", 30_000),
        ("500ms", 500),
        ("1h30m", 5_400_000),
        ("1h 30m", 5_400_000),
        ("1m30", 90_000),
        ("1s500ms", 1_500),
        ("1d", 86_400_000),
        ("2w", 1_209_600_000),
        ("1M", 2_592_000_000),
        ("1y", 31_536_000_000),
        ("1y1M1w1d1h1m1s1ms", 31_536_000_000 + 2_592_000_000 + 604_800_000 + 86_400_000 + 3_661_001),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
    }
}

#[test]
fn a_bad_time_says_what_to_write() {
    for (text, help) in [
        ("", "\"30s\""),
        ("10sec", "write \"10s\""),
        ("10 minutes", "write \"10m\""),
        ("5H", "write \"5h\""),
        ("1.5s", "without fractions"),
        ("30m1h", "largest unit first"),
        ("1h1h", "largest unit first"),
        ("1 2", "only the last number"),
        ("s", "the number is missing"),
        ("-1s", "a time is a number"),
        ("1x", "a time is a number"),
        ("9223372036854775807y", "longer than the longest supported time"),
    ] {
        let error = duration(text).expect_err(text);
        assert!(error.help.as_deref().unwrap_or("").contains(help), "{text}: {error:?}");
    }
}

#[test]
fn flags_and_numbers_are_taken_as_nginx_takes_them() {
    assert_eq!(flag("on"), Ok(true));
    assert_eq!(flag("OFF"), Ok(false));
    assert_eq!(flag("yes").expect_err("yes").help.as_deref(), Some("write \"on\""));
    assert_eq!(flag("0").expect_err("0").help.as_deref(), Some("write \"off\""));
    assert_eq!(number("1024"), Ok(1024));
    assert!(number("").is_err());
    assert!(number("+1").is_err());
    assert!(number("18446744073709551616").expect_err("too large").message.contains("too large"));
    assert_eq!(number("10k").expect_err("10k").help.as_deref(), Some("write only digits: \"10\""));
}

proptest! {
    #[test]
    fn no_text_makes_a_value_panic(text in "\\PC{0,24}|[0-9]{1,22}[a-zA-Z ]{0,3}[0-9]{0,22}[a-zA-Z]{0,3}") {
        let _ = (size(&text), offset(&text), duration(&text), flag(&text), number(&text));
    }

    #[test]
    fn a_size_in_bytes_reads_back_as_itself(bytes in 0u64..=i64::MAX as u64) {
        prop_assert_eq!(size(&bytes.to_string()), Ok(bytes));
        prop_assert_eq!(duration(&format!("{bytes}ms")), Ok(Duration::from_millis(bytes)));
    }
}
