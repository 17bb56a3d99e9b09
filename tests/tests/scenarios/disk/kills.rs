//! Killed without warning while it writes, over and over, on one directory.
//!
//! 200 times, or on a busy machine as often as a minute allows, but 50 times at least; `MILLSTREAM_KILLS=200` takes the
//! time it takes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use millstream_tests::client::Client;
use millstream_tests::server::Server;

use super::proof::{check, origin};
use super::start;

const CLIENTS: u64 = 3;
const PAGES: u64 = 24;
/// Questions after every start, to a process with empty memory.
const QUESTIONS: u64 = 6;

#[derive(Default)]
struct Counts {
    wrong: AtomicUsize,
    right: AtomicUsize,
    hits_from_disk: AtomicUsize,
}

/// xorshift64: varied, yet the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// 1 KiB to 3 MiB; a third of the pages becomes stale after a second and is stored again.
    fn page(&mut self) -> (String, &'static str) {
        let number = self.below(PAGES);
        let length = match number % 8 {
            0 => 3_145_728 - number,
            1 => 1_200_000 + number,
            2 | 3 => 150_000 + 3_000 * number,
            _ => 1_024 + 997 * number,
        };
        let seconds = if number.is_multiple_of(3) { 1 } else { 3600 };
        (format!("/{number}/{length}/{seconds}"), ["a", "b"][self.below(2) as usize])
    }
}

#[test]
fn killed_at_any_moment_it_never_gives_a_wrong_or_cut_answer_afterwards() {
    skip_on_nginx!();
    let asked: Option<u64> = std::env::var("MILLSTREAM_KILLS").ok().and_then(|text| text.parse().ok());
    let (most, began) = (asked.unwrap_or(200), Instant::now());
    let origin = origin();
    // Little memory and less disk than all pages need, so that files are written and removed all the time.
    let mut server = start(&origin, "memory=1m max_size=30m");
    let (counts, mut random) = (Counts::default(), Random(0x9e37_79b9_7f4a_7c15));
    let mut kills = 0;
    while kills < most && (asked.is_some() || kills < 50 || began.elapsed() < Duration::from_secs(60)) {
        let kill = kills;
        if kill > 0 {
            server.run().expect("it starts on what the killed one left");
            let from_disk = &counts.hits_from_disk;
            (0..QUESTIONS).for_each(|_| ask(&server, &mut random, &counts, from_disk));
        }
        let (answered, answers) = mpsc::channel();
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (answered, port, counts) = (answered.clone(), server.port(), &counts);
                let seed = (kill * CLIENTS + client + 1).wrapping_mul(0x2545_f491_4f6c_dd1d);
                scope.spawn(move || load(port, Random(seed), &answered, counts));
            }
            for _ in 0..=random.below(12) {
                answers.recv_timeout(Duration::from_secs(20)).expect("answers come");
            }
            server.stop(Signal::KILL).expect("it ends");
        });
        kills += 1;
    }
    let [wrong, right, hits] =
        [&counts.wrong, &counts.right, &counts.hits_from_disk].map(|count| count.load(Ordering::SeqCst));
    eprintln!(
        "{kills} kills: {right} right answers, {hits} of them out of the files of a killed process, {wrong} wrong"
    );
    assert_eq!(wrong, 0);
    assert!(hits as u64 > kills, "only {hits} answers came from the disk, which tells nothing");
}

fn ask(server: &Server, random: &mut Random, counts: &Counts, hits: &AtomicUsize) {
    let (path, variant) = random.page();
    let answer = server.get_with(&path, &[("X-Variant", variant)]);
    if answer.cache_status() == "HIT" {
        hits.fetch_add(1, Ordering::SeqCst);
    }
    count(check(&path, variant, &answer), counts);
}

/// Asks until the server has ended. A truncated response is detectable; one that looks complete must be
/// correct.
fn load(port: u16, mut random: Random, answered: &Sender<()>, counts: &Counts) {
    let Ok(mut client) = Client::connect(port) else { return };
    let limit = AtomicU64::new(100_000);
    while limit.fetch_sub(1, Ordering::Relaxed) > 0 {
        let (path, variant) = random.page();
        let Ok(answer) = client.get_with(&path, &[("X-Variant", variant)]) else { return };
        count(check(&path, variant, &answer), counts);
        if answered.send(()).is_err() {
            return;
        }
    }
}

fn count(outcome: Result<(), String>, counts: &Counts) {
    match outcome {
        Ok(()) => _ = counts.right.fetch_add(1, Ordering::SeqCst),
        Err(wrong) => {
            eprintln!("wrong: {wrong}");
            counts.wrong.fetch_add(1, Ordering::SeqCst);
        }
    }
}
