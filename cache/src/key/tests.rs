//! Keys as the server makes them: no two evaluations meet, and nginx's file names.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Variable(Vec<u8>),
}

fn key(parts: &[Part]) -> Vec<u8> {
    let (mut key, mut places) = (Vec::new(), Parts::default());
    for part in parts {
        match part {
            Part::Literal(text) => key.extend_from_slice(text),
            Part::Variable(value) => {
                let start = key.len();
                key.extend_from_slice(value);
                places.note(start, key.len());
            }
        }
    }
    places.close(&mut key).expect("it is short enough");
    key
}

fn text_of(parts: &[Part]) -> Vec<u8> {
    let bytes = parts.iter().flat_map(|part| match part {
        Part::Literal(bytes) | Part::Variable(bytes) => bytes.clone(),
    });
    bytes.collect()
}

/// Adjacent literals are merged, as the template compiler does.
fn merged(parts: &[Part]) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::new();
    for part in parts {
        match (merged.last_mut(), part) {
            (_, Part::Literal(text)) if text.is_empty() => {}
            (Some(Part::Literal(before)), Part::Literal(text)) => before.extend_from_slice(text),
            _ => merged.push(part.clone()),
        }
    }
    merged
}

/// Few letters, so that equal texts are common; two of them look like the end of a key.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(b'a'), Just(b'|'), Just(0u8), Just(1u8)], 0..4)
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![bytes().prop_map(Part::Literal), bytes().prop_map(Part::Variable)];
    vec(part, 0..20).prop_map(|parts| merged(&parts))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn two_keys_are_equal_only_where_every_part_is(one in parts(), other in parts()) {
        prop_assert_eq!(key(&one) == key(&other), one == other);
    }

    #[test]
    fn a_border_that_moves_makes_another_key(value in vec(any::<u8>(), 1..40), at in 0usize..40, to in 0usize..40) {
        let cut = |at: usize| {
            let (left, right) = value.split_at(at.min(value.len()));
            [Part::Variable(left.to_vec()), Part::Variable(right.to_vec())]
        };
        let same = at.min(value.len()) == to.min(value.len());
        prop_assert_eq!(key(&cut(at)) == key(&cut(to)), same);
        prop_assert_eq!(md5(&key(&cut(at))), md5(&key(&cut(to))));
    }

    #[test]
    fn the_text_of_a_key_is_found_again(parts in parts()) {
        let key = key(&parts);
        prop_assert_eq!(text(&key), text_of(&parts));
    }

    #[test]
    fn no_bytes_make_the_search_for_the_text_fail(bytes in vec(any::<u8>(), 0..64)) {
        prop_assert!(bytes.starts_with(text(&bytes)));
    }
}

fn hex(bytes: [u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_key_has_the_file_name_that_nginx_gives_it() {
    let variable = |text: &str| Part::Variable(text.into());
    let made = key(&[variable("http"), variable("localhost:8080"), variable("/")]);
    assert_eq!(text(&made), b"httplocalhost:8080/");
    assert_eq!(hex(md5(&made)), hex(Md5::digest(b"httplocalhost:8080/").into()));
    assert_eq!(hex(md5(&key(&[]))), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(hex(md5(&key(&[Part::Literal(b"abc".into())]))), "900150983cd24fb0d6963f7d28e17f72");
}

#[test]
fn a_literal_and_a_variable_with_the_same_text_are_told_apart() {
    let one = [Part::Literal(b"a".into()), Part::Variable(b"b".into())];
    let other = [Part::Variable(b"a".into()), Part::Literal(b"b".into())];
    assert_ne!(key(&one), key(&other));
}

#[test]
fn a_text_of_8_kib_is_a_key_and_one_byte_more_is_not() {
    let mut text = vec![b'x'; LONGEST_TEXT];
    let parts = || {
        let mut parts = Parts::default();
        parts.note(0, LONGEST_TEXT);
        parts
    };
    assert_eq!(parts().close(&mut text.clone()), Ok(()));
    text.push(b'x');
    assert_eq!(parts().close(&mut text), Err(TooLong));
}

#[test]
fn a_border_between_key_and_variant_cannot_be_moved() {
    assert_ne!(md5_of_variant(b"ab", b"c"), md5_of_variant(b"a", b"bc"));
    assert_ne!(md5_of_variant(b"ab", b""), md5(b"ab"));
}
