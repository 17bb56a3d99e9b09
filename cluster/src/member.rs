//! This node as a member of one zone's cluster: what its tasks share, on the cluster's thread.
//!
//! What is given is numbered and written into the journal whatever the engine does. Next: `session`.

use crate::beat::Beat;
use crate::door::{Door, Given, Placed, View};
use crate::engine::{self, Failure};
use crate::journal::{Found, Journal};
use crate::order::{How, Issuer, Order, What};
use crate::peers::{Peer, Peers};
use crate::script::{PORTION, Place};
use crate::secret::{Kind, Seal, random};
use crate::settings::Settings;
use crate::shared_logs::SharedLogs;
use crate::zone::Zone;
use millstream_conf::model::Level;
use millstream_net::timer::pause;
use millstream_net::{blocking, clock};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot, watch};

/// Between two lines of the error log about the same failure.
const REPEAT: Duration = Duration::from_secs(60);
/// Between two looks whether the node is cut off, for people.
const WATCH: Duration = Duration::from_millis(50);
/// Of a failure's text, in characters.
const MOST_FAILURE: usize = 256;
/// Senders that nobody listens to any more.
const IDLE_SENDERS: usize = 1024;

pub(crate) struct Member {
    pub(crate) settings: Arc<Settings>,
    pub(crate) seal: Seal,
    pub(crate) place: Place,
    pub(crate) zone: Arc<dyn Zone>,
    pub(crate) door: Arc<Door>,
    pub(crate) log: SharedLogs,
    pub(crate) journal: RefCell<Journal>,
    pub(crate) peers: RefCell<Peers>,
    /// Something is to be published.
    pub(crate) given: Notify,
    /// True when it is to end.
    pub(crate) stop: watch::Receiver<bool>,
    /// When the zone was last purged because of what could not be opened.
    pub(crate) garbage: Cell<Option<Instant>>,
    pub(crate) owes_purge: Cell<bool>,
    /// Random bits, in the beats of this process.
    pub(crate) process: u64,
    /// Beats so far.
    beats: Cell<u64>,
    has_parted: Cell<bool>,
    /// Until then a log of which this process has not followed the beginning may lack what a node has that has not beaten
    /// yet.
    pub(crate) grace: Cell<Option<Instant>>,
    /// When the other nodes were last seen.
    pub(crate) informed: Cell<Option<Instant>>,
    placed: RefCell<BTreeMap<u64, Vec<oneshot::Sender<Placed>>>>,
    complaint: RefCell<Option<(String, Instant)>>,
    /// Entries that are asked for at a time.
    pub(crate) portion: Cell<usize>,
    /// Nodes whose keys are made in another way.
    strange: RefCell<BTreeSet<Issuer>>,
    /// What the engine does when its memory is full, as it was last.
    policy: RefCell<String>,
}

impl Member {
    /// Opens the journal. What cannot be read there is replaced by a purge of the zone.
    pub(crate) async fn open(
        settings: Arc<Settings>,
        zone: Arc<dyn Zone>,
        door: Arc<Door>,
        log: SharedLogs,
        stop: watch::Receiver<bool>,
    ) -> Result<Member, Failure> {
        let seal = settings.secret.seal(&settings.cluster, zone.name()).ok_or(Failure::NoRandom)?;
        let place = settings.secret.place(&settings.cluster, zone.name()).ok_or(Failure::NoRandom)?;
        let process = random().map(u64::from_le_bytes).ok_or(Failure::NoRandom)?;
        let (journal, found) = match Journal::open(zone.directory()) {
            Ok(opened) => opened,
            Err(error) => {
                log.write(
                    Level::Error,
                    format_args!(
                        "cluster {}: cache zone \"{}\": the journal cannot be kept: {error}",
                        settings.cluster,
                        zone.name()
                    ),
                );
                (Journal::open(None).map_err(Failure::Journal)?.0, Found::Damaged)
            }
        };
        let member = Member {
            place: Place::new(&place),
            settings,
            seal,
            zone,
            door,
            log,
            journal: RefCell::new(journal),
            peers: RefCell::default(),
            given: Notify::new(),
            stop,
            garbage: Cell::default(),
            owes_purge: Cell::default(),
            process,
            beats: Cell::default(),
            has_parted: Cell::default(),
            grace: Cell::default(),
            informed: Cell::default(),
            placed: RefCell::default(),
            complaint: RefCell::default(),
            portion: Cell::new(PORTION),
            strange: RefCell::default(),
            policy: RefCell::default(),
        };
        match found {
            Found::Damaged => member.purge_zone(Level::Error, "its journal cannot be read").await,
            Found::Copy(orders) => {
                for order in orders {
                    let lasting = member.zone.carry_out(&order.what, order.how);
                    member.lasts(lasting.await);
                }
            }
            Found::Nothing | Found::Journal => {}
        }
        Ok(member)
    }

    /// Numbers what is given, writes it into the journal, and has it published, until it is to stop.
    pub(crate) async fn take(self: Rc<Self>) {
        let mut stop = self.stop.clone();
        while !*stop.borrow() {
            self.take_given();
            tokio::select! {
                () = self.door.wake.notified() => {}
                _ = stop.changed() => {}
            }
        }
        self.take_given();
    }

    pub(crate) fn take_given(&self) {
        let given = self.door.take();
        if given.is_empty() {
            return;
        }
        let mut journal = self.journal.borrow_mut();
        let mut placed = self.placed.borrow_mut();
        if placed.len() > IDLE_SENDERS {
            placed.retain(|_, senders| senders.iter().any(|sender| !sender.is_closed()));
        }
        let (mut is_awaited, issuer) = (false, journal.held.issuer);
        for Given { what, how, at, awaited, placed: senders } in given {
            let number = journal.held.issued + 1;
            journal.give(Order { issuer, number, at, how, awaited, what });
            placed.insert(number, senders);
            is_awaited |= awaited;
        }
        self.written(journal.write());
        // Should the engine be lost too, what was answered must survive a power failure here.
        if let Some(file) = journal.handle().filter(|_| is_awaited) {
            tokio::task::spawn_local(blocking::run(move || file.sync_data()));
        }
        let unpublished = journal.held.unpublished();
        self.show(|view| view.unpublished = unpublished);
        self.given.notify_one();
    }

    /// Lets those know who wait for orders of this node up to a number.
    pub(crate) fn note_placed(&self, upto: u64) {
        let mut placed = self.placed.borrow_mut();
        let waiting = placed.split_off(&upto.saturating_add(1));
        let issuer = self.journal.borrow().held.issuer;
        let at = clock::now();
        for (number, senders) in std::mem::replace(&mut *placed, waiting) {
            // Nobody may wait any more.
            senders.into_iter().for_each(|sender| _ = sender.send(Placed { issuer, number, at }));
        }
    }

    pub(crate) fn has_beaten(&self) -> bool {
        self.beats.get() > 0
    }

    pub(crate) fn beat(&self, is_settled: bool) -> Option<Vec<u8>> {
        let count = self.beats.get() + 1;
        self.beats.set(count);
        let has_left = *self.stop.borrow();
        let beat = Beat {
            has_left,
            ..Beat::of(
                &self.journal.borrow().held,
                &self.settings,
                (self.process, count),
                (is_settled, self.door.keys()),
            )
        };
        self.seal.close(Kind::Beat, &beat.encode())
    }

    /// The head of the log as it was at `at` is in force here.
    pub(crate) fn confirm(&self, at: Instant) {
        self.door.standing.confirm(at, clock::now(), clock::wall().unix_milliseconds());
        self.tell_standing();
    }

    /// Nothing is confirmed any more.
    pub(crate) fn lapse(&self) {
        self.door.standing.lapse();
        self.tell_standing();
    }

    fn tell_standing(&self) {
        let (from, until) = self.door.standing.window();
        self.zone.confirmed(from, until);
    }

    /// Shows and logs when this node is cut off and when it is not any more, until it is to stop.
    pub(crate) async fn watch(self: Rc<Self>) {
        let mut stop = self.stop.clone();
        while !*stop.borrow() {
            let is_cut_off = self.door.is_cut_off(clock::wall().unix_milliseconds());
            if self.door.view.borrow().cut_off_since.is_some() != is_cut_off {
                self.show(|view| view.cut_off_since = is_cut_off.then(clock::now));
                let (level, what) = match is_cut_off {
                    true if self.settings.serves => {
                        (Level::Error, "cut off: stored responses are served, even purged ones")
                    }
                    true => (Level::Error, "cut off: stored responses are revalidated with the upstream"),
                    false => (Level::Notice, "up to date: stored responses are served"),
                };
                self.write(level, format_args!("{what}"));
            }
            tokio::select! {
                () = pause(WATCH) => {}
                _ = stop.changed() => {}
            }
        }
    }

    /// Goes on as another node, once: orders of two processes with one journal have the same numbers, so some were taken for known. What
    /// they were about is unknown, so everything is purged, here and everywhere.
    pub(crate) async fn part(&self) -> Result<(), Failure> {
        if self.has_parted.replace(true) {
            return Ok(());
        }
        self.lapse();
        let issuer = random().map(Issuer).ok_or(Failure::NoRandom)?;
        {
            let mut journal = self.journal.borrow_mut();
            journal.held = journal.held.as_another(issuer);
            journal.rewrite().map_err(Failure::Journal)?;
        }
        self.placed.borrow_mut().clear();
        self.purge_zone(Level::Error, "another node uses a copy of this node's cache directory").await;
        drop(self.door.publish(What::All, How::Hard, false));
        Err(Failure::Twin)
    }

    /// Logs that the engine may remove entries by itself, when it begins to.
    pub(crate) fn check_policy(&self, policy: &str) {
        let before = self.policy.replace(policy.to_owned());
        if policy != before && !policy.is_empty() && policy != "noeviction" {
            self.write(
                Level::Warn,
                format_args!(
                    "the engine may evict keys when its memory is full (maxmemory-policy {policy}), which purges the zone; set \
                    maxmemory-policy noeviction"
                ),
            );
        }
    }

    /// Logs nodes whose keys have become different from this one's.
    pub(crate) fn compare_keys<'p>(&self, strange: impl Iterator<Item = (Issuer, &'p Peer)>) {
        let mut known = self.strange.borrow_mut();
        let mut now = BTreeSet::new();
        for (issuer, peer) in strange {
            now.insert(issuer);
            if !known.contains(&issuer) {
                self.write(
                    Level::Warn,
                    format_args!(
                        "node {} has different keys: purges by URL, prefix or tag may miss what it has stored; make proxy_cache_key, \
                        proxy_cache_tag and, with the default key, proxy_pass the same on every node",
                        peer.beat.name
                    ),
                );
            }
        }
        *known = now;
    }

    /// The name of another node, or what stands for it.
    pub(crate) fn name_of(&self, issuer: Issuer) -> String {
        let peers = self.peers.borrow();
        peers.get(issuer).map_or_else(|| issuer.to_string(), |peer| peer.beat.name.clone())
    }

    /// Purges the zone: nothing that was stored until now is served any more.
    pub(crate) async fn purge_zone(&self, level: Level, why: &str) {
        self.write(level, format_args!("{why}; the zone is purged"));
        self.door.account().note_zone_purge();
        let lasting = self.zone.carry_out(&What::All, How::Hard);
        self.lasts(lasting.await);
    }

    pub(crate) fn lasts(&self, carried_out: std::io::Result<()>) {
        if let Err(error) = carried_out {
            self.write(
                Level::Error,
                format_args!("a purge is applied, but will not survive a restart: {error}"),
            );
        }
    }

    pub(crate) fn written(&self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.complain(&Failure::Journal(error));
        }
    }

    pub(crate) fn show(&self, change: impl FnOnce(&mut View)) {
        self.door.view.send_modify(change);
    }

    /// Writes a failure into the error log, once until it changes, and shows it.
    pub(crate) fn complain(&self, failure: &Failure) {
        // The engine may have written it.
        let text: String = failure.to_string().chars().take(MOST_FAILURE).collect();
        self.show(|view| view.failure = Some(text.clone()));
        let now = clock::now();
        let mut complaint = self.complaint.borrow_mut();
        let is_known =
            |(known, at): &(String, Instant)| *known == text && now.saturating_duration_since(*at) < REPEAT;
        if complaint.as_ref().is_some_and(is_known) {
            return;
        }
        self.write(Level::Error, format_args!("{text}"));
        *complaint = Some((text, now));
    }

    pub(crate) fn is_well(&self) {
        if self.complaint.borrow_mut().take().is_some() {
            self.write(Level::Notice, format_args!("the engine is back"));
        }
        self.show(|view| view.failure = None);
    }

    pub(crate) fn write(&self, level: Level, message: std::fmt::Arguments<'_>) {
        let (cluster, zone) = (&self.settings.cluster, self.zone.name());
        self.log.write(level, format_args!("cluster {cluster}: cache zone \"{zone}\": {message}"));
    }

    pub(crate) async fn line(&self) -> Result<engine::Line, Failure> {
        engine::open(&self.settings.engine).await
    }
}
