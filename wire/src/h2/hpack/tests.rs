//! HPACK as a whole: the examples of RFC 7541, what a block may not be, and the table against a naive one.

use super::decoder::{CompressionError, Extent, HpackDecoder};
use super::{encoder, huffman, integer, static_table};
use proptest::prelude::*;
use std::collections::VecDeque;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<Pairs, CompressionError> {
    let mut pairs = Vec::new();
    let extent = decoder.decode(block, usize::MAX, |line| {
        assert_eq!(line.size(), line.name().len() + line.value().len() + 32);
        let text = [line.name(), b": ", line.value(), b"\r\n"].concat();
        assert_eq!(line.text(), text);
        pairs.push((line.name().to_vec(), line.value().to_vec()));
    })?;
    assert_eq!(extent, Extent::Whole);
    Ok(pairs)
}

fn lines(pairs: &Pairs) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    pairs.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
}

/// Blocks of one connection: hexadecimal digits, lines, and the size of the table afterwards.
type Example = (&'static str, &'static [&'static str], usize);

fn check(examples: &[Example]) {
    let mut decoder = HpackDecoder::default();
    for (block, expected, size) in examples {
        let pairs = decode(&mut decoder, &octets(block)).expect("a block of the RFC");
        assert_eq!(lines(&pairs), *expected);
        assert_eq!(decoder.table_size(), *size, "{block}");
    }
}

#[test]
fn representations_are_those_of_c_2() {
    check(&[(
        "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        &["custom-key: custom-header"],
        55,
    )]);
    check(&[("040c 2f73 616d 706c 652f 7061 7468", &[":path: /sample/path"], 0)]);
    check(&[("1008 7061 7373 776f 7264 0673 6563 7265 74", &["password: secret"], 0)]);
    check(&[("82", &[":method: GET"], 0)]);
}

const FIRST: &[&str] = &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const SECOND: &[&str] =
    &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"];
const THIRD: &[&str] = &[
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
];

#[test]
fn requests_are_those_of_c_3_without_and_of_c_4_with_huffman_code() {
    check(&[
        ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST, 57),
        ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND, 110),
        ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", THIRD, 164),
    ]);
    check(&[
        ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST, 57),
        ("8286 84be 5886 a8eb 1064 9cbf", SECOND, 110),
        ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD, 164),
    ]);
}

const FOUND: &[&str] = &[
    ":status: 302",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:21 GMT",
    "location: https://www.example.com",
];
const REDIRECT: &[&str] = &[
    ":status: 307",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:21 GMT",
    "location: https://www.example.com",
];
const COOKIE: &[&str] = &[
    ":status: 200",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:22 GMT",
    "location: https://www.example.com",
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];

#[test]
fn responses_and_evictions_are_those_of_c_5_without_and_of_c_6_with_huffman_code() {
    // The first block of each starts with a size update, for the table of 256 octets that the examples suppose.
    check(&[
        (
            "3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a
             3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            FOUND,
            222,
        ),
        ("4803 3330 37c1 c0bf", REDIRECT, 222),
        (
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a
             6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d
             6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
            COOKIE,
            215,
        ),
    ]);
    check(&[
        (
            "3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
             919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            FOUND,
            222,
        ),
        ("4883 640e ffc1 c0bf", REDIRECT, 222),
        (
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d
             d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106
             3d50 07",
            COOKIE,
            215,
        ),
    ]);
}

#[test]
fn a_block_that_is_not_as_the_rfc_has_it_is_an_error() {
    for (block, why) in [
        ("80", "index 0 (§6.1)"),
        ("be", "an index behind both tables (§2.3.3)"),
        ("ff80808080808000", "an index without bound (§5.1)"),
        ("ff", "an index that is cut off"),
        ("7f00", "a name's index behind both tables"),
        ("40", "a literal without name"),
        ("4001", "a name that is cut off"),
        ("400161", "a literal without value"),
        ("41", "a value that is missing"),
        ("4103 6161", "a value that is cut off"),
        ("4181 00", "a value with zeros for padding (§5.2)"),
        ("4184 ffffffff", "a value with EOS (§5.2)"),
        ("82 20", "a size update within a block (§4.2)"),
        ("3fe21f", "a size update above 4096 (§6.3)"),
    ] {
        assert!(decode(&mut HpackDecoder::default(), &octets(block)).is_err(), "{why}");
    }
    assert_eq!(decode(&mut HpackDecoder::default(), &octets("20 3fe11f")), Ok(Vec::new()));
}

#[test]
fn a_smaller_table_that_was_advertised_must_be_taken_up_by_the_next_block() {
    let mut decoder = HpackDecoder::default();
    decoder.advertised(100);
    assert!(decode(&mut decoder, &octets("82")).is_err());
    assert_eq!(decode(&mut decoder, &octets("3f45 82")).map(|pairs| pairs.len()), Ok(1));
    assert_eq!(decode(&mut decoder, &octets("82")).map(|pairs| pairs.len()), Ok(1));
    assert!(decode(&mut decoder, &octets("3f46")).is_err());
}

#[test]
fn past_its_bound_a_list_is_not_given_and_the_table_goes_on() {
    let mut decoder = HpackDecoder::default();
    let mut block = vec![0x82];
    for letter in b"abc" {
        block.extend_from_slice(&[0x40, 1, *letter, 1, b'1']);
    }
    let mut given = 0;
    // `:method: GET` counts 42, each of the others 34.
    assert_eq!(decoder.decode(&block, 42 + 34 + 33, |_| given += 1), Ok(Extent::Overlarge));
    assert_eq!((given, decoder.table_size()), (2, 3 * 34));
    let pairs = decode(&mut decoder, &octets("be bf c0")).expect("the table has them");
    assert_eq!(lines(&pairs), ["c: 1", "b: 1", "a: 1"]);
    assert_eq!(decoder.decode(&block, 42 + 3 * 34, |_| {}), Ok(Extent::Whole));
}

#[test]
fn nothing_is_allocated_before_the_first_entry_and_memory_is_bounded() {
    let mut decoder = HpackDecoder::default();
    assert_eq!(decode(&mut decoder, &octets("8286 84")).map(|pairs| pairs.len()), Ok(3));
    assert_eq!(decoder.memory(), 0);
    let mut most = 0;
    for length in (0..3000).chain(0..3000) {
        let mut block = vec![0x41];
        integer::encode(&mut block, 0, 7, length * 7 % 1000);
        block.resize(block.len() + length * 7 % 1000, b'x');
        assert!(decode(&mut decoder, &block).is_ok());
        most = most.max(decoder.memory());
    }
    assert!(most <= 3 * 4096 + 2048, "{most}");
}

#[test]
fn lines_are_encoded_in_the_shortest_way_without_a_table() {
    let encoded = |encode: fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        encode(&mut out);
        out
    };
    assert_eq!(encoded(|out| encoder::status(out, 200)), [0x88]);
    assert_eq!(encoded(|out| encoder::status(out, 302)), octets("0882 6402"));
    assert_eq!(encoded(|out| encoder::size_update(out, 0)), [0x20]);
    assert_eq!(encoded(|out| encoder::field(out, b"Accept-Encoding", b"gzip, deflate")), [0x90]);
    assert_eq!(encoded(|out| encoder::field(out, b":method", b"POST")), [0x83]);
    assert_eq!(
        encoded(|out| encoder::field(out, b"Cache-Control", b"private")),
        octets("0f09 85 aec3771a4b")
    );
    assert_eq!(encoded(|out| encoder::field(out, b"X", b"\n")), octets("00 01 78 01 0a"));
    assert_eq!(encoded(|out| encoder::field(out, b"Set-Cookie", b"\0")), octets("0f28 01 00"));
    assert_eq!(encoded(|out| encoder::field(out, b"authorization", b"\0")), octets("1f08 01 00"));
    assert_eq!(encoded(|out| encoder::field(out, b"proxy-authorization", b"\0")), octets("1f22 01 00"));
    assert_eq!(encoded(|out| encoder::number_field(out, b"age", 7)), octets("0f06 01 37"));
    let mut out = vec![1];
    let place = encoder::raw_field(&mut out, b"Date", b"Mon, 21 Oct 2013");
    assert_eq!(&out[place], b"Mon, 21 Oct 2013");
}

#[test]
fn a_value_that_is_made_in_place_gets_its_length_before_it() {
    for length in [0, 1, 126, 127, 128, 254, 255, 5000, 40_000] {
        let value: Vec<u8> = (0..length).map(|at| b'a' + (at % 26) as u8).collect();
        let mut made = b"before".to_vec();
        assert_eq!(encoder::made_field(&mut made, b"X-Made", |out| out.extend_from_slice(&value)), ());
        let mut expected = b"before".to_vec();
        encoder::raw_field(&mut expected, b"X-Made", &value);
        assert_eq!(made, expected, "{length}");
    }
}

/// The table as the RFC describes it, regardless of cost.
#[derive(Default)]
struct Naive {
    latest_first: VecDeque<(Vec<u8>, Vec<u8>)>,
    largest: usize,
}

impl Naive {
    fn evict(&mut self, room: usize) {
        let size = |table: &VecDeque<(Vec<u8>, Vec<u8>)>| -> usize {
            table.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
        };
        while size(&self.latest_first) > room {
            self.latest_first.pop_back();
        }
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + 32;
        self.evict(self.largest.saturating_sub(size));
        if size <= self.largest {
            self.latest_first.push_front((name.to_vec(), value.to_vec()));
        }
    }
}

#[derive(Debug, Clone)]
enum Do {
    Insert { name: String, value_length: usize },
    Reuse { age: usize, value_length: usize },
    Look { age: usize },
    Resize(usize),
}

fn anything() -> impl Strategy<Value = Do> {
    prop_oneof![
        4 => ("[a-z]{1,9}", 0..400usize).prop_map(|(name, value_length)| Do::Insert { name, value_length }),
        2 => (0..12usize, 0..60usize).prop_map(|(age, value_length)| Do::Reuse { age, value_length }),
        4 => (0..12usize).prop_map(|age| Do::Look { age }),
        1 => prop_oneof![Just(0), 0..700usize, Just(4096)].prop_map(Do::Resize),
    ]
}

proptest! {
    #[test]
    fn the_table_holds_what_a_naive_one_holds(steps in proptest::collection::vec(anything(), 0..120)) {
        let mut decoder = HpackDecoder::default();
        let mut naive = Naive { largest: 4096, ..Naive::default() };
        let mut filler = 0u8;
        for step in steps {
            let mut block = Vec::new();
            let mut value = |length: usize| {
                filler = filler.wrapping_add(1);
                vec![b'a' + filler % 26; length]
            };
            let expected = match step {
                Do::Insert { name, value_length } => {
                    let value = value(value_length);
                    block.push(0x40);
                    for text in [name.as_bytes(), &value[..]] {
                        integer::encode(&mut block, 0x80, 7, huffman::encoded_length(text));
                        huffman::encode(text, &mut block);
                    }
                    naive.insert(name.as_bytes(), &value);
                    Some(vec![(name.into_bytes(), value)])
                }
                Do::Reuse { age, value_length } => {
                    let value = value(value_length);
                    integer::encode(&mut block, 0x40, 6, static_table::LENGTH + 1 + age);
                    integer::encode(&mut block, 0, 7, value.len());
                    block.extend_from_slice(&value);
                    naive.latest_first.get(age).cloned().map(|(name, _)| {
                        naive.insert(&name, &value);
                        vec![(name, value)]
                    })
                }
                Do::Look { age } => {
                    integer::encode(&mut block, 0x80, 7, static_table::LENGTH + 1 + age);
                    naive.latest_first.get(age).cloned().map(|pair| vec![pair])
                }
                Do::Resize(largest) => {
                    encoder::size_update(&mut block, largest);
                    naive.largest = largest;
                    naive.evict(largest);
                    Some(Vec::new())
                }
            };
            prop_assert_eq!(decode(&mut decoder, &block).ok(), expected);
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(
        pairs in proptest::collection::vec(("[a-zA-Z-]{1,80}|set-cookie|:path|accept-encoding", "[ -~]{0,300}"), 0..12),
    ) {
        let mut block = Vec::new();
        let mut expected = Vec::new();
        for (index, (name, value)) in pairs.iter().enumerate() {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            match index % 3 {
                0 => encoder::field(&mut block, name, value),
                1 => drop(encoder::raw_field(&mut block, name, value)),
                _ => encoder::made_field(&mut block, name, |out| out.extend_from_slice(value)),
            }
            expected.push((name.to_ascii_lowercase(), value.to_vec()));
        }
        let mut decoder = HpackDecoder::default();
        prop_assert_eq!(decode(&mut decoder, &block), Ok(expected));
        prop_assert_eq!(decoder.table_size(), 0);
    }
}
