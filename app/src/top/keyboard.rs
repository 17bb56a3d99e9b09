//! The keyboard: the bytes that a terminal sends, as keys.
//!
//! A sequence may arrive in pieces: the rest of it is waited for, but not for long, because Esc alone is the first byte of each. A
//! sequence without a meaning here is skipped as a whole, so that its bytes are not taken for letters. Next: `keys`, which gives keys a meaning.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::str;

/// How long the rest of a sequence may take.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Bytes of a sequence at the most: a longer one is skipped.
const LONGEST: usize = 64;
const ESC: u8 = 0x1b;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// A letter together with Ctrl.
    Control(char),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

/// Keys by the last byte of their sequence: `ESC [ A`, `ESC O A`, and with modifiers `ESC [ 1 ; 5 A`.
const BY_LAST: &[(u8, Key)] = &[
    (b'A', Key::Up),
    (b'B', Key::Down),
    (b'C', Key::Right),
    (b'D', Key::Left),
    (b'F', Key::End),
    (b'H', Key::Home),
    (b'Z', Key::BackTab),
];

/// Keys by the number in their sequence: `ESC [ 5 ~`.
const BY_NUMBER: &[(u32, Key)] =
    &[(1, Key::Home), (4, Key::End), (5, Key::PageUp), (6, Key::PageDown), (7, Key::Home), (8, Key::End)];

/// Reads keys for as long as `take` returns true.
///
/// # Errors
/// The terminal cannot be read any more.
pub fn read(terminal: &File, mut take: impl FnMut(Key) -> bool) -> io::Result<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        let patience = (!bytes.is_empty()).then_some(&PATIENCE);
        let is_over = match poll(&mut [PollFd::new(terminal, PollFlags::IN)], patience) {
            Ok(ready) => ready == 0,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if !is_over {
            match rustix::io::read(terminal, &mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(error) => return Err(error.into()),
            }
        }
        while let Some((length, key)) = first(&bytes, is_over) {
            bytes.drain(..length);
            if key.is_some_and(|key| !take(key)) {
                return Ok(());
            }
        }
    }
}

/// The length of the first key or sequence, and the key if it is one; `None` if the rest of it is still to come. `is_over` says that
/// nothing more has come for a while.
fn first(bytes: &[u8], is_over: bool) -> Option<(usize, Option<Key>)> {
    let is_over = is_over || bytes.len() >= LONGEST;
    match bytes {
        [ESC] if !is_over => None,
        [ESC] | [ESC, ESC, ..] => Some((1, Some(Key::Escape))),
        [ESC, b'[' | b'O', ..] => sequence(bytes).or_else(|| is_over.then_some((bytes.len(), None))),
        // Alt: a letter with it has no meaning here, and another key the one that it has without.
        [ESC, rest @ ..] => letter(rest, is_over)
            .map(|(length, key)| (length + 1, key.filter(|key| !matches!(key, Key::Char(_))))),
        _ => letter(bytes, is_over),
    }
}

/// A key that sends one letter.
fn letter(bytes: &[u8], is_over: bool) -> Option<(usize, Option<Key>)> {
    let key = match *bytes.first()? {
        b'\r' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f => Key::Backspace,
        ESC => Key::Escape,
        byte @ 1..=26 => Key::Control(char::from(b'a' - 1 + byte)),
        0..b' ' => return Some((1, None)),
        _ => {
            let bytes = &bytes[..bytes.len().min(4)];
            let chunk = bytes.utf8_chunks().next()?;
            return match chunk.valid().chars().next() {
                Some(letter) => Some((letter.len_utf8(), Some(Key::Char(letter)))),
                None if !is_over && chunk.invalid() == bytes => None,
                None => Some((chunk.invalid().len(), None)),
            };
        }
    };
    Some((1, Some(key)))
}

/// A key that sends a control sequence (ECMA-48 §5.4), or as a terminal in its application mode does; `None` if the sequence is cut.
fn sequence(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let rest = &bytes[2..];
    match (bytes[1], rest) {
        // A function key of the Linux console, and the mouse in its oldest form: letters follow that are none.
        (b'[', [b'[', ..]) => return (rest.len() >= 2).then_some((4, None)),
        (b'[', [b'M', ..]) => return (rest.len() >= 4).then_some((6, None)),
        _ => {}
    }
    let end = rest.iter().position(|byte| !(b' '..=b'?').contains(byte))?;
    let last = rest[end];
    // Another byte belongs to what comes next.
    if !(b'@'..=b'~').contains(&last) {
        return Some((2 + end, None));
    }
    Some((3 + end, key(str::from_utf8(&rest[..end]).unwrap_or_default(), last)))
}

fn key(parameters: &str, last: u8) -> Option<Key> {
    // Modifiers are a sum of these and others, after 1.
    const SHIFT: u32 = 1;
    const CONTROL: u32 = 4;
    const LOCKS: u32 = 64 + 128;
    const RELEASED: u32 = 3;
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok()).unwrap_or(1);
    let mut parameters = parameters.split(';').map(|parameter| parameter.split(':'));
    let code = number(parameters.next()?.next());
    let mut modifiers = parameters.next().into_iter().flatten();
    let (modifiers, event) = (number(modifiers.next()).saturating_sub(1), number(modifiers.next()));
    if event == RELEASED {
        return None;
    }
    let by_number = BY_NUMBER.iter().find(|(number, _)| *number == code).map(|(_, key)| *key);
    match last {
        b'~' => by_number,
        // The code of a letter, from a terminal that tells keys apart which send the same otherwise. Private ones are keys
        // of the keypad and the like.
        b'u' => match letter(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes(), true)?.1? {
            Key::Char('\u{e000}'..='\u{f8ff}') => None,
            Key::Char(letter) if modifiers & CONTROL != 0 => Some(Key::Control(letter)),
            Key::Char(_) if modifiers & !(SHIFT | LOCKS) != 0 => None,
            Key::Tab if modifiers & SHIFT != 0 => Some(Key::BackTab),
            key => Some(key),
        },
        _ => BY_LAST.iter().find(|(known, _)| *known == last).map(|(_, key)| *key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// The keys of some bytes, and how many bytes are left because the rest is missing.
    fn keys(mut bytes: &[u8], is_over: bool) -> (Vec<Key>, usize) {
        let mut keys = Vec::new();
        while let Some((length, key)) = first(bytes, is_over) {
            bytes = &bytes[length..];
            keys.extend(key);
        }
        (keys, bytes.len())
    }

    #[rustfmt::skip]
    const CASES: &[(&str, &[Key])] = &[
        ("q", &[Key::Char('q')]),
        ("é日🚀", &[Key::Char('é'), Key::Char('日'), Key::Char('🚀')]),
        ("\r\t\x7f\n\x08", &[Key::Enter, Key::Tab, Key::Backspace, Key::Control('j'), Key::Control('h')]),
        ("\x03\x1a\x01", &[Key::Control('c'), Key::Control('z'), Key::Control('a')]),
        ("\0\x1c\x1f", &[]),
        ("\x1b[A\x1b[B\x1b[C\x1b[D", &[Key::Up, Key::Down, Key::Right, Key::Left]),
        ("\x1bOA\x1bOB\x1bOC\x1bOD\x1bOH\x1bOF", &[Key::Up, Key::Down, Key::Right, Key::Left, Key::Home, Key::End]),
        ("\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[7~\x1b[8~", &[Key::Home, Key::End, Key::Home, Key::End, Key::Home, Key::End]),
        ("\x1b[5~\x1b[6~\x1b[Z", &[Key::PageUp, Key::PageDown, Key::BackTab]),
        ("\x1b[1;5A\x1b[1;2B\x1b[5;3~", &[Key::Up, Key::Down, Key::PageUp]),
        // Insert, Delete, function keys; those of the Linux console; Alt with a letter; sequences of no key.
        ("\x1b[2~\x1b[3~\x1b[15~\x1bOP\x1b[P\x1b[1;2Qa", &[Key::Char('a')]),
        ("\x1b[[Ab", &[Key::Char('b')]),
        ("\x1bq\x1béc", &[Key::Char('c')]),
        ("\x1b\x03\x1b\r\x1b\x7f", &[Key::Control('c'), Key::Enter, Key::Backspace]),
        ("\x1b[200~x\x1b[201~\x1b[Iy\x1b[?62;4c\x1b[12;40Rz", &[Key::Char('x'), Key::Char('y'), Key::Char('z')]),
        ("\x1b[Mqqqd\x1b[<0;1;1Me\x1b[<0;1;1m", &[Key::Char('d'), Key::Char('e')]),
        // Esc before another key, and a sequence that another one breaks off.
        ("\x1b\x1b[A", &[Key::Escape, Key::Up]),
        ("\x1b[1;\x1b[B\x1bO\rf", &[Key::Down, Key::Enter, Key::Char('f')]),
        // Keys as codes, pressed, repeated and released.
        ("\x1b[99;133u\x1b[122;5:1u\x1b[99;5:3u", &[Key::Control('c'), Key::Control('z')]),
        ("\x1b[27u\x1b[13;2u\x1b[9u\x1b[9;2u\x1b[127u", &[Key::Escape, Key::Enter, Key::Tab, Key::BackTab, Key::Backspace]),
        ("\x1b[113u\x1b[83:83;2u\x1b[113;3u\x1b[57399u\x1b[1114112u", &[Key::Char('q'), Key::Char('S')]),
        ("\x1b[1;1:2A\x1b[1;1:3A", &[Key::Up]),
        ("\x1b[99999999999A\x1b[;;;~", &[Key::Up, Key::Home]),
    ];

    #[test]
    fn bytes_are_keys_however_they_are_cut() {
        for (bytes, expected) in CASES {
            assert_eq!(keys(bytes.as_bytes(), false), (expected.to_vec(), 0), "{bytes:?}");
            for cut in 0..=bytes.len() {
                let (before, after) = bytes.as_bytes().split_at(cut);
                let (mut found, left) = keys(before, false);
                let rest = [&before[before.len() - left..], after].concat();
                found.extend(keys(&rest, false).0);
                assert_eq!(found, *expected, "{bytes:?} in two pieces at {cut}");
            }
        }
    }

    #[test]
    fn what_is_not_finished_in_time_is_skipped() {
        let cases: &[(&[u8], &[Key])] = &[
            (b"\x1b", &[Key::Escape]),
            (b"q\x1b", &[Key::Char('q'), Key::Escape]),
            (b"\x1b[", &[]),
            (b"\x1bO", &[]),
            (b"\x1b[1;5", &[]),
            (b"\x1b[[", &[]),
            (b"\x1b[Mqq", &[]),
            (b"\xe6\x97", &[]),
        ];
        for (bytes, expected) in cases {
            assert!(keys(bytes, false).1 > 0, "{bytes:?} may go on");
            assert_eq!(keys(bytes, true), (expected.to_vec(), 0), "{bytes:?}");
        }
        let endless = [b"\x1b[".as_slice(), &[b'1'; 1000]].concat();
        assert_eq!(keys(&endless, false), (vec![], 0));
    }

    #[test]
    fn bytes_that_are_no_letters_are_skipped() {
        assert_eq!(keys(b"\xffa\xc3(\x80\xf0\x9f\x9fb", false).0, ['a', '(', 'b'].map(Key::Char));
        for first in 0..=255 {
            for second in 0..=255 {
                assert_eq!(keys(&[first, second], true).1, 0, "{first} {second}");
            }
        }
    }

    #[test]
    fn esc_alone_is_a_key_once_nothing_follows_and_the_end_is_an_error() {
        let (theirs, ours) = rustix::pipe::pipe().expect("a pipe");
        let (mut ours, theirs) = (File::from(ours), File::from(theirs));
        let (sender, receiver) = channel();
        let reader = std::thread::spawn(move || read(&theirs, |key| sender.send(key).is_ok()));
        let next = || receiver.recv_timeout(Duration::from_secs(30));
        ours.write_all(b"\x1b").expect("a pipe");
        assert_eq!(next(), Ok(Key::Escape));
        ours.write_all("\x1b[A日".as_bytes()).expect("a pipe");
        assert_eq!((next(), next()), (Ok(Key::Up), Ok(Key::Char('日'))));
        drop(ours);
        let ended = reader.join().expect("no panic");
        assert!(ended.is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof));
    }
}
