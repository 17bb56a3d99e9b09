//! The office as a serving process sees it: its own, or its opener's.
//!
//! Before: `office`, `opener`; next: `reload` and `running`, which go through here whichever it is.

use crate::office::{Listened, LoadAgain, Office};
use crate::opener::asked::{Ask, Reply, SentError};
use crate::opener::line::OpenerLine;
use millstream_conf::load::Loaded;
use millstream_conf::model::{Configuration, Listener};
use millstream_net::Address;
use millstream_net::listener::{Listening, OpenError};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Performs what may need rights.
pub enum Keeper {
    Own(Box<Office>),
    /// The opener; this process reads for itself what the opener has read.
    Opener(OpenerLine, LoadAgain),
}

impl Keeper {
    pub fn load(&self) -> io::Result<Loaded> {
        match self {
            Keeper::Own(office) => Ok(office.load()),
            Keeper::Opener(line, again) => {
                line.ask(&Ask::Load)?;
                Ok(again())
            }
        }
    }

    pub fn listen(&mut self, configuration: &Configuration) -> Result<Listened, Vec<OpenError>> {
        match self {
            Keeper::Own(office) => office.listen(configuration),
            Keeper::Opener(line, _) => listened(line, &configuration.http.listeners),
        }
    }

    pub fn enter(&mut self, configuration: &Configuration) -> io::Result<()> {
        match self {
            Keeper::Own(office) => office.enter(&configuration.main.pid),
            Keeper::Opener(line, _) => line.ask(&Ask::Enter).map(drop),
        }
    }

    pub fn upgrade(&mut self) -> io::Result<u32> {
        match self {
            Keeper::Own(office) => office.upgrade(),
            Keeper::Opener(line, _) => match line.ask(&Ask::Upgrade)?.0 {
                Reply::Process(id) => Ok(id),
                _ => Err(io::ErrorKind::InvalidData.into()),
            },
        }
    }

    pub fn reap(&mut self) -> Option<String> {
        match self {
            Keeper::Own(office) => office.reap(),
            Keeper::Opener(line, _) => match line.ask(&Ask::Reap) {
                Ok((Reply::Text(text), _)) => text,
                _ => None,
            },
        }
    }

    pub fn has_next(&self) -> bool {
        match self {
            Keeper::Own(office) => office.has_next(),
            Keeper::Opener(..) => false,
        }
    }

    pub fn leave(&mut self) {
        match self {
            Keeper::Own(office) => office.leave(),
            // Where it is gone, so are its sockets.
            Keeper::Opener(line, _) => _ = line.ask(&Ask::Leave),
        }
    }
}

fn listened(line: &OpenerLine, listeners: &[Listener]) -> Result<Listened, Vec<OpenError>> {
    let error = |(index, failure): (usize, SentError)| {
        let address = listeners.get(index).map(|listener| Address::from(&listener.address))?;
        Some(OpenError::new(index, address, failure.into()))
    };
    // What is not about one address is told of the first.
    let whole = |why: io::Error| error((0, SentError::from(&why))).into_iter().collect::<Vec<_>>();
    match line.ask(&Ask::Listen).map_err(whole)?.0 {
        Reply::Listened { addresses, missing, has_left } => {
            let opened: io::Result<Vec<Arc<Listening>>> = addresses
                .iter()
                .enumerate()
                .map(|(number, address)| passed(line, number, address, listeners))
                .collect();
            let missing = missing.into_iter().filter_map(error).collect();
            Ok(Listened { listenings: opened.map_err(whole)?, missing, has_left })
        }
        Reply::Refused(errors) => Err(errors.into_iter().filter_map(error).collect()),
        _ => Err(whole(io::ErrorKind::InvalidData.into())),
    }
}

fn passed(
    line: &OpenerLine,
    number: usize,
    address: &str,
    listeners: &[Listener],
) -> io::Result<Arc<Listening>> {
    let is_it = |listener: &&Listener| Address::from(&listener.address).to_string() == address;
    // Both have read the same files, unless somebody wrote to them in between.
    let changed = || io::Error::other("the configuration changed while it was read: reload it again");
    let listener = listeners.iter().find(is_it).ok_or_else(changed)?;
    let mut sockets: Vec<OwnedFd> = Vec::new();
    loop {
        let (_, files) = line.ask(&Ask::Sockets(number, sockets.len()))?;
        if files.is_empty() {
            break;
        }
        sockets.extend(files);
    }
    if sockets.is_empty() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Arc::new(Listening::of_sockets(listener.address.clone(), sockets)))
}
