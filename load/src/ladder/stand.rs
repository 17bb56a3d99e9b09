//! A proxy put up for one measurement: its files, its process, its port, and what it says of requests that it passed on.
//!
//! Each measurement gets a new one in a directory of its own, so that no step finds connections or answers of another.
//! Dropped, the process is ended and the directory gone. Next: `measuring`; `peer` says how to start each.

use crate::party::{Place, Process, SHARED_MEMORY, free_address};
use crate::peer::{self, CERTIFICATE, KEY, Party, Reached};
use crate::step::{Fact, Step, StepSetting};
use crate::stop::Stop;
use crate::unmeasured::Unmeasured;
use rcgen::{CertifiedKey, KeyPair};
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

#[derive(Debug)]
pub(super) struct Stand {
    process: Process,
    pub address: SocketAddr,
    /// Where it counts what it passed on; `None`: it passes everything on.
    pub counts: Option<Reached>,
}

impl Stand {
    /// Puts a party up on a step and returns once it listens. `setting.port` is not used: a free one is taken. Errors: it
    /// cannot do the step, or did not start.
    pub(super) fn put_up(
        (party, program): &(Party, PathBuf),
        step: Step,
        setting: &StepSetting<'_>,
        certificate: &CertifiedKey<KeyPair>,
        stop: &Stop,
    ) -> Result<Stand, Unmeasured> {
        let address = free_address()?;
        // What is to be in memory, on tmpfs where there is one, for who knows files alone.
        let in_memory = step.has(Fact::Memory) && Path::new(SHARED_MEMORY).is_dir();
        let home = if in_memory { SHARED_MEMORY.into() } else { std::env::temp_dir() };
        let place = Place::within(&home)?;
        let setting = StepSetting { port: address.port(), ..*setting };
        let launch = peer::launch(*party, step, &setting, &place.path());
        let launch = launch.map_err(|why| format!("{} {why}", party.name()))?;
        let mut files = vec![(launch.file, launch.text)];
        if step.has(Fact::Tls) {
            let key = certificate.signing_key.serialize_pem();
            files.extend([(CERTIFICATE, certificate.cert.pem() + &key), (KEY, key)]);
        }
        for (name, text) in &files {
            place.write(name, text)?;
        }
        let mut command = Command::new(program);
        command.args(&launch.arguments);
        let mut process = Process::start(party.name(), command, place)?.heeding(stop);
        process.wait_for(address, START)?;
        Ok(Stand { process, address, counts: launch.reached })
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Requests that it has passed on since it started; `None`: it does not tell.
    pub(super) fn reached(&self) -> Option<u64> {
        let directory = self.process.place().path();
        match self.counts? {
            Reached::Lines(name) => {
                let bytes = std::fs::read(directory.join(name)).ok()?;
                Some(bytes.iter().filter(|&&byte| byte == b'\n').count() as u64)
            }
            Reached::HaproxySocket(name) => {
                let mut stream = UnixStream::connect(directory.join(name)).ok()?;
                stream.set_read_timeout(Some(TELL)).ok()?;
                stream.write_all(b"show stat\n").ok()?;
                let mut text = String::new();
                stream.take(TOLD).read_to_string(&mut text).ok()?;
                of_statistics(&text)
            }
            Reached::Varnishstat(name) => {
                let mut command = Command::new("varnishstat");
                command.arg("-1").arg("-n").arg(directory.join(name)).args(["-f", "MAIN.backend_req"]);
                let told = command.output().ok()?.stdout;
                String::from_utf8_lossy(&told).split_whitespace().nth(1)?.parse().ok()
            }
        }
    }
}

/// The sessions of the server `one` of `api`, out of HAProxy's table.
pub(super) fn of_statistics(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let place = lines.next()?.split(',').position(|name| name == "stot")?;
    let row = lines.find(|line| line.starts_with("api,one,"))?;
    row.split(',').nth(place)?.parse().ok()
}
