//! One session with the engine: from a connection to its first failure.
//!
//! ```text
//! proof of the secret ─▶ round: beat ─▶ another epoch? follow it ─▶ publish ─▶ read to the head ─▶ confirm ─▶ wait ─┐
//!                          ▲                                                                                        │
//!                          └── a new entry (bell), something given, time for a beat ◀───────────────────────────────┘
//! ```
//! Everything is decided here, in one task, one step after the other. Next: `reading`, `publishing`.

use crate::attempts::Attempts;
use crate::beat::Beat;
use crate::bell::Bell;
use crate::engine::{Failure, Line};
use crate::epoch::Epoch;
use crate::held::Cursor;
use crate::marks::Mark;
use crate::member::Member;
use crate::order::Issuer;
use crate::peers::MARGIN;
use crate::script::{self, Seen};
use crate::secret::Kind;
use crate::settings::Guard;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_net::timer::pause;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Between two beats.
const BEAT: Duration = Duration::from_secs(1);
/// The same while something is to be settled.
const HURRY: Duration = Duration::from_millis(50);
/// The same while someone waits for other nodes: from the first to the last.
const AWAITED: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// By then every node that is there has beaten.
const GRACE: Duration = Duration::from_secs(2);
/// Attempts to raise the epoch in one round.
const RAISES: usize = 8;
/// Longest wait for each node that is to publish the orders of others first.
const TURN: Duration = Duration::from_secs(2);
/// A target that was not reached by then is given up for a later one.
const TARGET: Duration = Duration::from_secs(1);
/// A zone with entries missing for as long is purged.
const MISSING: Duration = Duration::from_secs(5);

/// What must be in force here for this node to be confirmed.
#[derive(Debug)]
pub(crate) struct Target {
    /// When the engine was asked.
    at: Instant,
    head: u64,
    published: Vec<(Issuer, u64, u64)>,
}

pub(crate) struct Session<'m> {
    pub(crate) member: &'m Rc<Member>,
    pub(crate) line: Line,
    bell: Bell,
    /// Orders of this node up to this number were sent in this session.
    pub(crate) sent: u64,
    /// Whether everything that the log lacks of what this node holds was published.
    pub(crate) is_settled: bool,
    /// When the epoch was first followed in this session.
    pub(crate) followed: Instant,
    target: Option<Target>,
    /// When the engine was last asked where all are; `None` before the first time. Whatever else goes on, the next time follows it.
    beaten: Option<Instant>,
    /// Since when someone has waited for other nodes.
    awaited: Option<Instant>,
    /// How far this node had read when it last began in place of entries that it does not know.
    began: u64,
    /// Since when other nodes have had more than the log.
    missing: Option<Instant>,
}

impl<'m> Session<'m> {
    pub(crate) async fn open(member: &'m Rc<Member>) -> Result<Session<'m>, Failure> {
        let mut line = member.line().await?;
        script::prove(&mut line, &member.settings).await?;
        member.check_policy(&line.policy);
        let bell = Bell::hang(member, member.line().await?);
        let now = clock::now();
        Ok(Session {
            member,
            line,
            bell,
            sent: 0,
            is_settled: false,
            followed: now,
            target: None,
            beaten: None,
            awaited: None,
            began: member.journal.borrow().held.cursor.sequence,
            missing: None,
        })
    }

    /// Ends with a failure, or because the node is to stop. `attempts` learns that it has begun.
    pub(crate) async fn run(mut self, attempts: &mut Attempts) -> Result<(), Failure> {
        let mut stop = self.member.stop.clone();
        loop {
            self.round().await?;
            attempts.succeeded();
            let next_beat = self.next_beat();
            tokio::select! {
                rung = self.bell.rung() => rung?,
                () = self.member.given.notified() => {}
                () = pause(next_beat) => {}
                _ = stop.changed() => return self.leave().await,
            }
        }
    }

    async fn round(&mut self) -> Result<(), Failure> {
        if self.next_beat().is_zero() || self.member.door.is_awaited() {
            self.beat().await?;
        }
        let mut wants_beat = self.read().await?;
        if self.publish().await? {
            wants_beat |= self.read().await?;
            self.awaited = self.member.door.is_awaited().then(clock::now);
        }
        if wants_beat {
            self.beat().await?;
        }
        self.confirm().await;
        self.bell.listen(self.member.journal.borrow().held.cursor);
        Ok(())
    }

    /// Publishes what was given at the end, and goes.
    async fn leave(&mut self) -> Result<(), Failure> {
        self.member.lapse();
        self.member.take_given();
        while self.publish().await? && self.has_unsent() {}
        self.ask().await.map(|_| ())
    }

    /// How long it may take.
    fn next_beat(&self) -> Duration {
        let now = clock::now();
        let Some(beaten) = self.beaten else { return Duration::ZERO };
        let wait = match self.awaited {
            Some(since) => (now.saturating_duration_since(since) / 8).clamp(AWAITED.0, AWAITED.1),
            None if !self.is_settled || self.member.door.is_cut_off(clock::wall().unix_milliseconds()) => {
                HURRY
            }
            None => BEAT.min(self.member.settings.cut_off / 4),
        };
        wait.saturating_sub(now.saturating_duration_since(beaten))
    }

    /// Tells the others where this node is and asks where they are; follows another epoch.
    pub(crate) async fn beat(&mut self) -> Result<(), Failure> {
        let mut raises = 0;
        loop {
            let at = clock::now();
            let seen = self.ask().await?;
            if self.agrees(&seen) {
                self.beaten = Some(at);
                self.member.is_well();
                self.note(at, &seen);
                return self.tidy().await;
            }
            let known = self.member.journal.borrow().held.epoch.clone();
            let stored = seen.epoch(known.as_ref()).filter(|epoch| epoch.is_on(&self.line.replication));
            let is_known = stored == known;
            match stored {
                Some(epoch) if !is_known => self.follow(epoch, &seen).await,
                _ => {
                    raises += 1;
                    if raises > RAISES {
                        return Err(Failure::Strange("its log starts anew all the time"));
                    }
                    self.raise(&seen).await?;
                }
            }
        }
    }

    /// Removes a node that does not come back, and takes over the journal of a process that has ended.
    async fn tidy(&mut self) -> Result<(), Failure> {
        let forgotten = self.member.peers.borrow().forgotten(clock::now());
        if let Some((issuer, sealed)) = forgotten {
            self.member.place.forget(&mut self.line, issuer, &sealed).await?;
        }
        let taken = self.member.journal.borrow_mut().take_over();
        self.is_settled &= !matches!(taken, Ok(true));
        self.member.written(taken.map(|_| ()));
        Ok(())
    }

    async fn ask(&mut self) -> Result<Seen, Failure> {
        let member = self.member;
        let is_first = !member.has_beaten();
        let sealed = member.beat(self.is_settled).ok_or(Failure::NoRandom)?;
        let issuer = member.journal.borrow().held.issuer;
        let begun = clock::now();
        let seen = member.place.beat(&mut self.line, issuer, &sealed).await?;
        let (beats, now) = (seen.beats.clone(), clock::now());
        member.door.account().note_script(now.saturating_duration_since(begun));
        let before = member.seal.open(Kind::Beat, &seen.before).and_then(|plain| Beat::decode(&plain));
        if !is_first && before.is_some_and(|beat| beat.process != member.process) {
            member.part().await?;
        }
        member.peers.borrow_mut().update(beats, (issuer, &member.seal), now);
        Ok(seen)
    }

    /// Whether the log is the one that this node follows.
    fn agrees(&self, seen: &Seen) -> bool {
        let held = &self.member.journal.borrow().held;
        let epoch = seen.epoch(held.epoch.as_ref());
        epoch.is_some()
            && epoch == held.epoch
            && epoch.is_some_and(|epoch| epoch.is_on(&self.line.replication))
            && seen.head >= held.cursor.sequence
    }

    /// Something may be lost: begins the next epoch, unless another node does.
    async fn raise(&mut self, seen: &Seen) -> Result<(), Failure> {
        let known = self.member.journal.borrow().held.epoch.clone();
        let stored = seen.epoch(known.as_ref());
        let next = Epoch::raised(stored.as_ref(), known.as_ref(), &self.line.replication);
        let next = next.ok_or(Failure::NoRandom)?;
        self.member.place.raise(&mut self.line, &seen.epoch, &next).await
    }

    /// Goes on in another epoch.
    async fn follow(&mut self, epoch: Epoch, seen: &Seen) {
        let member = self.member;
        member.lapse();
        (self.is_settled, self.sent, self.followed, self.target) = (false, 0, clock::now(), None);
        let number = epoch.number;
        let (is_first, is_known) = {
            let mut journal = member.journal.borrow_mut();
            let is_first = journal.held.epoch.is_none();
            (is_first, journal.held.follow(epoch))
        };
        let now = clock::now();
        // Of other nodes that were there before, some may not have beaten since the engine lost their beats.
        let is_informed = member.informed.get().is_some_and(|at| now.saturating_duration_since(at) <= BEAT);
        if !is_informed && !is_first {
            member.grace.set(Some(now + GRACE));
            // One of those may not reach the engine, and serves until it cuts itself off.
            member.show(|view| view.unsure_until = Some(now + member.settings.cut_off + MARGIN));
        }
        let is_empty = is_first && seen.head == 0;
        if !is_known && !is_empty {
            let why = match is_first {
                true => (Level::Notice, "this node joins"),
                false => {
                    (Level::Error, "the engine may have lost data more than once while this node was away")
                }
            };
            self.start_over(why, number, seen).await;
        }
        member.write(Level::Notice, format_args!("following the engine's log, epoch {number}"));
        let written = member.journal.borrow_mut().rewrite();
        member.written(written);
    }

    /// Purges the zone in place of the entries up to the head, which are unknown. Call it with what was seen
    /// before.
    pub(crate) async fn start_over(&mut self, (level, why): (Level, &str), epoch: u64, seen: &Seen) {
        let member = self.member;
        // Also one without files may have stored something, while it was not a part of the cluster or cut off.
        member.purge_zone(level, why).await;
        let mut journal = member.journal.borrow_mut();
        let published: Vec<(Issuer, u64)> =
            member.peers.borrow().iter().map(|(issuer, peer)| (issuer, peer.beat.published)).collect();
        journal.held.start_over(Cursor { epoch, sequence: seen.head }, published.into_iter());
        self.began = seen.head;
        let written = journal.write();
        member.written(written);
    }

    /// Purges the zone, because entries of the log are missing.
    pub(crate) async fn lost(&mut self, why: &str) -> Result<(), Failure> {
        self.member.lapse();
        let seen = self.ask().await?;
        let number = self.member.journal.borrow().held.epoch.as_ref().map(|epoch| epoch.number);
        if self.agrees(&seen)
            && let Some(number) = number
        {
            self.start_over((Level::Error, why), number, &seen).await;
        }
        Ok(())
    }

    /// Notes what was seen: what has to be read for a confirmation, for those who wait, and for people.
    fn note(&mut self, at: Instant, seen: &Seen) {
        let member = self.member;
        let now = clock::now();
        let peers = member.peers.borrow();
        let held = &member.journal.borrow().held;
        let live = || peers.live(now);
        let token = held.epoch.as_ref().map_or("", |epoch| epoch.token());
        let is_old =
            self.target.as_ref().is_none_or(|target| now.saturating_duration_since(target.at) > TARGET);
        if is_old {
            // Until a node has settled, the log may lack orders that only that node has.
            let is_early = member.grace.get().is_some_and(|until| now < until);
            let is_unguarded = !member.settings.has(Guard::Settling);
            self.target = (is_unguarded || !is_early && live().all(|(_, peer)| peer.beat.settled == token))
                .then(|| Target {
                    at,
                    head: seen.head,
                    published: live()
                        .map(|(issuer, peer)| (issuer, peer.beat.published, peer.beat.sequence))
                        .collect(),
                });
        }
        member.informed.set(Some(now));
        let present = || peers.iter().filter(|(_, peer)| !peer.beat.has_left);
        member.compare_keys(present().filter(|(_, peer)| peer.beat.keys != member.door.keys()));
        if !member.settings.has(Guard::ReplayFirst) {
            member.confirm(at);
        }
        self.awaited = member.door.is_awaited().then(|| self.awaited.unwrap_or(now));
        member.show(|view| {
            view.at = Some(at);
            view.epoch = held.epoch.as_ref().map_or(0, |epoch| epoch.number);
            (view.head, view.sequence) = (seen.head, held.cursor.sequence);
            view.peers = present().map(|(issuer, peer)| (issuer, peer.clone())).collect();
            view.is_replaying = held.cursor.sequence < seen.head;
            view.unpublished = held.unpublished();
        });
    }

    /// Confirms this node as of the moment of the target, if everything up to it is in force.
    async fn confirm(&mut self) {
        let member = self.member;
        if !self.pay_purge().await {
            return;
        }
        let Some(target) = self.target.take() else { return };
        let (has_read, has_all) = {
            let held = &member.journal.borrow().held;
            let is_checked =
                [Guard::Settling, Guard::DenseNumbers].map(|guard| member.settings.has(guard)) == [true; 2];
            let has = |(issuer, number, _): &(Issuer, u64, u64)| {
                let mark = held.marks.of(*issuer);
                mark.open || mark.number >= *number || !is_checked
            };
            (held.cursor.sequence >= target.head, target.published.iter().all(has))
        };
        let now = clock::now();
        match (has_read, has_all) {
            (true, true) => {
                self.close_marks(&target);
                member.confirm(target.at);
                self.missing = None;
            }
            (true, false) => {
                let since = *self.missing.get_or_insert(now);
                if now.saturating_duration_since(since) > MISSING {
                    self.missing = None;
                    _ = self.lost("other nodes have published more than the log holds").await;
                }
            }
            // To be reached after more was read.
            (false, _) => self.target = Some(target),
        }
    }

    /// What a node had published by then is in force here, so what it publishes next follows that without a gap. It has to have read the log
    /// as far as this node had when it began, or its count may lag behind what the log has.
    fn close_marks(&self, target: &Target) {
        let mut journal = self.member.journal.borrow_mut();
        for (issuer, number, sequence) in &target.published {
            let mark = journal.held.marks.of(*issuer);
            if mark.open && *sequence >= self.began {
                let number = mark.number.max(*number);
                journal.held.marks.set(*issuer, Mark { number, open: false });
            }
        }
    }

    /// How long this node lets others publish what neither of them issued.
    pub(crate) fn is_its_turn(&self) -> bool {
        let now = clock::now();
        let member = self.member;
        let held = &member.journal.borrow().held;
        let token = held.epoch.as_ref().map_or("", |epoch| epoch.token());
        let peers = member.peers.borrow();
        let before = peers.live(now);
        let before =
            before.filter(|(issuer, peer)| *issuer < held.issuer && peer.beat.settled != token).count();
        now >= self.followed + TURN * before as u32
    }
}
