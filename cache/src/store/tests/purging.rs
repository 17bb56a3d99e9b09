//! Purges over restarts, beside files, and against a model that knows what must be there after any sequence of steps.

use super::*;
use crate::fill::Fill;
use crate::purges::{How, Purge, What};
use crate::tags::Tags;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::Ipv4Addr;

fn whole(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0; 4]].concat()
}

fn whole_text(text: &str) -> String {
    String::from_utf8(whole(text)).expect("text")
}

async fn purge(store: &Arc<Store>, what: What, how: How) {
    store.purge_at(Purge { what, how }, start()).await.expect("written");
}

#[test]
fn what_was_invalidated_is_not_read_from_its_file_before_that_is_removed() {
    runtime().block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        let zone = zone(Some(directory.path()));
        let first = store(&zone);
        let keys: Vec<String> = (0..100).map(|number| whole_text(&format!("key {number}"))).collect();
        for key in &keys {
            put(&first, key, &Headers::new(), &[], b"old").await;
        }
        // One that was started anew has them on disk alone.
        let second = store(&zone);
        let mut front = Front::new(second.clone());
        for key in &keys {
            second.invalidate(key.as_bytes());
            let lookup = match front.lookup(key.as_bytes(), Fields::default(), &conf(), start()) {
                Lookup::Disk(probe) => load(probe, &Headers::new()).await,
                other => other,
            };
            assert!(matches!(lookup, Lookup::Miss(_)), "{key:?}: {lookup:?}");
        }
    });
}

#[test]
fn a_purge_holds_after_a_restart_also_for_what_only_the_disk_has() {
    let (de, fr) = (headers(&[("Accept-Language", "de")]), headers(&[("Accept-Language", "fr")]));
    let vary = [("Vary", "Accept-Language")];
    let whats =
        [What::All, What::Prefix(b"ke".to_vec()), What::Key(whole("key")), What::Key(b"key".to_vec())];
    runtime().block_on(async {
        for what in whats {
            for (how, in_memory) in
                [(How::Hard, true), (How::Hard, false), (How::Soft, true), (How::Soft, false)]
            {
                let directory = tempfile::tempdir().expect("a directory");
                let zone = zone(Some(directory.path()));
                let first = store(&zone);
                put(&first, &whole_text("key"), &de, &vary, b"hallo").await;
                put(&first, &whole_text("key"), &fr, &vary, b"salut").await;
                put(&first, "other", &Headers::new(), &[], b"other").await;
                // One that was started anew knows nothing of the files.
                let purging = if in_memory { first } else { store(&zone) };
                purge(&purging, what.clone(), how).await;
                for store in [purging, store(&zone)] {
                    for (request, body) in [(&de, &b"hallo"[..]), (&fr, b"salut")] {
                        let mut front = Front::new(store.clone());
                        let lookup = front.lookup(&whole("key"), request.view(), &conf(), start());
                        let lookup = match lookup {
                            Lookup::Disk(probe) => load(probe, request).await,
                            other => other,
                        };
                        match (how, lookup) {
                            (How::Hard, Lookup::Miss(_)) => {}
                            (How::Soft, Lookup::Stale(hit, Some(_))) => {
                                assert_eq!(hit.body_in_memory(), Some(body));
                            }
                            (_, other) => panic!("{what:?} {how:?}, in memory {in_memory}: {other:?}"),
                        }
                    }
                    let other = found(&store, "other", &Headers::new()).await;
                    assert_eq!(other.is_some(), what != What::All, "{what:?} {how:?}");
                }
            }
        }
    });
}

#[test]
fn a_purged_file_is_removed_when_it_is_come_upon_and_by_the_sweep() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let first = store(&zone);
        for key in ["one", "two", "three"] {
            put(&first, key, &Headers::new(), &[], b"body").await;
        }
        listed(&first).await;
        purge(&first, What::Prefix(b"t".to_vec()), How::Hard).await;
        assert_eq!(first.stats().files, 3);
        first.maintain(start());
        settled(&first).await;
        assert_eq!((first.stats().files, first.stats().keys), (1, 1));

        purge(&first, What::Prefix(b"one".to_vec()), How::Hard).await;
        let restarted = store(&zone);
        assert_eq!(found(&restarted, "one", &Headers::new()).await, None);
        listed(&restarted).await;
        assert_eq!(restarted.stats().files, 0);
    });
}

#[test]
fn a_key_that_is_purged_is_told_to_have_been_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let first = store(&zone);
        put(&first, &whole_text("key"), &Headers::new(), &[], b"body").await;
        let restarted = store(&zone);
        let key = || Purge { what: What::Key(whole("key")), how: How::Hard };
        let mut told = Vec::new();
        for store in [&first, &restarted] {
            let purged = store.purge(key()).await.expect("written");
            told.push((purged.in_memory, purged.on_disk));
        }
        put(&first, &whole_text("key"), &Headers::new(), &[], b"body").await;
        let purged = restarted.purge(key()).await.expect("written");
        told.push((purged.in_memory, purged.on_disk));
        assert_eq!(told, [(true, true), (false, false), (false, true)]);
        assert!(fs::read(directory.path().join(".millstream-purges")).is_err(), "no rule was needed");
    });
}

#[test]
fn a_purge_of_a_key_that_shares_a_mark_costs_a_current_fill_and_nothing_stored() {
    let store = store(&zone(None));
    let shares = |other: &Vec<u8>| Memory::share_mark(store.hash(b"key"), store.hash(other));
    let other = (0..).map(|number| whole(&format!("other {number}"))).find(shares).expect("one in 32,768");
    let purge_other = || purge(&store, What::Key(other.clone()), How::Hard);
    runtime().block_on(async {
        let permit = miss(Front::new(store.clone()).lookup(b"key", Fields::default(), &conf(), start()));
        let fill = begin(permit, &[], Fields::default(), start());
        purge_other().await;
        assert!(fill.finish().await.is_none());
        put(&store, "key", &Headers::new(), &[], b"body").await;
        purge_other().await;
        assert_eq!(found(&store, "key", &Headers::new()).await, Some(b"body".to_vec()));
    });
}

#[test]
fn a_purge_in_a_directory_that_cannot_be_written_says_so_and_holds() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("cache");
    let zone = zone(Some(&directory));
    runtime().block_on(async {
        let store = store(&zone);
        put(&store, "key", &Headers::new(), &[], b"body").await;
        fs::remove_dir_all(&directory).expect("removed");
        fs::write(&directory, b"a file in its place").expect("written");
        let purging = store.purge_at(Purge { what: What::All, how: How::Hard }, start());
        assert_eq!(found(&store, "key", &Headers::new()).await, None, "before anything is written");
        assert!(purging.await.is_err());
    });
}

#[test]
fn what_waits_to_be_written_when_the_workers_end_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let first = store(&zone);
    let worker = runtime();
    worker.block_on(async {
        for number in 0..200 {
            let mut front = Front::new(first.clone());
            let key = format!("key {number}");
            let permit = match front.lookup(key.as_bytes(), Fields::default(), &conf(), start()) {
                Lookup::Disk(probe) => miss(load(probe, &Headers::new()).await),
                other => miss(other),
            };
            // The body is there at once, so the loop never gets to what it has put off.
            assert!(begin(permit, &[], Fields::default(), start()).finish().await.is_some());
        }
    });
    drop(worker);
    assert!(first.flush(Duration::from_secs(60)));
    assert_eq!(first.tier.as_ref().expect("a disk").pending.load(Ordering::Relaxed), 0);
    let restarted = store(&zone);
    runtime().block_on(async {
        for number in 0..200 {
            assert!(found(&restarted, &format!("key {number}"), &Headers::new()).await.is_some());
        }
    });
}

#[test]
fn a_look_at_the_disk_tells_what_is_there() {
    let (de, fr) = (headers(&[("Accept-Language", "de")]), headers(&[("Accept-Language", "fr")]));
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let first = store(&zone);
        for request in [&de, &fr] {
            put(&first, "key", request, &[("Vary", "Accept-Language")], b"body").await;
        }
        let restarted = store(&zone);
        let look =
            async |request: &Headers| Sight::on_disk(&restarted, b"key", request.view(), start()).await;
        let counts = async |request| {
            let (entries, chosen) = look(request).await;
            (entries.len(), chosen)
        };
        assert_eq!(counts(&de).await, (1, Some(0)));
        assert_eq!(counts(&fr).await, (2, Some(1)));
        let none = Headers::new();
        assert_eq!(counts(&none).await, (1, None));
        assert_eq!(restarted.stats().keys, 0);
        assert!(Sight::of(&restarted, b"key", de.view(), &conf(), start()).may_be_on_disk);
        purge(&restarted, What::All, How::Soft).await;
        assert!(!look(&de).await.0[0].is_fresh(start()));
        purge(&restarted, What::All, How::Hard).await;
        assert_eq!(counts(&fr).await, (0, None));
    });
}

const KEYS: [&str; 6] = ["a/0", "a/1", "a/2", "b/0", "b/1", "b/12"];
const TAGS: [&str; 3] = ["x", "y", "z"];
const LANGUAGES: [&str; 2] = ["de", "fr"];

#[derive(Debug, Clone)]
enum Step {
    Store(usize, usize, u8),
    Begin(usize, usize, u8),
    Finish,
    Purge(Target, bool),
    Look(usize, usize),
    Sweep,
    Restart,
}

#[derive(Debug, Clone)]
enum Target {
    Key(usize, bool),
    Prefix(&'static str),
    Tag(usize),
    All,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..KEYS.len(), 0..LANGUAGES.len());
    let target = prop_oneof![
        4 => (0..KEYS.len(), any::<bool>()).prop_map(|(key, whole)| Target::Key(key, whole)),
        2 => prop::sample::select(vec!["a", "b/", "b/1", "a/0", "c"]).prop_map(Target::Prefix),
        4 => (0..TAGS.len()).prop_map(Target::Tag),
        1 => Just(Target::All),
    ];
    let step = prop_oneof![
        8 => (place(), 0u8..8).prop_map(|((key, language), tags)| Step::Store(key, language, tags)),
        2 => (place(), 0u8..8).prop_map(|((key, language), tags)| Step::Begin(key, language, tags)),
        2 => Just(Step::Finish),
        5 => (target, any::<bool>()).prop_map(|(target, soft)| Step::Purge(target, soft)),
        6 => place().prop_map(|(key, language)| Step::Look(key, language)),
        1 => Just(Step::Sweep),
        1 => Just(Step::Restart),
    ];
    vec(step, 1..60)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    value: u64,
    tags: u8,
    stale: bool,
}

/// What a current fill will leave, unless a purge applies to it or to a key that shares its mark.
struct Begun {
    fill: Fill,
    place: (usize, usize),
    expected: Expected,
    purged: bool,
}

struct World {
    zone: CacheZone,
    store: Arc<Store>,
    fronts: Vec<Front>,
    begun: Vec<Begun>,
    expected: HashMap<(usize, usize), Expected>,
    now: Now,
    steps: u64,
}

fn varies(key: usize) -> bool {
    key % 2 == 1
}

fn place(key: usize, language: usize) -> (usize, usize) {
    (key, if varies(key) { language } else { 0 })
}

fn request(language: usize) -> Headers {
    headers(&[("Accept-Language", LANGUAGES[language])])
}

fn tag_names(tags: u8) -> String {
    let named = TAGS.iter().enumerate().filter(|(bit, _)| tags & 1 << bit != 0);
    named.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

impl Target {
    fn what(&self) -> What {
        match self {
            Target::Key(key, true) => What::Key(whole(KEYS[*key])),
            Target::Key(key, false) => What::Key(KEYS[*key].into()),
            Target::Prefix(prefix) => What::Prefix((*prefix).into()),
            Target::Tag(tag) => What::Tag(TAGS[*tag].into()),
            Target::All => What::All,
        }
    }

    fn goes_for(&self, key: usize, tags: u8) -> bool {
        match self {
            Target::Key(named, _) => *named == key,
            Target::Prefix(prefix) => KEYS[key].starts_with(prefix),
            Target::Tag(tag) => tags & 1 << tag != 0,
            Target::All => true,
        }
    }
}

impl World {
    fn new(zone: CacheZone) -> World {
        let store = store(&zone);
        let mut world = World {
            zone,
            store,
            fronts: Vec::new(),
            begun: Vec::new(),
            expected: HashMap::new(),
            now: start(),
            steps: 0,
        };
        world.open_fronts();
        world
    }

    fn open_fronts(&mut self) {
        self.fronts = (0..2).map(|_| Front::new(self.store.clone())).collect();
    }

    async fn lookup(&mut self, key: usize, language: usize) -> Lookup {
        let (request, front) = (request(language), self.steps as usize % 2);
        match self.fronts[front].lookup(&whole(KEYS[key]), request.view(), &conf(), self.now) {
            Lookup::Disk(probe) => probe.load(request.view(), &conf(), self.now).await,
            other => other,
        }
    }

    async fn step(&mut self, step: &Step) {
        self.steps += 1;
        self.now = self.now.after(Duration::from_millis(1));
        match step {
            Step::Store(key, language, tags) => {
                if let Some(begun) = self.begin(*key, *language, *tags).await {
                    self.finish(begun).await;
                }
            }
            Step::Begin(key, language, tags) => {
                let begun = self.begin(*key, *language, *tags).await;
                self.begun.extend(begun);
            }
            Step::Finish => {
                if !self.begun.is_empty() {
                    let begun = self.begun.remove(0);
                    self.finish(begun).await;
                }
            }
            Step::Purge(target, soft) => self.purge(target, *soft).await,
            Step::Look(key, language) => self.look(*key, *language).await,
            Step::Sweep => {
                self.store.maintain(self.now);
                settled(&self.store).await;
            }
            Step::Restart => {
                self.begun.clear();
                settled(&self.store).await;
                if self.zone.path.is_some() {
                    self.store = store(&self.zone);
                    self.open_fronts();
                }
            }
        }
    }

    /// What is stored is only requested again if it is not fresh.
    async fn begin(&mut self, key: usize, language: usize, tags: u8) -> Option<Begun> {
        let permit = match self.lookup(key, language).await {
            Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => permit,
            _ => return None,
        };
        let lines = [("Vary", "Accept-Language")];
        let mut head = head(if varies(key) { &lines } else { &[] }, None, 60, self.now);
        head.tags =
            Tags::read(headers(&[("xkey", &tag_names(tags))]).view(), std::iter::empty()).expect("few tags");
        let mut fill = permit.begin(head, request(language).view(), self.now);
        fill.push(Bytes::from(self.steps.to_string()));
        let expected = Expected { value: self.steps, tags, stale: false };
        Some(Begun { fill, place: place(key, language), expected, purged: false })
    }

    async fn finish(&mut self, begun: Begun) {
        let stored = begun.fill.finish().await.is_some();
        assert_eq!(stored, !begun.purged, "a fill is stored unless a purge came in between");
        if stored {
            self.expected.insert(begun.place, begun.expected);
        }
        settled(&self.store).await;
    }

    async fn purge(&mut self, target: &Target, soft: bool) {
        let how = if soft { How::Soft } else { How::Hard };
        let what = target.what();
        let removed = match &what {
            What::Key(key) if !soft => Some(self.store.hash(key)),
            _ => None,
        };
        self.store.purge_at(Purge { what, how }, self.now).await.expect("written");
        for begun in &mut self.begun {
            // The mark of a removed key ends current fills of every key that shares it, see `Memory::purged_at`.
            let key = self.store.hash(&whole(KEYS[begun.place.0]));
            let is_marked = removed.is_some_and(|removed| Memory::share_mark(removed, key));
            begun.purged |= is_marked || target.goes_for(begun.place.0, begun.expected.tags);
        }
        self.expected.retain(|(key, _), expected| {
            let hit = target.goes_for(*key, expected.tags);
            expected.stale |= hit;
            !hit || soft
        });
    }

    async fn look(&mut self, key: usize, language: usize) {
        let lookup = self.lookup(key, language).await;
        let is_filled = self.begun.iter().any(|begun| begun.place.0 == key);
        let (hit, stale) = match lookup {
            Lookup::Fresh(hit) => (Some(hit), false),
            Lookup::Stale(hit, _) | Lookup::Busy(_, Some(hit)) => (Some(hit), true),
            Lookup::Miss(_) => (None, false),
            Lookup::Busy(_, None) if is_filled => (None, false),
            other => panic!("{other:?}"),
        };
        let found = hit.map(|hit| {
            let body = hit.body_in_memory().expect("small bodies are in memory").to_vec();
            (String::from_utf8(body).expect("text"), stale)
        });
        let expected = self.expected.get(&place(key, language));
        let expected = expected.map(|expected| (expected.value.to_string(), expected.stale));
        assert_eq!(found, expected, "{} {}", KEYS[key], LANGUAGES[language]);
    }
}

fn check(zone: CacheZone, steps: &[Step]) {
    runtime().block_on(async {
        let mut world = World::new(zone);
        for step in steps {
            world.step(step).await;
        }
        let all =
            || (0..KEYS.len()).flat_map(|key| (0..LANGUAGES.len()).map(move |language| (key, language)));
        for (key, language) in all() {
            world.step(&Step::Look(key, language)).await;
        }
        world.step(&Step::Restart).await;
        for (key, language) in all() {
            world.step(&Step::Look(key, language)).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn over_restarts_nothing_purged_is_answered_and_nothing_else_is_lost(steps in steps(), purger in any::<bool>()) {
        let directory = tempfile::tempdir().expect("a directory");
        check(CacheZone { purger, ..zone(Some(directory.path())) }, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_nothing_purged_is_answered_and_nothing_else_is_lost(steps in steps()) {
        check(zone(None), &steps);
    }
}

#[test]
fn what_an_unsafe_request_outdates_is_off_the_disk_once_that_is_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&zone(Some(directory.path())));
    runtime().block_on(async {
        listed(&store).await;
        put(&store, "key", &Headers::new(), &[], b"old").await;
        let file = only_file(directory.path());
        let front = Front::new(store.clone());
        front.invalidate_after(b"key".into(), None).expect("there is a file").await;
        assert!(!file.exists());
        assert!(front.invalidate_after(b"never there".into(), None).is_none());
    });
}

#[test]
fn a_promised_turn_is_kept_whoever_it_was_promised_to_and_at_the_end_at_the_latest() {
    const SECOND: Duration = Duration::from_secs(1);
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&zone(Some(directory.path())));
    let file = runtime().block_on(async {
        listed(&store).await;
        put(&store, "key", &Headers::new(), &[], b"old").await;
        let turn = || store.turn(b"key", SECOND, Ipv4Addr::LOCALHOST.into(), start());
        let promised = Turn::At(start().after(SECOND).unix_milliseconds);
        assert_eq!((turn(), turn()), (Turn::Now, promised));
        // The asker is gone with its worker; another one has its round.
        store.maintain_when_due(start());
        assert!(found(&store, "key", &Headers::new()).await.is_some(), "its time has not come");
        store.maintain_when_due(start().after(SECOND));
        assert_eq!(found(&store, "key", &Headers::new()).await, None);
        put(&store, "key", &Headers::new(), &[], b"newer").await;
        assert_eq!(turn(), promised);
        only_file(directory.path())
    });
    assert!(store.flush(Duration::from_secs(60)));
    assert!(!file.exists());
}
