//! The one thread that looks after a cache's directory: it listens for what others remove, lists the files at start,
//! lets go of what is too much or unused, and takes away what was purged.
//!
//! ```text
//!   events ─▶ unlinked ─┐                  listing · survey · recheck · tidy · walk: a round each, then a pause
//!   wake ───────────────┴─▶ turn ─▶ wait until the next is due, an event comes or the cache is closed
//! ```
//! It sleeps in one system call and is woken by events and its own times, never to look whether something changed.
//! Next: `watch`, `load`, `survey`, `unlinked` and `tidy`, the work.

use super::Disk;
use super::load::Listing;
use super::pace::Round;
use super::place::Name;
use super::survey::Survey;
use super::unlinked::Recheck;
use super::walk::Walk;
use super::watch::{self, Happening};
use crate::file_format::FileHead;
use crate::now::Now;
use millstream_conf::model::Pace;
use millstream_net::clock;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two checks of every file, if the system does not report all removals.
const BLIND: Duration = Duration::from_secs(30);

pub(crate) trait Zone: Send + 'static {
    /// Another process removed a file that memory may have something of: `key` is the hash of its key.
    fn unlinked(&self, name: &Name, key: u64);
    fn purges(&self) -> u64;
    fn is_purged(&self, head: &FileHead, born: u64) -> bool;
    /// Whether it must know the heads of existing files.
    fn is_seeking(&self) -> bool;
    fn meets(&self, head: &FileHead);
    /// All of them were passed to `meets`.
    fn has_met_all(&self);
}

/// Work done in rounds: what is in progress, and when it continues.
struct Job<T> {
    work: Option<T>,
    due: Instant,
}

struct Keeper<Z> {
    disk: Weak<Disk>,
    wake: Arc<OwnedFd>,
    zone: Z,
    listing: Job<Listing>,
    /// Other processes used the directory when its listing began: they may have added what it has missed.
    is_shared: bool,
    survey: Job<Survey>,
    /// The survey has begun, which happens once.
    is_surveyed: bool,
    recheck: Job<Recheck>,
    walk: Job<Walk>,
    tidy_at: Instant,
    /// The latest purge that a walk began after.
    walked: u64,
}

/// The thread ends with the last handle to the disk.
pub(super) fn start(disk: &Arc<Disk>, zone: impl Zone) -> io::Result<()> {
    let now = clock::now();
    let mut keeper = Keeper {
        disk: Arc::downgrade(disk),
        wake: disk.wake.clone(),
        zone,
        is_shared: !disk.is_alone(),
        listing: Job { work: Some(Listing::begin(disk)), due: now },
        survey: Job { work: None, due: now },
        is_surveyed: false,
        recheck: Job { work: None, due: now },
        walk: Job { work: None, due: now },
        tidy_at: now,
        walked: 0,
    };
    thread::Builder::new().name("cache-keeper".to_owned()).spawn(move || while keeper.turn_and_wait() {})?;
    Ok(())
}

impl<Z: Zone> Keeper<Z> {
    /// False once the cache is closed.
    fn turn_and_wait(&mut self) -> bool {
        let Some(disk) = self.disk.upgrade() else { return false };
        let more = self.listen(&disk);
        let next = self.work(&disk);
        let inotify = disk.kept.watch.descriptor();
        drop(disk);
        let timeout = if more { Duration::ZERO } else { next.saturating_duration_since(clock::now()) };
        let waited = watch::wait([Some(&*self.wake), inotify.as_deref()], timeout);
        let mut count = [0; 8];
        // Nothing to be read means that it was not this that woke us; otherwise there may be other bounds.
        if rustix::io::read(&*self.wake, &mut count).is_ok() {
            self.tidy_at = clock::now();
        }
        waited.is_ok()
    }

    /// True if there is more to read.
    fn listen(&mut self, disk: &Disk) -> bool {
        let (mut lost, mut returned) = (false, false);
        let zone = &self.zone;
        let more = disk.kept.watch.happened(|happening| match happening {
            Happening::Unlinked(name) => {
                if let Some(key) = disk.kept.unlinked(&name).filter(|&key| key != 0) {
                    zone.unlinked(&name, key);
                }
            }
            // Where somebody made it again, what happened in it meanwhile is not known.
            Happening::Vanished(directory) => returned |= disk.kept.is_there(directory),
            Happening::Lost => lost = true,
        });
        if lost {
            disk.kept.watch.renew();
        }
        if lost || returned {
            self.recheck = Job { work: Some(Recheck::begin()), due: clock::now() };
        }
        more
    }

    /// Does a round of everything that is due. Returns when something will be.
    fn work(&mut self, disk: &Disk) -> Instant {
        let now = clock::now();
        let paces = disk.kept.bounds.paces();
        self.listing
            .turn(now, paces.loader.sleep, |listing| listing.step(disk, &mut Round::begin(paces.loader)));
        self.survey(disk, now, paces.loader);
        self.look_again(disk, now, paces.loader.sleep);
        if now >= self.tidy_at {
            let more = disk.kept.tidy(Now::read(), &mut Round::begin(paces.manager));
            self.tidy_at =
                clock::now() + if more { paces.manager.sleep } else { disk.kept.bounds.tidy_every() };
        }
        if let Some(pace) = paces.purger {
            let latest = self.zone.purges();
            if self.walk.work.is_none() && latest != self.walked && disk.is_loaded() {
                self.walked = latest;
                self.walk = Job { work: Some(Walk::begin()), due: now };
            }
            let zone = &self.zone;
            self.walk.turn(now, pace.sleep, |walk| {
                walk.step(&disk.kept, &mut Round::begin(pace), |name| {
                    disk.kept.remove_where(name, |head, born| zone.is_purged(head, born));
                })
            });
        }
        [self.listing.next(), self.survey.next(), self.recheck.next(), self.walk.next()]
            .into_iter()
            .flatten()
            .fold(self.tidy_at, Instant::min)
    }

    /// Reads the existing files, if the zone asks for it or there are none. What others have added meanwhile
    /// is listed first, once they have gone.
    fn survey(&mut self, disk: &Disk, now: Instant, pace: Pace) {
        let is_listed = disk.is_loaded() && self.listing.work.is_none();
        if is_listed && !self.is_surveyed && (self.zone.is_seeking() || disk.size().0 == 0) {
            if !self.is_shared {
                self.is_surveyed = true;
                self.survey = Job { work: Some(Survey::begin()), due: now };
            } else if disk.is_alone() {
                self.is_shared = false;
                self.listing = Job { work: Some(Listing::begin(disk)), due: now };
            }
        }
        let zone = &self.zone;
        self.survey.turn(now, pace.sleep, |survey| {
            match survey.step(&disk.kept, &mut Round::begin(pace), |head| zone.meets(head)) {
                Some(true) => zone.has_met_all(),
                Some(false) => {}
                None => return true,
            }
            false
        });
    }

    /// Checks every file if not everything is reported: at once after a loss, periodically without inotify.
    fn look_again(&mut self, disk: &Disk, now: Instant, sleep: Duration) {
        let is_blind = disk.kept.watch.is_blind();
        if is_blind && self.recheck.work.is_none() {
            self.recheck = Job { work: Some(Recheck::begin()), due: now + BLIND };
        }
        let zone = &self.zone;
        let pause = if is_blind { sleep } else { Duration::ZERO };
        self.recheck.turn(now, pause, |recheck| {
            recheck.step(&disk.kept, |name, key| {
                if key != 0 {
                    zone.unlinked(name, key);
                }
            })
        });
    }
}

impl<T> Job<T> {
    fn turn(&mut self, now: Instant, pause: Duration, round: impl FnOnce(&mut T) -> bool) {
        if now < self.due {
            return;
        }
        if let Some(work) = &mut self.work {
            if !round(work) {
                self.work = None;
            }
            self.due = clock::now() + pause;
        }
    }

    fn next(&self) -> Option<Instant> {
        self.work.as_ref().map(|_| self.due)
    }
}
