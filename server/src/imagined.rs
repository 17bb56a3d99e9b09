//! A request that nobody sent: what would a GET of this URL, with these fields, come to?
//!
//! It has a head like a real one and is admitted and routed like a real one, so what is said about it holds for those
//! that come. It is never answered and never counted. Next: `content/purge`, which looks for its key; `millstream-admin`'s `explain`.

use crate::admission;
use crate::chosen_zone;
use crate::generation::Generation;
use crate::request::{ConnectionFacts, Request};
use crate::restart::Resumed;
use crate::rewrite::{self, From, Settled};
use crate::try_files;
use crate::worker::Worker;
use millstream_net::clock;
use millstream_net::stream::TlsInfo;
use millstream_wire::h1::head::{HeadLimits, Progress};
use std::rc::Rc;

/// Bytes of a head; its parts came from bounded requests.
const LONGEST: usize = 256 * 1024;
const FIELDS: usize = 512;

/// Where a hypothetical request arrives.
pub struct Entrance {
    pub worker: Rc<Worker>,
    pub generation: Rc<Generation>,
    pub connection: Rc<ConnectionFacts>,
}

impl Entrance {
    pub fn of(request: &Request) -> Entrance {
        Entrance {
            worker: request.worker.clone(),
            generation: request.generation.clone(),
            connection: request.connection.clone(),
        }
    }

    #[must_use]
    pub fn encrypted(&self, encrypted: bool) -> Entrance {
        Entrance {
            worker: self.worker.clone(),
            generation: self.generation.clone(),
            connection: seen_as(&self.connection, encrypted),
        }
    }

    /// A request that was never sent, admitted and routed. The error is a status.
    pub fn imagine<'a>(
        &self,
        method: &str,
        target: &[u8],
        host: &[u8],
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Request, u16> {
        self.settle(method, target, host, fields).map(|(request, _)| request)
    }

    /// Also runs what precedes the location's content.
    pub fn settle<'a>(
        &self,
        method: &str,
        target: &[u8],
        host: &[u8],
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(Request, Settled), u16> {
        let mut request =
            Request::new(self.worker.clone(), self.generation.clone(), self.connection.clone(), clock::now());
        let out = &mut request.received.bytes;
        for piece in [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: ", host, b"\r\n"] {
            out.extend_from_slice(piece);
        }
        for (name, value) in fields {
            for piece in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(piece);
            }
        }
        out.extend_from_slice(b"\r\n");
        let limits = HeadLimits { line: LONGEST, total: LONGEST, fields: FIELDS };
        match request.received.head.parse(&request.received.bytes, &limits) {
            // What was handed in must not have held a line end of its own.
            Ok(Progress::Complete) if request.received.head.length == request.received.bytes.len() => {}
            Ok(_) => return Err(400),
            Err(error) => return Err(error.status()),
        }
        request.method = request.received.head.method;
        admission::admit(&mut request)?;
        let settled = settle(&mut request)?;
        Ok((request, settled))
    }
}

/// Runs an admitted request's scripts up to its location. Files do not exist for it: what prevents proxying
/// is a file, and not what is cached. The error is a status.
pub fn settle(request: &mut Request) -> Result<Settled, u16> {
    let mut from = From::Server;
    loop {
        match rewrite::settle(request, from) {
            Settled::Test(_, paused) => from = From::Script(paused.answered(false)),
            Settled::Status(status) => return Err(status),
            Settled::TooLarge => return Err(413),
            Settled::Here if request.location().settings.try_files.is_some() => {
                from = match try_files::otherwise(request)?.apply(request)? {
                    Resumed::Server => From::Server,
                    Resumed::Location => From::Rewrite,
                };
            }
            settled => {
                if matches!(settled, Settled::Here)
                    && let Some(face) = chosen_zone::chosen(request)?
                {
                    request.route.location = face;
                }
                return Ok(settled);
            }
        }
    }
}

fn seen_as(facts: &Rc<ConnectionFacts>, encrypted: bool) -> Rc<ConnectionFacts> {
    if facts.tls.is_some() == encrypted {
        return facts.clone();
    }
    Rc::new(ConnectionFacts {
        serial: facts.serial,
        tls: encrypted.then(|| Box::new(TlsInfo::imagined(None))),
        opened: facts.opened,
        requests: facts.requests.clone(),
        ..ConnectionFacts::plain(facts.remote.clone(), facts.local.clone(), facts.listener.get())
    })
}
