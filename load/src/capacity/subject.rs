//! The servers that are asked about: where they are, what they answer to a single request, and which processes they are.

use super::{SERVERS, Setting};
use crate::origin::{self, DemoOptions, DemoOrigin, Work};
use crate::party::{PartyError, Whose, listener};
use crate::plan::{PlanError, Target};
use crate::probe::{self, ProbeError, Reply};
use crate::stop::Stop;
use crate::target::{Ask, Permission, TargetError, resolve};
use crate::verdict::{Once, duration};
use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

/// How long a single request may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of an answer that are read for a single request.
const LARGEST: usize = 64 << 20;
/// What the threads of embedded servers are called.
const EMBEDDED: &str = "demo ";

/// What a row is about.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its name in the table.
    pub name: String,
    /// The servers.
    pub urls: Vec<String>,
    /// The service time of embedded servers; `None`: they are the user's.
    pub service: Option<Duration>,
}

/// Why there is nothing to tell.
#[derive(Debug)]
pub enum CapacityError {
    /// No server was named, or too many.
    Servers(usize),
    /// A URL that cannot be asked.
    Target(TargetError),
    /// A server that the proxy would have to speak TLS to.
    Tls(String),
    /// The servers are asked for different things.
    Paths(String, String),
    /// One server by two names.
    Same(String, String, SocketAddr),
    /// A server that gives no answer.
    Silent(String, ProbeError),
    /// A server that answers an error.
    Status(String, u16),
    /// A server all of whose answers under load were errors.
    Failing(String),
    /// The load makes no sense.
    Plan(PlanError),
    /// A process that does not take part.
    Process(PartyError),
    /// The system refused a directory, a file or a port.
    System(io::Error),
    /// The user ended it.
    Stopped,
}

impl fmt::Display for CapacityError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapacityError::Servers(0) => write!(out, "name the servers: http://host:port/path each"),
            CapacityError::Servers(count) => {
                write!(out, "{count} servers are too many: {SERVERS} at the most")
            }
            CapacityError::Target(error) => error.fmt(out),
            CapacityError::Tls(url) => {
                write!(
                    out,
                    "\"{url}\": TLS is not spoken to the servers behind the proxy; write http://host:port/path"
                )
            }
            CapacityError::Paths(one, other) => write!(
                out,
                "\"{one}\" and \"{other}\" ask for different things: a proxy passes the same path to every server"
            ),
            CapacityError::Same(one, other, address) => {
                write!(out, "\"{one}\" and \"{other}\" are one server, {address}: name another")
            }
            CapacityError::Silent(url, error) => write!(out, "{url}: {error}"),
            CapacityError::Status(url, status) => {
                write!(out, "{url} answers {status}: only what works can be measured")
            }
            CapacityError::Failing(what) => write!(out, "{what} gave no right answer under load"),
            CapacityError::Plan(error) => error.fmt(out),
            CapacityError::Process(error) => error.fmt(out),
            CapacityError::System(error) => write!(out, "the system refuses: {error}"),
            CapacityError::Stopped => out.write_str("stopped"),
        }
    }
}

impl std::error::Error for CapacityError {}

impl From<PartyError> for CapacityError {
    fn from(error: PartyError) -> Self {
        match error {
            PartyError::Stopped => CapacityError::Stopped,
            error => CapacityError::Process(error),
        }
    }
}

impl From<io::Error> for CapacityError {
    fn from(error: io::Error) -> Self {
        CapacityError::System(error)
    }
}

impl From<PlanError> for CapacityError {
    fn from(error: PlanError) -> Self {
        CapacityError::Plan(error)
    }
}

impl From<TargetError> for CapacityError {
    fn from(error: TargetError) -> Self {
        CapacityError::Target(error)
    }
}

/// Embedded servers that each work on `workers` requests at once and sleep for `service`, and the subject that they are.
/// They end when dropped.
///
/// # Errors
/// Those of opening ports and starting threads.
pub fn sleeping(service: Duration, servers: usize, workers: usize) -> io::Result<(Subject, Vec<DemoOrigin>)> {
    let options = DemoOptions { workers, service_time: service, work: Work::Wait, ..DemoOptions::default() };
    let origins = (0..servers).map(|_| origin::start(&options)).collect::<io::Result<Vec<_>>>()?;
    let urls = origins.iter().map(|origin| format!("http://{}/uncacheable", origin.address)).collect();
    let name = if service.is_zero() { "0 ms".to_owned() } else { duration(service.as_secs_f64()) };
    Ok((Subject { name, urls, service: Some(service) }, origins))
}

/// A server, found.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) url: String,
    pub(super) target: Target,
    pub(super) address: SocketAddr,
    pub(super) once: Once,
}

impl Server {
    /// Asks at the target's addresses; from the first answer on, at the one that answered, which the proxy gets too.
    fn find(url: &str, mut target: Target, stop: &Stop) -> Result<Server, CapacityError> {
        let address = answer(url, &target, stop)?.address;
        target.addresses = vec![address];
        let once = ask(url, &target, stop)?;
        Ok(Server { url: url.to_owned(), target, address, once })
    }
}

/// All servers of a subject, each having answered.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) all: Vec<Server>,
    /// `Host` of the first, which all are asked by when they stand behind the proxy.
    host: String,
    /// Path and query.
    path: String,
    is_embedded: bool,
}

impl Servers {
    /// Finds them and asks each a few times.
    pub(super) fn find(subject: &Subject, setting: &Setting, stop: &Stop) -> Result<Servers, CapacityError> {
        if subject.urls.is_empty() || subject.urls.len() > SERVERS {
            return Err(CapacityError::Servers(subject.urls.len()));
        }
        let first = &subject.urls[0];
        let (host, path) = parts(first);
        let mut all: Vec<Server> = Vec::with_capacity(subject.urls.len());
        for url in &subject.urls {
            let target = target(url, &setting.fields, setting.public)?;
            if target.tls.is_some() {
                return Err(CapacityError::Tls(url.clone()));
            }
            if parts(url).1 != path {
                return Err(CapacityError::Paths(first.clone(), url.clone()));
            }
            let found = Server::find(url, target, stop)?;
            if let Some(same) = all.iter().find(|server| server.address == found.address) {
                return Err(CapacityError::Same(same.url.clone(), url.clone(), found.address));
            }
            all.push(found);
        }
        let (host, path) = (host.to_owned(), path.to_owned());
        Ok(Servers { all, host, path, is_embedded: subject.service.is_some() })
    }

    /// The target of a path at the proxy, `None` for the servers' own; by the name that the first server has.
    pub(super) fn behind(
        &self,
        proxy: SocketAddr,
        path: Option<&str>,
        setting: &Setting,
    ) -> Result<Target, CapacityError> {
        let mut fields = setting.fields.clone();
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            fields.push(("Host".to_owned(), self.host.clone()));
        }
        let path = path.unwrap_or(&self.path);
        Ok(target(&format!("http://{proxy}{path}"), &fields, true)?)
    }

    /// Their processes and the generator's, to be watched; no server where one of them cannot be seen.
    pub(super) fn processes(&self) -> Vec<(String, Whose)> {
        let own = std::process::id();
        if self.is_embedded {
            let embedded = EMBEDDED.to_owned();
            return vec![
                (API.to_owned(), Whose::Threads(own, embedded.clone())),
                (GENERATOR.to_owned(), Whose::OtherThreads(own, embedded)),
            ];
        }
        let generator = (GENERATOR.to_owned(), Whose::Process(own));
        let listeners = self.all.iter().map(|server| listener(server.address));
        let Some(listeners) = listeners.collect::<Option<Vec<_>>>() else { return vec![generator] };
        if listeners.iter().any(|found| found.is_relay()) {
            return vec![generator];
        }
        let mut ids: Vec<u32> = listeners.iter().map(|found| found.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let servers = ids.into_iter().map(|id| (API.to_owned(), Whose::Tree(id)));
        servers.chain(std::iter::once(generator)).collect()
    }

    /// Whether all of them are on this machine.
    pub(super) fn are_local(&self) -> bool {
        self.all.iter().all(|server| server.address.ip().is_loopback() || listener(server.address).is_some())
    }

    /// What a single request takes: that of the slowest.
    pub(super) fn once(&self) -> Option<Once> {
        self.all.iter().map(|server| server.once).max_by(|one, other| one.total.total_cmp(&other.total))
    }
}

/// The name under which all servers are watched.
pub(super) const API: &str = "api";
/// The generator's.
pub(super) const GENERATOR: &str = "generator";

/// Host and path of a URL that `resolve` has taken or will refuse.
fn parts(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    (host, if path.is_empty() { "/" } else { path })
}

fn target(url: &str, fields: &[(String, String)], public: bool) -> Result<Target, TargetError> {
    let ask = Ask { url: url.to_owned(), fields: fields.to_vec(), keep_alive: true, ..Ask::default() };
    resolve(&ask, Permission { public })
}

/// A single request.
fn answer(url: &str, target: &Target, stop: &Stop) -> Result<Reply, CapacityError> {
    let answer = probe::once_unless(stop, target, PATIENCE, LARGEST).map_err(|error| match error {
        ProbeError::Stopped => CapacityError::Stopped,
        error => CapacityError::Silent(url.to_owned(), error),
    })?;
    if answer.status >= 400 {
        return Err(CapacityError::Status(url.to_owned(), answer.status));
    }
    Ok(answer)
}

/// A few single requests.
pub(super) fn ask(url: &str, target: &Target, stop: &Stop) -> Result<Once, CapacityError> {
    let mut samples = Vec::new();
    while !Once::are_enough(&samples) {
        samples.push(Once::of(&answer(url, target, stop)?));
    }
    Once::of_several(&samples).ok_or_else(|| CapacityError::Failing(url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_path_are_told_apart() {
        for (url, host, path) in [
            ("http://a:1/b?c=/d", "a:1", "/b?c=/d"),
            ("http://a", "a", "/"),
            ("http://[::1]:80?x", "[::1]:80", "?x"),
            ("http://a/b#c", "a", "/b"),
        ] {
            assert_eq!(parts(url), (host, path), "{url}");
        }
    }

    #[test]
    fn the_address_that_answered_is_the_one_for_load_and_proxy() {
        let (subject, servers) = sleeping(Duration::ZERO, 1, 1).unwrap();
        let (url, address) = (&subject.urls[0], servers[0].address);
        let closed =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap();
        let mut target = target(url, &[], false).unwrap();
        target.addresses.insert(0, closed);
        let found = Server::find(url, target, &Stop::new().unwrap()).unwrap();
        assert_eq!((found.address, found.target.addresses.as_slice()), (address, &[address][..]));
    }
}
