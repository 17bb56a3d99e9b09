//! The thread that asks responders what authorities say of certificates, for all workers.
//!
//! It is started by the first configuration that wants any of it, after privileges are dropped. What was said of a certificate goes on over a reload, and
//! is asked about anew when its file holds another one or another one is issued. Next: `millstream-acme`'s `stapling`, what it does.

use crate::background::{self, Orders};
use millstream_acme::stapling::{self, Asked, Stapled};
use millstream_conf::model::{Level, Stapling};
use millstream_net::tls::ServerTls;
use millstream_server::generation::Shared;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

/// `None`: no thread yet.
#[derive(Default)]
pub struct Stapler(Option<Orders>);

impl Stapler {
    /// Replaces the certificates to ask about; looks again at each `renewed`.
    pub fn take_over(&mut self, shared: &Arc<Shared>, renewed: &Arc<Notify>) {
        if self.0.is_none() && wanting(shared).next().is_none() {
            return;
        }
        let told = self.0.as_ref().is_some_and(|thread| thread.send(shared.clone()).is_ok());
        if !told {
            let renewed = renewed.clone();
            let work = move |shared, orders| staple(shared, orders, renewed);
            self.0 = background::start(("stapling", "ssl_stapling"), shared.clone(), work);
        }
    }
}

fn wanting(shared: &Shared) -> impl Iterator<Item = (&Stapling, &Arc<ServerTls>)> {
    let servers = shared.configuration.http.servers.iter().zip(&shared.handshakes.certificates);
    servers.filter_map(|(server, certificates)| {
        let stapling = server.settings.tls.as_ref()?.stapling.as_ref()?;
        Some((stapling, certificates.as_ref().filter(|_| stapling.file.is_none())?))
    })
}

struct Asking {
    asked: Rc<Asked>,
    stapled: Rc<RefCell<Stapled>>,
    task: JoinHandle<()>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn staple(mut shared: Arc<Shared>, mut orders: UnboundedReceiver<Arc<Shared>>, renewed: Arc<Notify>) {
    let mut asking: Vec<Asking> = Vec::new();
    let (mut told, mut is_first) = (HashSet::new(), true);
    loop {
        let mut before = std::mem::take(&mut asking);
        for (asked, stapled) in wanted(&shared, &mut told, is_first) {
            let is_same = |known: &Asking| known.asked.is_as(&asked) && !known.task.is_finished();
            match before.iter().position(is_same) {
                Some(at) => {
                    let known = before.swap_remove(at);
                    let said = known.stapled.borrow_mut().said.take();
                    known.stapled.replace(Stapled { said, ..stapled });
                    known.stapled.borrow().publish(&known.asked);
                    asking.push(known);
                }
                None => {
                    let (asked, stapled) = (Rc::new(asked), Rc::new(RefCell::new(stapled)));
                    let task = tokio::task::spawn_local(stapling::run(asked.clone(), stapled.clone()));
                    asking.push(Asking { asked, stapled, task });
                }
            }
        }
        drop(before);
        is_first = false;
        tokio::select! {
            next = orders.recv() => match next {
                Some(next) => {
                    shared = next;
                    told.clear();
                    is_first = true;
                }
                None => return,
            },
            () = renewed.notified() => {}
        }
    }
}

/// Each certificate once, with all its servers. Why one is skipped is logged once per configuration: by
/// `handshakes` at first, here for later certificates.
fn wanted(shared: &Shared, told: &mut HashSet<String>, is_first: bool) -> Vec<(Asked, Stapled)> {
    let mut wanted: Vec<(Asked, Stapled)> = Vec::new();
    for (stapling, server) in wanting(shared) {
        for leaf in server.leaves() {
            let asked = match Asked::about(&leaf, stapling) {
                Ok(asked) => asked,
                Err(why) => {
                    let what = why.about(&leaf.name.display().to_string());
                    if told.insert(what.clone()) && !is_first {
                        shared.logs.main.write(Level::Warn, format_args!("{what}"));
                    }
                    continue;
                }
            };
            match wanted.iter_mut().find(|(known, _)| known.is_as(&asked)) {
                Some((_, stapled)) => stapled.servers.push(server.clone()),
                None => wanted.push((asked, around(shared, stapling, server))),
            }
        }
    }
    wanted
}

fn around(shared: &Shared, stapling: &Stapling, server: &Arc<ServerTls>) -> Stapled {
    Stapled {
        log: shared.logs.main.clone(),
        resolver: stapling.resolver.map(|id| shared.resolvers[id.0 as usize].clone()),
        resolver_timeout: stapling.resolver_timeout,
        servers: vec![server.clone()],
        said: None,
    }
}
