//! The servers that are asked about: where they are, what they answer to a single request, and which processes they are.

use super::{SERVERS, Setting};
use crate::origin::{self, DemoOptions, DemoOrigin, Work};
use crate::party::{Whose, listener};
use crate::plan::{PlanError, Target};
use crate::probe::{self, ProbeError, Reply};
use crate::stop::Stop;
use crate::target::{Ask, Permission, resolve};
use crate::unmeasured::Unmeasured;
use crate::verdict::{Once, duration};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

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
    fn find(url: &str, mut target: Target, stop: &Stop) -> Result<Server, Unmeasured> {
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
    pub(super) fn find(subject: &Subject, setting: &Setting, stop: &Stop) -> Result<Servers, Unmeasured> {
        match subject.urls.len() {
            0 => return Err("name the servers: http://host:port/path each".to_owned().into()),
            1..=SERVERS => {}
            count => return Err(format!("{count} servers are too many: {SERVERS} at the most").into()),
        }
        let first = &subject.urls[0];
        let (host, path) = parts(first);
        let mut all: Vec<Server> = Vec::with_capacity(subject.urls.len());
        for url in &subject.urls {
            let target = target(url, &setting.fields, setting.public)?;
            if target.tls.is_some() {
                return Err(format!(
                    "\"{url}\": TLS is not spoken to the servers behind the proxy; write http://host:port/path"
                )
                .into());
            }
            if parts(url).1 != path {
                return Err(format!(
                    "\"{first}\" and \"{url}\" ask for different things: a proxy passes the same path to every server"
                )
                .into());
            }
            let found = Server::find(url, target, stop)?;
            if let Some(same) = all.iter().find(|server| server.address == found.address) {
                let (one, address) = (&same.url, found.address);
                return Err(format!("\"{one}\" and \"{url}\" are one server, {address}: name another").into());
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
    ) -> Result<Target, Unmeasured> {
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

fn target(url: &str, fields: &[(String, String)], public: bool) -> Result<Target, PlanError> {
    let ask = Ask { url: url.to_owned(), fields: fields.to_vec(), keep_alive: true, ..Ask::default() };
    resolve(&ask, Permission { public })
}

/// A single request.
pub(super) fn answer(url: &str, target: &Target, stop: &Stop) -> Result<Reply, Unmeasured> {
    let answer = probe::once_unless(stop, target, PATIENCE, LARGEST).map_err(|error| match error {
        ProbeError::Stopped => Unmeasured::Stopped,
        error => Unmeasured::Because(format!("{url}: {error}")),
    })?;
    if answer.status >= 400 {
        return Err(format!("{url} answers {}: only what works can be measured", answer.status).into());
    }
    Ok(answer)
}

/// A few single requests.
pub(super) fn ask(url: &str, target: &Target, stop: &Stop) -> Result<Once, Unmeasured> {
    let mut samples = Vec::new();
    while !Once::are_enough(&samples) {
        samples.push(Once::of(&answer(url, target, stop)?));
    }
    Once::of_several(&samples).ok_or_else(|| format!("{url} gave no answer").into())
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
