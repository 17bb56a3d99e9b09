//! The servers that are asked about: where they are, what they answer to a single request, and which processes they are.

use super::{SERVERS, Setting};
use crate::party::{Process, Whose, listener, watched};
use crate::plan::{PlanError, Target};
use crate::probe::{Reply, once_unless};
use crate::report::quantity::Quantity;
use crate::stop::Stop;
use crate::target::{Ask, Permission, Url, resolve};
use crate::unmeasured::Unmeasured;
use crate::verdict::Once;
use millstream_origin::{DemoOptions, DemoOrigin, THREADS, Work};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub(super) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Subject {
    pub name: String,
    pub urls: Vec<String>,
    /// The service time of embedded servers; `None`: they are the user's.
    pub service: Option<Duration>,
}

/// Embedded servers that each work on `workers` requests at once and sleep for `service`, and the subject that they are.
/// They end when dropped. Errors: those of opening ports and starting threads.
pub fn sleeping(service: Duration, servers: usize, workers: usize) -> io::Result<(Subject, Vec<DemoOrigin>)> {
    let options = DemoOptions { workers, service_time: service, work: Work::Wait, ..DemoOptions::default() };
    let origins = (0..servers).map(|_| millstream_origin::start(&options)).collect::<io::Result<Vec<_>>>()?;
    let urls = origins.iter().map(|origin| format!("http://{}/uncacheable", origin.address)).collect();
    let name = if service.is_zero() { "0 ms".to_owned() } else { Quantity::from(service).to_string() };
    Ok((Subject { name, urls, service: Some(service) }, origins))
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) target: Target,
    pub(super) address: SocketAddr,
    pub(super) once: Once,
}

impl Server {
    /// Asks at the target's addresses; from the first answer on, at the one that answered, which the proxy gets too.
    fn find(mut target: Target, stop: &Stop) -> Result<Server, Unmeasured> {
        let address = answer(&target, stop)?.address;
        target.addresses = vec![address];
        let once = Once::ask(Vec::new(), || answer(&target, stop))?;
        Ok(Server { target, address, once })
    }
}

#[derive(Debug)]
pub(super) struct Servers {
    pub(super) all: Vec<Server>,
    is_embedded: bool,
}

impl Servers {
    pub(super) fn find(subject: &Subject, setting: &Setting, stop: &Stop) -> Result<Servers, Unmeasured> {
        match subject.urls.len() {
            0 => return Err("specify the servers, each as http://host:port/path".to_owned().into()),
            1..=SERVERS => {}
            count => return Err(format!("too many servers: {count}, at most {SERVERS} are possible").into()),
        }
        let first = &subject.urls[0];
        let path = |url: &str| Url::parse(url).map(|url| url.target);
        let refused = |why: String| Err(Unmeasured::Because(why));
        let mut all: Vec<Server> = Vec::with_capacity(subject.urls.len());
        for url in &subject.urls {
            let target = setting.target(url, setting.public)?;
            if target.tls.is_some() {
                return refused(format!(
                    "\"{url}\": TLS to the servers behind the proxy is not supported; write http://host:port/path"
                ));
            }
            if path(url) != path(first) {
                return refused(format!(
                    "\"{first}\" and \"{url}\" have different paths: a proxy sends the same path to every server"
                ));
            }
            let found = Server::find(target, stop)?;
            if let Some(same) = all.iter().find(|server| server.address == found.address) {
                let (one, address) = (&same.target.url, found.address);
                return refused(format!(
                    "\"{one}\" and \"{url}\" are the same server, {address}: specify another"
                ));
            }
            all.push(found);
        }
        Ok(Servers { all, is_embedded: subject.service.is_some() })
    }

    pub(super) fn behind(&self, proxy: SocketAddr) -> Target {
        let first = &self.all[0].target;
        Target { url: format!("{} behind the proxy", first.url), addresses: vec![proxy], ..first.clone() }
    }

    /// Their processes, the generator's and the proxy's, to be watched; no server where one of them cannot be seen.
    pub(super) fn processes(&self, proxy: &Process) -> Vec<(&'static str, Whose)> {
        let own = self.is_embedded.then_some(THREADS);
        let api = self.all.iter().map(|server| Whose::api(server.address, own));
        let api = api.collect::<Option<BTreeSet<Whose>>>().unwrap_or_default();
        watched(own, Some(proxy.id()), api)
    }

    pub(super) fn are_local(&self) -> bool {
        self.all.iter().all(|server| server.address.ip().is_loopback() || listener(server.address).is_some())
    }

    /// What a single request takes: that of the slowest.
    pub(super) fn once(&self) -> Once {
        let all = self.all.iter().map(|server| server.once);
        all.max_by(|one, other| one.total.total_cmp(&other.total)).unwrap_or_default()
    }
}

impl Setting {
    pub(super) fn target(&self, url: &str, public: bool) -> Result<Target, PlanError> {
        let ask =
            Ask { url: url.to_owned(), fields: self.fields.clone(), keep_alive: true, ..Ask::default() };
        resolve(&ask, Permission { public })
    }
}

pub(super) fn answer(target: &Target, stop: &Stop) -> Result<Reply, Unmeasured> {
    let url = &target.url;
    let answer = once_unless(stop, target, PATIENCE)?.map_err(|error| format!("{url}: {error}"))?;
    match answer.status {
        status @ 400.. => {
            Err(format!("{url} responds with {status}: the URL must work before it can be measured").into())
        }
        _ => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_answered_is_the_one_for_load_and_proxy() {
        let (subject, servers) = sleeping(Duration::ZERO, 1, 1).unwrap();
        let (url, address) = (&subject.urls[0], servers[0].address);
        let closed =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap();
        let ask = Ask { url: url.to_owned(), keep_alive: true, ..Ask::default() };
        let mut target = resolve(&ask, Permission::default()).unwrap();
        target.addresses.insert(0, closed);
        let found = Server::find(target, &Stop::new().unwrap()).unwrap();
        assert_eq!((found.address, found.target.addresses.as_slice()), (address, &[address][..]));
    }
}
