//! Bodies that prove themselves: a line that says which, and bytes that follow from that line alone.

use std::sync::atomic::{AtomicU64, Ordering};

use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, Request, Step, answer};

/// An API whose responses prove themselves. `/NAME/LENGTH/SECONDS` sets length and lifetime; it varies by
/// `X-Variant`, and every response is a version of its own.
pub fn origin() -> Origin {
    let versions = AtomicU64::new(0);
    Origin::start(move |request: &Request| {
        let version = versions.fetch_add(1, Ordering::SeqCst);
        let path = request.target();
        let mut words = path.rsplit('/');
        let seconds: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(3600);
        let length: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(100);
        let body = body(path, request.field("x-variant").unwrap_or("none"), version, length);
        let control = format!("max-age={seconds}");
        let steps = answer(200, &[("Cache-Control", control.as_str()), ("Vary", "X-Variant")], &body);
        in_pieces(steps)
    })
}

pub fn check(path: &str, variant: &str, answer: &Answer) -> Result<(), String> {
    let end = answer.body.iter().position(|&byte| byte == b'\n').ok_or("no first line")?;
    let line = String::from_utf8_lossy(&answer.body[..end]).into_owned();
    let mut words = line.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (found_path, found_variant, version, length) = (next(), next(), next(), next());
    if (answer.status, found_path, found_variant) != (200, path, variant) {
        return Err(format!("{} {line:?} for {path} {variant}", answer.status));
    }
    let version = version.parse().map_err(|_| format!("no version in {line:?}"))?;
    let length = length.parse().map_err(|_| format!("no length in {line:?}"))?;
    let expected = body(path, variant, version, length);
    match answer.body == expected {
        true => Ok(()),
        false => {
            let at = answer.body.iter().zip(&expected).position(|(found, wanted)| found != wanted);
            Err(format!("{line:?} is wrong at {at:?}, {} of {} bytes", answer.body.len(), expected.len()))
        }
    }
}

fn body(path: &str, variant: &str, version: u64, length: usize) -> Vec<u8> {
    let mut body = format!("{path} {variant} {version} {length}\n").into_bytes();
    let mut state = body.iter().fold(0xcbf2_9ce4_8422_2325u64, |state, &byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    body.reserve(length + 8);
    while body.len() < length {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        body.extend_from_slice(&state.to_le_bytes());
    }
    body.truncate(length.max(1));
    body
}

/// As a network delivers it: not all at once.
fn in_pieces(steps: Vec<Step>) -> Vec<Step> {
    let pieces = |bytes: Vec<u8>| bytes.chunks(200_000).map(|piece| Step::Send(piece.to_vec())).collect();
    let one = |step| match step {
        Step::Send(bytes) => pieces(bytes),
        other => vec![other],
    };
    steps.into_iter().flat_map(one).collect()
}

#[test]
fn the_judge_of_these_scenarios_sees_every_kind_of_wrong_answer() {
    let good = |path: &str, version| Answer {
        status: 200,
        head: String::new(),
        fields: Vec::new(),
        body: body(path, "a", version, 100_000),
    };
    assert_eq!(check("/x/100000/9", "a", &good("/x/100000/9", 7)), Ok(()));
    assert!(check("/y/100000/9", "a", &good("/x/100000/9", 7)).is_err(), "another page");
    assert!(check("/x/100000/9", "b", &good("/x/100000/9", 7)).is_err(), "another variant");
    let broken = |spoil: &dyn Fn(&mut Vec<u8>)| {
        let mut answer = good("/x/100000/9", 7);
        spoil(&mut answer.body);
        check("/x/100000/9", "a", &answer).is_err()
    };
    assert!(broken(&|body| body[70_000] ^= 4), "one bit");
    assert!(broken(&|body| body.truncate(99_999)), "cut");
    assert!(broken(&|body| body[50_000..].copy_from_slice(&good("/x/100000/9", 8).body[50_000..])), "mixed");
    assert!(broken(&|body| body[65_536..].fill(0)), "a hole");
}
