//! A proxy put up for one measurement: its files, its process, its port, and what it says of requests that it passed on.
//!
//! Each measurement gets a new one in a directory of its own, so that no step finds connections or answers of another.
//! Dropped, the process is ended and the directory gone. Next: `climb`, which measures it; `peer` says how to start each.

use crate::party::{Place, Process, SHARED_MEMORY, free_address};
use crate::peer::{self, Party, Reached};
use crate::step::nginx::{CERTIFICATE, KEY};
use crate::step::{Step, StepSetting};
use crate::stop::Stop;
use crate::unmeasured::Unmeasured;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a proxy may take to listen; Varnish compiles its configuration first.
const START: Duration = Duration::from_secs(20);

/// How long HAProxy may take to tell its statistics.
const TELL: Duration = Duration::from_secs(2);

/// The most that is read of them.
const TOLD: u64 = 1 << 20;

/// The program of each party.
#[derive(Debug, Clone)]
pub struct Programs(pub Vec<(Party, PathBuf)>);

impl Programs {
    /// The file of a party's program; `None`: it is not here.
    pub fn of(&self, party: Party) -> Option<&Path> {
        self.0.iter().find(|(other, _)| *other == party).map(|(_, program)| program.as_path())
    }
}

/// A certificate for this machine's own address, made for one climb.
#[derive(Debug, Clone)]
pub struct Certificate {
    chain: String,
    key: String,
}

impl Certificate {
    /// A new one.
    ///
    /// # Errors
    /// Those of the cryptography, in words.
    pub fn new() -> Result<Self, String> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]);
        let made =
            made.map_err(|error| format!("no certificate could be made for the step over TLS: {error}"))?;
        Ok(Certificate { chain: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }
}

/// A proxy that listens.
#[derive(Debug)]
pub struct Stand {
    process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    reached: Reached,
}

/// Why there is none.
#[derive(Debug)]
pub enum StandError {
    /// It cannot do the step: the end of a sentence that begins with its name.
    Cannot(String),
    /// It should have been able to: a whole sentence.
    Failed(String),
    /// The user wanted to stop.
    Stopped,
}

impl From<Unmeasured> for StandError {
    fn from(error: Unmeasured) -> Self {
        match error {
            Unmeasured::Stopped => StandError::Stopped,
            Unmeasured::Because(why) => StandError::Failed(why),
        }
    }
}

impl Stand {
    /// Puts a party up on a step and returns once it listens. `setting.port` is not used: a free one is taken.
    ///
    /// # Errors
    /// It cannot do the step, is not installed, or did not start.
    pub fn put_up(
        party: Party,
        step: Step,
        setting: &StepSetting<'_>,
        programs: &Programs,
        certificate: &Certificate,
        stop: &Stop,
    ) -> Result<Stand, StandError> {
        let failed = |error: &dyn std::fmt::Display| StandError::Failed(format!("{}: {error}", party.name()));
        let program =
            programs.of(party).ok_or_else(|| StandError::Cannot("is not installed here".to_owned()))?;
        let address = free_address().map_err(|error| failed(&error))?;
        let place = Place::within(&home(step)).map_err(|error| failed(&error))?;
        let setting = StepSetting { port: address.port(), ..*setting };
        let launch = peer::launch(party, step, &setting, &place.path())
            .map_err(|why| StandError::Cannot(why.to_owned()))?;
        let write = |name: &str, text: &str| place.write(name, text).map_err(|error| failed(&error));
        for (name, text) in &launch.files {
            write(name, text)?;
        }
        if step.is_tls() {
            write(CERTIFICATE, &format!("{}{}", certificate.chain, certificate.key))?;
            write(KEY, &certificate.key)?;
        }
        let mut command = Command::new(program);
        command.args(&launch.arguments);
        let mut process = Process::start(party.name(), command, place)?.heeding(stop);
        process.wait_for(address, START)?;
        Ok(Stand { process, address, reached: launch.reached })
    }

    /// The root of its process tree.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether everything that it answers comes from the API.
    pub fn passes_all(&self) -> bool {
        self.reached == Reached::All
    }

    /// Whether what reached the API is known from a log of answers.
    pub fn logs(&self) -> bool {
        matches!(self.reached, Reached::Lines(_))
    }

    /// Requests that it has passed on since it started; `None`: it does not tell.
    pub fn reached(&self) -> Option<u64> {
        let directory = self.process.place().path();
        match self.reached {
            Reached::All => None,
            Reached::Lines(name) => lines(&directory.join(name)),
            Reached::HaproxySocket(name) => haproxy(&directory.join(name)),
            Reached::Varnishstat(name) => varnish(&directory.join(name)),
        }
    }
}

/// Where a step's directory is made: what is to be in memory, on tmpfs where there is one, for who knows files alone.
fn home(step: Step) -> PathBuf {
    let shared_memory = Path::new(SHARED_MEMORY);
    let in_memory = step.features().and_then(|features| features.cache).is_some_and(|cache| cache.in_memory);
    if in_memory && shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() }
}

/// Lines of a log that has one for each.
fn lines(file: &Path) -> Option<u64> {
    let bytes = std::fs::read(file).ok()?;
    Some(bytes.iter().filter(|&&byte| byte == b'\n').count() as u64)
}

/// What HAProxy counted at its only server.
fn haproxy(socket: &Path) -> Option<u64> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(TELL)).ok()?;
    stream.write_all(b"show stat\n").ok()?;
    let mut text = String::new();
    stream.take(TOLD).read_to_string(&mut text).ok()?;
    of_statistics(&text)
}

/// The sessions of the server `one` of `api`, out of HAProxy's table.
pub(super) fn of_statistics(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let place = lines.next()?.split(',').position(|name| name == "stot")?;
    let row = lines.find(|line| line.starts_with("api,one,"))?;
    row.split(',').nth(place)?.parse().ok()
}

/// What varnishstat says of requests to the backend.
fn varnish(directory: &Path) -> Option<u64> {
    let output = Command::new("varnishstat")
        .arg("-1")
        .arg("-n")
        .arg(directory)
        .args(["-f", "MAIN.backend_req"])
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stdout).split_whitespace().nth(1)?.parse().ok()
}
