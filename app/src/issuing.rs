//! The thread that asks authorities for certificates, for all workers.
//!
//! It is started by the first configuration that wants any, after privileges are dropped. An issuer of which the next configuration wants the same goes on
//! undisturbed over a reload. Next: `millstream-acme`'s `issuer`, what it does.

use crate::background::{self, Orders};
use millstream_acme::issuer::{self, Around};
use millstream_acme::setup::IssuerSetup;
use millstream_server::generation::Shared;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

#[derive(Default)]
pub struct Issuing(Option<Orders>);

impl Issuing {
    /// Replaces the wanted certificates by this configuration's. `renewed` is notified of each one issued.
    pub fn take_over(&mut self, shared: &Arc<Shared>, renewed: &Arc<Notify>) {
        if self.0.is_none() && shared.acme.issuers.is_empty() {
            return;
        }
        let told = self.0.as_ref().is_some_and(|thread| thread.send(shared.clone()).is_ok());
        if !told {
            let renewed = renewed.clone();
            let work = move |shared, orders| issue(shared, orders, renewed);
            self.0 = background::start(("acme", "acme"), shared.clone(), work);
        }
    }

    pub fn stop(&mut self) {
        self.0 = None;
    }
}

struct AtWork {
    setup: Arc<IssuerSetup>,
    around: Rc<RefCell<Around>>,
    task: JoinHandle<()>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn issue(mut shared: Arc<Shared>, mut orders: UnboundedReceiver<Arc<Shared>>, renewed: Arc<Notify>) {
    let mut at_work: Vec<AtWork> = Vec::new();
    loop {
        let mut before = std::mem::take(&mut at_work);
        for setup in &shared.acme.issuers {
            let is_same = |known: &AtWork| known.setup.is_as(setup) && !known.task.is_finished();
            match before.iter().position(is_same) {
                Some(at) => {
                    let known = before.swap_remove(at);
                    known.around.replace(around(&shared, setup, &renewed));
                    at_work.push(known);
                }
                None => {
                    // What it held is free before the next one wants it.
                    before.retain(|old| old.setup.settings.name != setup.settings.name);
                    tokio::task::yield_now().await;
                    at_work.push(begin(&shared, setup, &renewed));
                }
            }
        }
        drop(before);
        // A configuration holds much that ends with it.
        drop(shared);
        match orders.recv().await {
            Some(next) => shared = next,
            None => return,
        }
    }
}

fn around(shared: &Shared, setup: &IssuerSetup, renewed: &Arc<Notify>) -> Around {
    let resolver = shared.configuration.http.acme_issuers[setup.index].resolver;
    Around {
        log: shared.logs.main.clone(),
        resolver: resolver.map(|id| shared.resolvers[id.0 as usize].clone()),
        renewed: renewed.clone(),
    }
}

fn begin(shared: &Shared, setup: &Arc<IssuerSetup>, renewed: &Arc<Notify>) -> AtWork {
    let around = Rc::new(RefCell::new(around(shared, setup, renewed)));
    let challenges = shared.acme.challenges.clone();
    let task = tokio::task::spawn_local(issuer::run(setup.clone(), challenges, around.clone()));
    AtWork { setup: setup.clone(), around, task }
}
