//! Ranges as cases, and as properties for any text.

use super::*;
use proptest::prelude::*;

fn check(value: &str, expected: &Ranges) {
    assert_eq!(&parse(value.as_bytes(), 1000, Some(3)), expected, "{value}");
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "one range is what is meant")]
fn ranges_are_cut_to_the_representation() {
    check("bytes=0-0", &Ranges::Parts(vec![0..1]));
    check("Bytes=10-", &Ranges::Parts(vec![10..1000]));
    check("bytes=-10", &Ranges::Parts(vec![990..1000]));
    check("bytes= 2 - 4 ", &Ranges::Parts(vec![2..5]));
    check("bytes=-10000", &Ranges::Parts(vec![0..1000]));
    check("bytes=90-99999999999999999999999", &Ranges::Parts(vec![90..1000]));
    check("bytes=0-1, 2000-, 5-6", &Ranges::Parts(vec![0..2, 5..7]));
    check("bytes=0-1,,5-4,5-6", &Ranges::Parts(vec![0..2, 5..7]));
}

#[test]
fn what_does_not_exist_or_is_no_range_is_unsatisfiable() {
    for value in [
        "bytes=1000-",
        "bytes=-0",
        "bytes=5-4",
        "bytes=alpha",
        "bytes=10-alpha",
        "bytes=10",
        "bytes=10-11 12-",
        "bytes=,",
        "bytes=--1",
        "bytes=+1-2",
        "bytes=0-1,x",
        "bytes=-",
    ] {
        check(value, &Ranges::Unsatisfiable);
    }
}

#[test]
fn other_units_many_ranges_and_more_than_the_whole_are_ignored() {
    for value in ["", "bytes", "bytes=", "items=0-1", "bytes=0-0,1-1,2-2,3-3", "bytes=0-,0-0"] {
        check(value, &Ranges::Ignore);
    }
    let many: Vec<String> = (0..20).map(|at| format!("{at}-{at}")).collect();
    let many = format!("bytes={}", many.join(","));
    assert_eq!(parse(many.as_bytes(), 500, None), Ranges::Ignore, "costs more than the whole");
    assert!(matches!(parse(many.as_bytes(), 5000, None), Ranges::Parts(parts) if parts.len() == 20));
}

#[test]
fn an_empty_representation_has_a_beginning_and_nothing_else() {
    let of_nothing = |value: &str| parse(value.as_bytes(), 0, None);
    for value in ["bytes=0-", "bytes=0-5", "bytes=-5"] {
        assert_eq!(of_nothing(value), Ranges::Ignore, "{value}");
    }
    assert_eq!(of_nothing("bytes=1-"), Ranges::Unsatisfiable);
}

#[test]
fn a_content_range_is_valid_or_nothing() {
    let read = |value: &str| ContentRange::parse(value.as_bytes());
    assert_eq!(read("bytes 0-4/10"), Some(ContentRange { first: 0, last: 4, complete: Some(10) }));
    assert_eq!(read("bytes 5-5/*"), Some(ContentRange { first: 5, last: 5, complete: None }));
    for value in [
        "",
        "bytes",
        "bytes 0-4",
        "bytes 4-0/10",
        "bytes 0-10/10",
        "bytes */10",
        "items 0-4/10",
        "bytes 0-4/x",
        "bytes -4/10",
        "bytes 0-18446744073709551615/*",
    ] {
        assert_eq!(read(value), None, "{value}");
    }
}

#[test]
fn one_range_alone_is_told_from_several() {
    assert_eq!(first(b"bytes=5-,7-"), Some(Spec::From(5)));
    assert_eq!(only(b"bytes=5-,7-"), None);
    assert_eq!(only(b"bytes=-7"), Some(Spec::Last(7)));
    assert_eq!(only(b"bytes=1-2"), Some(Spec::Between(1, 2)));
    assert_eq!((first(b"items=1-2"), first(b"bytes=x")), (None, None));
}

proptest! {
    #[test]
    fn parts_lie_within_and_never_exceed_the_whole(text in "bytes=[0-9, -]{0,40}", length in 0u64..5000, most in 0u32..5) {
        for most in [Some(most), None] {
            if let Ranges::Parts(parts) = parse(text.as_bytes(), length, most) {
                let bound = most.map_or(MOST, |most| most as usize);
                prop_assert!(!parts.is_empty() && parts.len() <= bound);
                prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
                prop_assert!(parts.len() == 1 || parts.iter().map(|part| part.end - part.start).sum::<u64>() <= length);
            }
        }
    }

    #[test]
    fn a_content_range_written_is_read_back(first in 0u64..1 << 40, more in 0u64..1 << 40, rest in proptest::option::of(1u64..1 << 40)) {
        let range = ContentRange { first, last: first + more, complete: rest.map(|rest| first + more + rest) };
        let mut text = Vec::new();
        range.write(&mut text);
        prop_assert_eq!(ContentRange::parse(&text), Some(range));
        prop_assert_eq!(range.length(), more + 1);
    }
}
