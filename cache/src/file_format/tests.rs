//! Files come back as they were written, and in no other way.

use super::*;
use proptest::prelude::*;

fn head(status: u16, lines: &[(String, String)]) -> StoredHead {
    let mut headers = Headers::new();
    lines.iter().for_each(|(name, value)| headers.push(name.as_bytes(), value.as_bytes()));
    let lifetime = Lifetime {
        fresh_until: -5,
        initial_age: Duration::from_secs(3),
        stale_while_revalidate: None,
        stale_if_error: Some(Duration::from_secs(60)),
        revalidation: Revalidation::Implied,
        vary: Default::default(),
        public: false,
        always_validate: false,
    };
    StoredHead::from_stored(status, headers, None, lifetime, 1234)
}

fn header() -> FileHeader {
    FileHeader {
        born: 7,
        id: 1,
        epoch: 2,
        head_length: 300,
        head_checksum: 4,
        body_length: 3 * BLOCK as u64 + 1,
        table_checksum: 5,
        coded_length: 9,
        coded_checksum: 6,
    }
}

#[test]
fn a_header_comes_back_and_a_bit_less_or_other_does_not() {
    let bytes = header().encode();
    assert_eq!(FileHeader::decode(&bytes), Some(header()));
    assert_eq!(
        (header().blocks(), header().file_length()),
        (4, Some(FIXED as u64 + 300 + 3 * 65536 + 1 + 16 + 9))
    );
    for length in 0..FIXED {
        assert_eq!(FileHeader::decode(&bytes[..length]), None);
    }
    for bit in 0..FIXED * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(FileHeader::decode(&flipped), None, "bit {bit}");
    }
}

#[test]
fn lengths_that_no_file_can_have_are_no_lengths() {
    let huge = FileHeader { body_length: u64::MAX - 3, ..header() };
    assert_eq!(huge.file_length(), None);
}

#[test]
fn coded_bodies_come_back_and_one_that_nobody_knows_is_passed_over() {
    let bodies = [(Coding::Zstd, &b"zz"[..]), (Coding::Gzip, b""), (Coding::Br, b"b")];
    let bytes = encode_coded(bodies.into_iter());
    let found = decode_coded(&bytes).expect("it was written so");
    assert!(found.iter().map(|(coding, body)| (*coding, &body[..])).eq(bodies));
    let later = [&[200, 1, 0, 0, 0, b'x'], &bytes[..]].concat();
    assert_eq!(decode_coded(&later), Some(found));
    for length in [1, 4, 6, bytes.len() - 1] {
        assert_eq!(decode_coded(&bytes[..length]), None, "{length}");
    }
}

#[test]
fn a_file_of_an_earlier_version_is_nothing_to_complain_about() {
    for (version, end) in [(1u32, 60), (2, 68)] {
        let mut fixed = header().encode();
        fixed[8..12].copy_from_slice(&version.to_le_bytes());
        let checksum = crc32fast::hash(&fixed[..end]);
        fixed[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
        assert!(FileHeader::decode(&fixed).is_none() && is_foreign(&fixed), "{version}");
        fixed[20] ^= 1;
        assert!(!is_foreign(&fixed), "{version}");
    }
}

#[test]
fn checksums_do_not_depend_on_how_a_body_arrives() {
    let body: Vec<u8> = (0..200_000u32).map(|number| ((number * 7) >> 3) as u8).collect();
    let table = |step: usize| {
        let mut sums = BlockChecksums::default();
        body.chunks(step).for_each(|piece| sums.update(piece));
        sums.finish()
    };
    assert_eq!(table(200_000), table(1_000));
    assert_eq!(table(65_536), table(65_535));
    assert_eq!(table(7).0.len(), 4 * 4);
    assert!(body_matches(&body, &table(100_000).0) && !body_matches(&body[1..], &table(100_000).0));
}

proptest! {
    #[test]
    fn heads_come_back_as_they_were(
        key in proptest::collection::vec(any::<u8>(), 0..50),
        variant in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..50)),
        status in 200u16..600,
        lines in proptest::collection::vec(("[a-zA-Z-]{1,12}", "[!-~]{0,20}"), 0..8),
    ) {
        let fields = VaryFields::new(vec![Box::from(&b"accept"[..]), Box::from(&b"x-a"[..])]);
        let vary = variant.as_ref().map(|values| (&fields, &values[..]));
        let head = head(status, &lines);
        let found = decode_head(&encode_head(&key, vary, head.view()), 77).expect("it was written so");
        prop_assert_eq!(&found.key, &key);
        prop_assert_eq!(found.vary, variant.map(|values| (fields.clone(), values.into_boxed_slice())));
        prop_assert_eq!(found.head.status, status);
        prop_assert_eq!(found.head.lifetime, head.lifetime);
        prop_assert_eq!(found.head.headers, head.headers);
        prop_assert_eq!((found.head.stored_at, found.head.content_length), (1234, Some(77)));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_head(&bytes, 0);
        let _ = FileHeader::decode(&bytes);
        let _ = decode_coded(&bytes);
    }
}
