//! Every answer to a range is what slicing the body gives, and several of them are laid out byte by byte.

use super::*;
use crate::fixture::{admitted, worker};
use crate::representation::multipart::Multipart;
use crate::worker::Worker;
use proptest::prelude::*;
use std::rc::Rc;

thread_local! {
    static WORKER: Rc<Worker> = worker("server { listen 80; }");
}

fn request(lines: &str) -> Request {
    WORKER.with(|worker| admitted(worker, &format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")))
}

fn fields(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::default();
    lines.iter().for_each(|(name, value)| headers.push(name.as_bytes(), value.as_bytes()));
    headers
}

fn selected(lines: &str, answer: &[(&str, &str)], status: u16, length: Option<u64>) -> Chosen {
    let headers = fields(answer);
    let validators = Validators::of(headers.view());
    let offer = Offer { status, fields: headers.view(), validators, length, is_stream: false };
    choose(&request(lines), &offer)
}

#[test]
fn a_range_is_of_a_whole_answer_with_a_known_length() {
    let check = |lines: &str, answer: &[(&str, &str)], expected: Chosen| {
        assert_eq!(selected(lines, answer, 200, Some(10)), expected, "{lines}");
    };
    check("", &[], Chosen::Whole(None));
    check("Range: bytes=2-4\r\n", &[], Chosen::Part(2..5));
    check("Range: bytes=2-4,6-\r\n", &[], Chosen::Parts(vec![2..5, 6..10]));
    check("Range: bytes=20-\r\n", &[], Chosen::Unsatisfiable(10));
    check("Range: lines=2-4\r\n", &[], Chosen::Whole(None));
    check("Range: bytes=2-4\r\n", &[("Accept-Ranges", "none")], Chosen::Whole(None));
    assert_eq!(selected("Range: bytes=2-4\r\n", &[], 404, Some(10)), Chosen::Whole(None));
    assert_eq!(selected("Range: bytes=2-4\r\n", &[], 200, None), Chosen::Whole(None));
    let mut head = request("Range: bytes=2-4\r\n");
    head.method = Method::Head;
    let offer = Offer {
        status: 200,
        fields: Fields::default(),
        validators: Validators::default(),
        length: Some(10),
        is_stream: false,
    };
    assert_eq!(choose(&head, &offer), Chosen::Whole(None), "RFC 9110 §14.2: GET alone");
}

#[test]
fn if_range_asks_for_the_very_representation() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let answer = [("ETag", "\"a\""), ("Last-Modified", date)];
    for (value, is_part) in [
        ("\"a\"", true),
        ("\"b\"", false),
        ("W/\"a\"", false),
        (date, true),
        ("Mon, 07 Nov 1994 08:49:37 GMT", false),
    ] {
        let lines = format!("Range: bytes=0-1\r\nIf-Range: {value}\r\n");
        let expected = if is_part { Chosen::Part(0..2) } else { Chosen::Whole(None) };
        assert_eq!(selected(&lines, &answer, 200, Some(10)), expected, "{value}");
    }
    let same_second = [("Date", date), ("Last-Modified", date)];
    let by_date = format!("Range: bytes=0-1\r\nIf-Range: {date}\r\n");
    assert_eq!(selected(&by_date, &same_second, 200, Some(10)), Chosen::Whole(None), "RFC 9110 §8.8.2.2");
    let weak = [("ETag", "W/\"a\"")];
    assert_eq!(
        selected("Range: bytes=0-1\r\nIf-Range: W/\"a\"\r\n", &weak, 200, Some(10)),
        Chosen::Whole(None)
    );
}

#[test]
fn a_stream_gives_one_range_or_the_whole() {
    let headers = fields(&[]);
    let of_stream = |lines: &str| {
        let validators = Validators::default();
        choose(
            &request(lines),
            &Offer { status: 200, fields: headers.view(), validators, length: Some(10), is_stream: true },
        )
    };
    assert_eq!(of_stream("Range: bytes=2-4\r\n"), Chosen::Part(2..5));
    assert_eq!(of_stream("Range: bytes=2-4,6-\r\n"), Chosen::Whole(None));
}

#[test]
fn conditions_come_before_the_range_and_only_a_200_has_either() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let answer = [("ETag", "\"a\""), ("Last-Modified", date)];
    let range = "Range: bytes=2-4\r\n";
    for (lines, expected) in [
        ("If-None-Match: \"a\"\r\n".to_owned(), Chosen::NotModified),
        (format!("If-None-Match: \"a\"\r\n{range}"), Chosen::NotModified),
        (format!("If-None-Match: \"b\"\r\n{range}"), Chosen::Part(2..5)),
        (format!("If-Modified-Since: {date}\r\n"), Chosen::NotModified),
        (format!("If-Match: \"b\"\r\n{range}"), Chosen::PreconditionFailed),
        ("Range: bytes=90-\r\n".to_owned(), Chosen::Unsatisfiable(10)),
    ] {
        assert_eq!(selected(&lines, &answer, 200, Some(10)), expected, "{lines}");
        assert_eq!(selected(&lines, &answer, 404, Some(10)), Chosen::Whole(None), "{lines}");
    }
}

#[test]
fn a_head_says_what_goes_with_it() {
    let shape = |chosen: Chosen, status| {
        let headers = fields(&[("Content-Type", "a/b"), ("Content-Range", "bytes 0-1/2"), ("ETag", "\"a\"")]);
        let shape = chosen.shape(&mut request(""), headers, status, Some(10)).expect("it exists");
        let names: Vec<String> = shape
            .headers
            .view()
            .iter()
            .map(|(_, name, _)| String::from_utf8_lossy(name).into_owned())
            .collect();
        (shape.status, shape.length, names.join(" "))
    };
    let whole = "Content-Type Content-Range ETag Accept-Ranges";
    assert_eq!(shape(Chosen::Whole(None), 200), (200, Some(10), whole.to_owned()));
    assert_eq!(shape(Chosen::Whole(None), 204).1, None, "RFC 9110 §8.6");
    assert_eq!(shape(Chosen::NotModified, 200), (304, None, "ETag".to_owned()));
    assert_eq!(shape(Chosen::Part(2..5), 200).1, Some(3));
    for (chosen, status, said) in
        [(Chosen::Unsatisfiable(10), 416, Some(&b"bytes */10"[..])), (Chosen::PreconditionFailed, 412, None)]
    {
        let mut request = request("");
        let unmet =
            chosen.shape(&mut request, Headers::default(), 200, Some(10)).expect_err("it is an error");
        assert_eq!(refuse(&mut request, unmet), status);
        let fields = request.descent.accel_fields.take().unwrap_or_default();
        assert_eq!(fields.view().get(FieldId::ContentRange), said, "{status}");
    }
}

fn whole(layout: &Multipart, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for range in &layout.ranges {
        layout.write_head(range, &mut out);
        out.extend_from_slice(&body[range.start as usize..range.end as usize]);
    }
    layout.write_end(&mut out);
    out
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "one range is what is meant")]
fn several_ranges_are_laid_out_as_in_nginx() {
    let mut headers =
        fields(&[("Content-Type", "text/plain"), ("Accept-Ranges", "bytes"), ("ETag", "\"a\"")]);
    let layout = Multipart::new(&mut headers, vec![0..2, 5..6], 10);
    let media =
        String::from_utf8_lossy(headers.view().get(FieldId::ContentType).expect("a type")).into_owned();
    let boundary = media.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    assert!(boundary.len() == 20 && boundary.bytes().all(|byte| byte.is_ascii_digit()));
    assert!(!headers.view().has(FieldId::AcceptRanges) && headers.view().has(FieldId::ETag));
    let expected = format!(
        "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
         \r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 5-5/10\r\n\r\n5\
         \r\n--{boundary}--\r\n"
    );
    let body = whole(&layout, b"0123456789");
    assert_eq!(String::from_utf8_lossy(&body), expected);
    assert_eq!(layout.length(), body.len() as u64);
    let untyped = Multipart::new(&mut fields(&[]), vec![0..1], 10);
    assert!(!String::from_utf8_lossy(&whole(&untyped, b"0123456789")).contains("Content-Type"));
}

fn read_parts(body: &[u8]) -> Vec<(ContentRange, Vec<u8>)> {
    let first = body.windows(2).skip(2).position(|pair| pair == b"\r\n").expect("a boundary line") + 2;
    let boundary = body[..first].to_vec();
    let mut parts = Vec::new();
    let mut rest = &body[boundary.len()..];
    while rest != b"--\r\n" {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        let value = head.split("Content-Range: ").nth(1).expect("a range");
        let range = ContentRange::parse(value.as_bytes()).expect("a valid range");
        let (content, behind) = rest[end + 4..].split_at(range.length() as usize);
        parts.push((range, content.to_vec()));
        rest = behind.strip_prefix(&boundary[..]).expect("a boundary behind the content");
    }
    parts
}

proptest! {
    #[test]
    fn every_range_is_a_slice_of_the_body(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        specs in proptest::collection::vec((0u64..320, proptest::option::of(0u64..320), any::<bool>()), 1..6),
    ) {
        let texts: Vec<String> = specs.iter().map(|(first, last, suffix)| match (suffix, last) {
            (true, _) => format!("-{first}"),
            (false, Some(last)) => format!("{first}-{last}"),
            (false, None) => format!("{first}-"),
        }).collect();
        let length = body.len() as u64;
        let expected: Vec<&[u8]> = specs.iter().map(|(first, last, suffix)| {
            let (start, end) = match (suffix, last) {
                (true, _) => (length.saturating_sub(*first), length),
                (false, Some(last)) => (*first, (last + 1).min(length)),
                (false, None) => (*first, length),
            };
            if start < end { &body[start as usize..end as usize] } else { &[][..] }
        }).filter(|slice| !slice.is_empty()).collect();
        match selected(&format!("Range: bytes={}\r\n", texts.join(", ")), &[], 200, Some(length)) {
            Chosen::Whole(None) => prop_assert!(length == 0 || expected.len() > 1),
            Chosen::Unsatisfiable(of) => prop_assert!(of == length && expected.is_empty()),
            Chosen::Part(part) => {
                prop_assert_eq!(expected, vec![&body[part.start as usize..part.end as usize]]);
            }
            Chosen::Parts(parts) => {
                let layout = Multipart::new(&mut fields(&[("Content-Type", "a/b")]), parts, length);
                let wire = whole(&layout, &body);
                prop_assert_eq!(layout.length(), wire.len() as u64);
                let read = read_parts(&wire);
                for (range, content) in &read {
                    prop_assert_eq!(range.complete, Some(length));
                    prop_assert_eq!(&body[range.first as usize..=range.last as usize], content.as_slice());
                }
                let contents: Vec<&[u8]> = read.iter().map(|(_, content)| content.as_slice()).collect();
                prop_assert_eq!(expected, contents);
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
