//! A program in a terminal of its own: a pseudo-terminal, and as much of a screen as it takes to read what a person would see.
//!
//! The screen knows the sequences of ECMA-48 that programs here write; any other is kept in `complaints`, as a sign that something was
//! written that nobody meant. Resizing tells the program by `WINCH`, as a terminal does.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::process::{self, Running};
use crate::wait;

pub struct Terminal {
    ours: File,
    /// Kept so that its modes can be read when the program has ended.
    theirs: OwnedFd,
    screen: Arc<Mutex<Screen>>,
    program: Running,
}

impl Terminal {
    pub fn start(command: &mut Command, columns: u16, rows: u16) -> Terminal {
        let ours =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(&*name, flags, Mode::empty()).expect("its other side");
        let ours = File::from(ours);
        let screen = Arc::new(Mutex::new(Screen::new(columns, rows)));
        set_size(&ours, columns, rows);
        let side = || Stdio::from(theirs.try_clone().expect("an open file"));
        let program = Running::start(command.stdin(side()).stdout(side()).stderr(side())).expect("it starts");
        let (mut reader, seen) = (ours.try_clone().expect("an open file"), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                lock(&seen).write(&buffer[..length]);
            }
        });
        Terminal { ours, theirs, screen, program }
    }

    /// Keys are the bytes that they send.
    pub fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Without trailing blanks.
    pub fn text(&self) -> String {
        lock(&self.screen).text()
    }

    pub fn until(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let seen = wait::within(Duration::from_secs(30), || fits(&self.text()).then_some(()));
        assert!(seen.is_some(), "{what}: it shows\n{}\n{:?}", self.text(), self.complaints());
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        lock(&self.screen).resize(columns, rows);
        set_size(&self.ours, columns, rows);
        self.program.signal(Signal::WINCH);
    }

    pub fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }

    pub fn is_stopped(&self) -> bool {
        process::is_stopped(self.program.id())
    }

    pub fn ends(&mut self) -> ExitStatus {
        let ended = self.program.wait(Duration::from_secs(15));
        ended.unwrap_or_else(|| panic!("it goes on: it shows\n{}", self.text()))
    }

    /// Lines are read as lines and echoed, on the usual screen, with a cursor.
    pub fn is_as_before(&self) -> bool {
        let modes = tcgetattr(&self.theirs).expect("it is a terminal").local_modes;
        let screen = lock(&self.screen);
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && screen.usual.is_none()
            && screen.has_cursor
    }

    /// Waits, since the last output may not have been read when the program stops or ends.
    pub fn is_given_back(&self) -> bool {
        wait::within(Duration::from_secs(10), || self.is_as_before().then_some(())).is_some()
    }

    /// Unknown sequences.
    pub fn complaints(&self) -> Vec<String> {
        lock(&self.screen).complaints.clone()
    }

    pub fn has_colours(&self) -> bool {
        lock(&self.screen).has_colours
    }
}

fn set_size(terminal: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it is a terminal");
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Screen {
    lines: Vec<Vec<char>>,
    columns: usize,
    x: usize,
    y: usize,
    usual: Option<Vec<Vec<char>>>,
    has_cursor: bool,
    has_colours: bool,
    begun: Vec<u8>,
    complaints: Vec<String>,
}

impl Screen {
    fn new(columns: u16, rows: u16) -> Screen {
        let columns = usize::from(columns);
        Screen {
            lines: blank(columns, rows.into()),
            columns,
            x: 0,
            y: 0,
            usual: None,
            has_cursor: true,
            has_colours: false,
            begun: Vec::new(),
            complaints: Vec::new(),
        }
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = columns.into();
        self.lines = blank(self.columns, rows.into());
    }

    fn text(&self) -> String {
        let line = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned() + "\n";
        self.lines.iter().map(line).collect()
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.begun.push(byte);
            if is_whole(&self.begun) {
                let whole = std::mem::take(&mut self.begun);
                self.take(&whole);
            }
        }
    }

    fn take(&mut self, whole: &[u8]) {
        match whole {
            b"\n" => self.y = (self.y + 1).min(self.lines.len().saturating_sub(1)),
            b"\r" => self.x = 0,
            [0x1b, b'[', parameters @ .., last] => self.sequence(parameters, *last),
            _ => {
                let text = String::from_utf8_lossy(whole).into_owned();
                if text.contains(char::is_control) {
                    self.complaints.push(format!("{text:?}"));
                }
                for letter in text.chars() {
                    if let Some(place) = self.lines.get_mut(self.y).and_then(|line| line.get_mut(self.x)) {
                        *place = letter;
                    }
                    self.x += 1;
                }
            }
        }
    }

    fn sequence(&mut self, parameters: &[u8], last: u8) {
        let parameters = String::from_utf8_lossy(parameters);
        let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().unwrap_or(0));
        match (&*parameters, last) {
            (_, b'H') => {
                let mut next = || numbers.next().unwrap_or(1).max(1) - 1;
                (self.y, self.x) = (next(), next());
            }
            (_, b'm') => {
                self.has_colours |= numbers.any(|number| matches!(number, 30..=37 | 40..=47 | 90..=107))
            }
            ("2", b'J') => self.lines = blank(self.columns, self.lines.len()),
            ("?1049", b'h') => {
                let other = blank(self.columns, self.lines.len());
                self.usual.get_or_insert(std::mem::replace(&mut self.lines, other));
            }
            ("?1049", b'l') => {
                if let Some(usual) = self.usual.take() {
                    self.lines = usual;
                }
            }
            ("?25", b'h') => self.has_cursor = true,
            ("?25", b'l') => self.has_cursor = false,
            ("?7", b'h' | b'l') => {}
            _ => self.complaints.push(format!("CSI {parameters}{}", char::from(last))),
        }
    }
}

fn blank(columns: usize, rows: usize) -> Vec<Vec<char>> {
    vec![vec![' '; columns]; rows]
}

fn is_whole(bytes: &[u8]) -> bool {
    match bytes {
        [0x1b] => false,
        [0x1b, b'['] => false,
        [0x1b, b'[', .., last] => (0x40..=0x7e).contains(last),
        _ => std::str::from_utf8(bytes).is_ok() || bytes.len() >= 4,
    }
}
