//! Answers cut at every byte, beside `millstream-wire`'s own reading of them.

use super::*;
use crate::report::samples;
use proptest::prelude::*;

/// When all bytes come.
const NOW: u64 = 7;
/// Requests on the way, more than are answered.
const ASKED: usize = 300;

/// Where a connection ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// Between answers, or within a head.
    BeforeAnswer,
    /// Within a body.
    ShortBody,
    /// Behind a body that goes on until the connection ends.
    Answered(Answer),
}

/// What answers are read against: whether the request was a HEAD, and what the body must be.
type Awaited<'a> = (bool, Option<&'a [u8]>);

type Read = (Vec<Answer>, Result<End, Broken>);

/// What reading these bytes comes to, cut where `cuts` says; the answers and where it stopped.
fn read(bytes: &[u8], cuts: &[usize], awaited: Awaited<'_>) -> Read {
    read_with(&mut LastHead::default(), bytes, cuts, awaited)
}

fn read_with(last: &mut LastHead, bytes: &[u8], cuts: &[usize], (is_head, body): Awaited<'_>) -> Read {
    let mut target = samples::plan().targets.remove(0);
    (target.is_head, target.expect.body) = (is_head, body.map(Arc::from));
    let asked = |_| &target;
    let mut pipeline = Pipeline::default();
    (0..ASKED).for_each(|_| pipeline.open(0, &target));
    while pipeline.is_held_up() {
        let length = pipeline.unsent(&asked, last).len();
        pipeline.sent(length, &asked);
    }
    let mut answers = Vec::new();
    let mut from = 0;
    for to in cuts.iter().map(|cut| cut % (bytes.len() + 1)).filter(|cut| *cut > 0).chain([bytes.len()]) {
        while from < to {
            match pipeline.read(&bytes[from..to], &asked, last, NOW) {
                Ok((read, event)) => {
                    assert!(read > 0 && read <= to - from);
                    assert!(event.is_some() || read == to - from, "without a response all is consumed");
                    from += read;
                    if let Some(event) = event {
                        let Event::Answered(0, answer) = event else { panic!("{event:?}") };
                        assert_eq!(answer.first_byte, NOW);
                        answers.push(answer);
                    }
                }
                Err(broken) => return (answers, Err(broken)),
            }
        }
    }
    let is_cut = pipeline.has_begun(0);
    (
        answers,
        Ok(match pipeline.end() {
            Some(answer) => End::Answered(answer),
            None if is_cut => End::ShortBody,
            None => End::BeforeAnswer,
        }),
    )
}

fn check(bytes: &str, awaited: Awaited<'_>, expected: &[(u16, u64)], end: Result<End, ()>) {
    for cuts in [vec![], (0..bytes.len()).collect::<Vec<_>>()] {
        let (answers, ended) = read(bytes.as_bytes(), &cuts, awaited);
        let told: Vec<(u16, u64)> = answers.iter().map(|answer| (answer.status, answer.body)).collect();
        assert_eq!((told.as_slice(), ended.map_err(|_| ())), (expected, end), "{bytes:?}");
    }
}

const ANY: Awaited<'_> = (false, None);

#[test]
fn answers_end_where_their_framing_says_however_they_are_cut() {
    let between = Ok(End::BeforeAnswer);
    let five = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    check(five, ANY, &[(200, 5)], between);
    check(&five.repeat(3), ANY, &[(200, 5); 3], between);
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
        ANY,
        &[(200, 3)],
        between,
    );
    check(
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n",
        ANY,
        &[(204, 0), (304, 0)],
        between,
    );
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nLink: <a>\r\n\r\nHTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n",
        ANY,
        &[(404, 0)],
        between,
    );
    let head = (true, None);
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        head,
        &[(200, 0), (200, 0)],
        between,
    );
    let until_end =
        Answer { status: 200, is_persistent: false, is_body_right: true, body: 3, first_byte: NOW };
    check("HTTP/1.1 200 OK\r\n\r\nabc", ANY, &[], Ok(End::Answered(until_end)));
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", ANY, &[], Ok(End::ShortBody));
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
        ANY,
        &[],
        Ok(End::ShortBody),
    );
    check("HTTP/1.1 200 OK\r\nContent-", ANY, &[], between);
}

#[test]
fn what_is_no_answer_is_malformed() {
    for bytes in [
        "SSH-2.0-x\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        check(bytes, ANY, &[], Err(()));
    }
    let long = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(HEAD.total / 6));
    let (answers, end) = read(long.as_bytes(), &(0..long.len()).step_by(1000).collect::<Vec<_>>(), ANY);
    assert_eq!((answers.len(), end), (0, Err(broken("too big header"))));
}

#[test]
fn a_body_is_compared_as_it_comes() {
    let is_right = |bytes: &str, body: &[u8], is_head| {
        let awaited = (is_head, Some(body));
        let (whole, _) = read(bytes.as_bytes(), &[], awaited);
        let (cut, _) = read(bytes.as_bytes(), &(0..bytes.len()).collect::<Vec<_>>(), awaited);
        assert_eq!(whole, cut);
        whole[0].is_body_right
    };
    let five = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert!(is_right(five, b"hello", false));
    assert!(
        !is_right(five, b"hell", false)
            && !is_right(five, b"hello!", false)
            && !is_right(five, b"hullo", false)
    );
    assert!(is_right(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        b"hello",
        false
    ));
    assert!(is_right("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello", true));
    assert!(is_right("HTTP/1.1 304 Not Modified\r\n\r\n", b"hello", false));
    assert!(!is_right("HTTP/1.1 204 No Content\r\n\r\n", b"hello", false));
}

#[test]
fn a_connection_goes_on_only_where_both_sides_can() {
    let goes_on = |head: &str| {
        let (answers, _) = read(format!("{head}\r\nContent-Length: 0\r\n\r\n").as_bytes(), &[], ANY);
        answers[0].is_persistent
    };
    assert!(goes_on("HTTP/1.1 200 OK") && goes_on("HTTP/1.0 200 OK\r\nConnection: keep-alive"));
    assert!(!goes_on("HTTP/1.0 200 OK") && !goes_on("HTTP/1.1 200 OK\r\nConnection: close"));
    assert!(!goes_on("HTTP/1.1 101 Go"));
}

/// Bytes that are an answer more often than chance would make them.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let status = prop_oneof![
        Just("HTTP/1.1 200 OK\r\n"),
        Just("HTTP/1.1 103 E\r\n"),
        Just("HTTP/1.0 200\r\n"),
        Just("HTTP/1.1 304 N\r\n"),
        Just("HTTP/1.1 101 S\r\n"),
        Just("HTTP/1.1 20"),
    ];
    let field = prop_oneof![
        Just("Content-Length: 3\r\n"),
        Just("Content-Length: 0\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("Connection: close\r\n"),
        Just("X: y\r\n"),
        Just("X y\r\n"),
    ];
    let body =
        prop_oneof![Just("abc"), Just("3\r\nabc\r\n0\r\n\r\n"), Just("0\r\n\r\n"), Just(""), Just("\0\r\n")];
    let one = (status, prop::collection::vec(field, 0..3), body)
        .prop_map(|(status, fields, body)| format!("{status}{}\r\n{body}", fields.concat()).into_bytes());
    prop::collection::vec(one, 1..4).prop_map(|all| all.concat())
}

proptest! {
    /// However the bytes are cut, and whatever head came before on another connection of the thread.
    #[test]
    fn cuts_and_remembered_heads_change_nothing(
        bytes in answers(),
        before in answers(),
        mut cuts in prop::collection::vec(any::<usize>(), 0..6),
        is_head in any::<bool>(),
        was_head in any::<bool>(),
    ) {
        let length = bytes.len() + 1;
        cuts.iter_mut().for_each(|cut| *cut %= length);
        cuts.sort_unstable();
        let awaited = (is_head, None);
        let whole = read(&bytes, &[], awaited);
        prop_assert_eq!(&read(&bytes, &cuts, awaited), &whole);
        let mut last = LastHead::default();
        _ = read_with(&mut last, &before, &[], (was_head, None));
        for _ in 0..2 {
            prop_assert_eq!(&read_with(&mut last, &bytes, &cuts, awaited), &whole);
        }
    }

    /// Against a reading of the same head by `millstream-wire` alone.
    #[test]
    fn a_first_answer_is_what_the_parser_says(bytes in answers(), is_head in any::<bool>()) {
        let (told, end) = read(&bytes, &[], (is_head, None));
        let mut rest = bytes.as_slice();
        let parsed = loop {
            let mut head = ResponseHead::default();
            match head.parse(rest, &HEAD) {
                Err(_) => break Err(()),
                Ok(Progress::Partial) => break Ok(None),
                Ok(Progress::Complete) if head.is_interim() => rest = &rest[head.length..],
                Ok(Progress::Complete) => {
                    let method = if is_head { Method::Head } else { Method::Get };
                    break framing::response(method, head.version, head.status, head.view(rest))
                        .map(|framing| Some((head.status, framing))).map_err(|_| ());
                }
            }
        };
        match parsed {
            Err(()) => prop_assert!(told.is_empty() && end.is_err()),
            Ok(None) => prop_assert_eq!((told.len(), end), (0, Ok(End::BeforeAnswer))),
            Ok(Some((status, Framing::None | Framing::Length(0)))) => {
                prop_assert_eq!((told[0].status, told[0].body), (status, 0));
            }
            Ok(Some((status, Framing::Length(length)))) if !told.is_empty() => {
                prop_assert_eq!((told[0].status, told[0].body), (status, length));
            }
            Ok(Some((_, Framing::Close))) => prop_assert_eq!(told.len(), 0),
            Ok(Some(_)) => {}
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(any::<usize>(), 0..4)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        _ = read(&bytes, &cuts, ANY);
    }
}
