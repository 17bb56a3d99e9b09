//! The thread that reads certificates again when their files change, for all workers.
//!
//! It is started by the first configuration that has any. A key of root's it reads through the opener. A
//! pair is read once nothing has happened to its files for a moment, so that a certificate and its key that are put there one after the other are read together. What is
//! broken then is told, and what was in use stays. Next: `millstream-net`'s `file_watch`, which hears of it, and `tls/held`, which reads.

use crate::background::{self, Orders};
use crate::opener::line;
use crate::stapling::Stapler;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_net::file_watch::FileWatch;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_net::tls::ReadAgain;
use millstream_server::generation::Shared;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

/// Files are read once nothing has happened for this long.
const QUIET: Duration = Duration::from_millis(300);
/// They are read after this long in any case.
const LONGEST: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct Renewing {
    orders: Option<Orders>,
    stapler: Stapler,
    renewed: Arc<Notify>,
}

impl Renewing {
    pub fn renewed(&self) -> &Arc<Notify> {
        &self.renewed
    }

    /// Follows the files of this configuration only.
    pub fn take_over(&mut self, shared: &Arc<Shared>) {
        self.stapler.take_over(shared, &self.renewed);
        let has_files =
            shared.handshakes.certificates.iter().flatten().any(|server| !server.files().is_empty());
        if self.orders.is_none() && !has_files {
            return;
        }
        let told = self.orders.as_ref().is_some_and(|thread| thread.send(shared.clone()).is_ok());
        if !told {
            let renewed = self.renewed.clone();
            let work = move |shared, orders| renew(shared, orders, renewed);
            self.orders = background::start(("certificates", "certificates"), shared.clone(), work);
        }
    }
}

async fn renew(mut shared: Arc<Shared>, mut orders: UnboundedReceiver<Arc<Shared>>, renewed: Arc<Notify>) {
    let mut watch = match line::file_watch() {
        Ok(watch) => watch,
        Err(error) => {
            let what = "changed certificates are read only at a reload";
            return shared.logs.main.write(Level::Error, format_args!("{what}: inotify: {error}"));
        }
    };
    let mut unwatched: HashSet<PathBuf> = HashSet::new();
    loop {
        follow(&mut watch, &shared, &mut unwatched);
        // What has changed before it was followed is read now.
        if read_again(&shared) {
            renewed.notify_one();
        }
        tokio::select! {
            next = orders.recv() => match next {
                Some(next) => {
                    shared = next;
                    unwatched.clear();
                }
                None => return,
            },
            changed = watch.changed() => match changed {
                Ok(()) => settle(&mut watch).await,
                Err(error) => {
                    return shared.logs.main.write(Level::Alert, format_args!("certificates: inotify: {error}"));
                }
            },
        }
    }
}

fn follow(watch: &mut FileWatch, shared: &Shared, unwatched: &mut HashSet<PathBuf>) {
    let files: HashSet<PathBuf> =
        shared.handshakes.certificates.iter().flatten().flat_map(|server| server.files()).collect();
    let Err((directory, error)) = watch.follow(files.iter().map(PathBuf::as_path)) else { return };
    if unwatched.insert(directory.clone()) {
        let directory = directory.display();
        shared.logs.main.write(
            Level::Error,
            format_args!(
                "changed certificates in {directory} are read only at a reload: the directory cannot be watched: {error}"
            ),
        );
    }
}

async fn settle(watch: &mut FileWatch) {
    let end = clock::now() + LONGEST;
    let mut quiet = Deadline::new();
    loop {
        let now = clock::now();
        if now >= end {
            return;
        }
        quiet.set(end.min(now + QUIET));
        if !matches!(with_deadline(&mut quiet, watch.changed()).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// Reads changed files; whether any is in use now. Servers with the same files log it once.
fn read_again(shared: &Shared) -> bool {
    let mut told = HashSet::new();
    let mut is_renewed = false;
    for read in shared.handshakes.certificates.iter().flatten().flat_map(|server| server.read_again()) {
        let (level, what) = match read {
            ReadAgain::InUse(file) => {
                is_renewed = true;
                (Level::Notice, format!("\"{}\" has changed, the new certificate is in use", file.display()))
            }
            ReadAgain::Broken(error) => {
                (Level::Error, format!("{error}; the previous certificate stays in use"))
            }
        };
        if told.insert(what.clone()) {
            shared.logs.main.write(level, format_args!("{what}"));
        }
    }
    is_renewed
}
