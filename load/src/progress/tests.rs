//! What the live view writes, byte by byte.

use super::*;

fn at(milliseconds: u64) -> Progress {
    Progress {
        elapsed: Duration::from_millis(milliseconds),
        of: Some(Duration::from_secs(10)),
        answers: 91_234,
        rate: 91_234.0,
        p50: Duration::from_micros(1_100),
        p99: Duration::from_micros(2_900),
        ..Progress::default()
    }
}

fn written(style: Style, act: impl FnOnce(&mut Live<&mut Vec<u8>>)) -> String {
    let mut bytes = Vec::new();
    let mut live = Live::new(&mut bytes, style);
    act(&mut live);
    drop(live);
    String::from_utf8(bytes).expect("the view writes text")
}

#[test]
fn a_terminal_has_one_line_that_is_redrawn_and_taken_away_at_the_end() {
    let text = written(Style::Redrawn(|| Some(120)), |live| {
        live.show(&at(4_200));
        live.show(&at(4_300));
    });
    assert_eq!(
        text,
        "\r4.2s of 10s   91,234/s   p50 1.1ms   p99 2.9ms   0 errors   6s left\x1b[K\
         \r4.3s of 10s   91,234/s   p50 1.1ms   p99 2.9ms   0 errors   6s left\x1b[K\r\x1b[K"
    );
}

#[test]
fn a_line_is_never_wider_than_the_terminal() {
    for columns in [0, 1, 20, 40] {
        let narrow: fn() -> Option<u16> = match columns {
            0 => || Some(0),
            1 => || Some(1),
            20 => || Some(20),
            _ => || Some(40),
        };
        let text = written(Style::Redrawn(narrow), |live| live.show(&at(100)));
        let line = text.strip_prefix('\r').and_then(|rest| rest.split('\x1b').next()).unwrap_or_default();
        assert!(line.chars().count() < columns.max(1), "{columns}: {line}");
    }
}

#[test]
fn without_a_terminal_there_are_plain_lines_every_few_seconds() {
    let text = written(Style::Lines(Duration::from_secs(5)), |live| {
        for tenth in 0..=100 {
            live.show(&at(tenth * 100));
        }
    });
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        text.starts_with("5.0s of 10s   91,234/s") && !text.contains('\x1b') && !text.contains('\r'),
        "{text}"
    );
}

#[test]
fn measuring_after_warming_up_counts_its_lines_anew() {
    let text = written(Style::Lines(Duration::from_secs(2)), |live| {
        for warming in [true, false] {
            live.label("step 3 of 10 keep\x1b-alive");
            for tenth in 0..30 {
                live.show(&Progress { warming, ..at(tenth * 100) });
            }
        }
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("step 3 of 10 keep\\x1b-alive: warming up, 2.0s of 10s"), "{text}");
    assert!(lines[1].starts_with("step 3 of 10 keep\\x1b-alive: 2.0s of 10s"), "{text}");
}

#[test]
fn what_is_left_is_the_sooner_of_time_and_requests() {
    let mut progress = Progress { most: Some(200_000), rate: 50_000.0, answers: 100_000, ..at(1_000) };
    assert_eq!(progress.left(), Some(Duration::from_secs(2)));
    progress.errors.timeout = 100_000;
    assert_eq!(progress.left(), Some(Duration::ZERO));
    progress.rate = 0.0;
    assert_eq!(progress.left(), Some(Duration::from_secs(9)));
    progress.of = None;
    assert_eq!(progress.left(), None);
    assert!(line("", &progress).ends_with("100,000 errors (timeout)"), "{}", line("", &progress));
}

#[test]
fn a_line_that_stays_stands_above_the_redrawn_one() {
    let text = written(Style::Redrawn(|| Some(80)), |live| {
        live.show(&at(100));
        live.say("step 1: 91,234 requests/s");
        live.say("step 2: wrong");
    });
    assert!(text.ends_with("left\x1b[K\r\x1b[Kstep 1: 91,234 requests/s\nstep 2: wrong\n"), "{text:?}");
}

#[test]
fn words_of_others_command_no_terminal() {
    let text = written(Style::Lines(Duration::ZERO), |live| {
        live.say("it says x=\u{9b}31m");
        live.label("step\u{9d}0;x\n");
        live.show(&at(100));
    });
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    assert!(text.starts_with("it says x=\\x9b31m\nstep\\x9d0;x\\x0a: 0.1s"), "{text:?}");
}
