//! Steady load from a few keep-alive connections, with every failure counted and described.
//!
//! It is for scenarios that ask "did anybody notice", not for speed: `wrk` is there for that. A connection that the
//! server closes between two answers, as HTTP allows after `Connection: close`, is opened anew and is no failure;
//! a request without its whole answer is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::client::Client;

/// Pause of each client between requests, so that a scenario's clients leave the machine to the server and to
/// other scenarios.
const THINKING: Duration = Duration::from_millis(1);

pub struct Load {
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    workers: Vec<JoinHandle<Report>>,
}

#[derive(Debug, Default)]
pub struct Report {
    /// Complete responses with status 200.
    pub answered: usize,
    pub failures: Vec<String>,
    pub slowest: Duration,
    /// The first response's time: on a cold cache it is the fill.
    pub first: Duration,
}

impl Load {
    pub fn start(port: u16, path: &str, connections: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let workers = (0..connections)
            .map(|_| {
                let (over, answered) = (Arc::clone(&over), Arc::clone(&answered));
                let path = path.to_owned();
                std::thread::spawn(move || drive(port, &path, &over, &answered))
            })
            .collect();
        Load { over, answered, workers }
    }

    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    pub fn finish(self) -> Report {
        self.over.store(true, Ordering::SeqCst);
        let mut sum = Report::default();
        for worker in self.workers {
            let report = worker.join().expect("a client never panics");
            sum.answered += report.answered;
            sum.failures.extend(report.failures);
            sum.slowest = sum.slowest.max(report.slowest);
            sum.first = sum.first.max(report.first);
        }
        sum
    }
}

pub fn run(port: u16, path: &str, connections: usize, duration: Duration) -> Report {
    let load = Load::start(port, path, connections);
    std::thread::sleep(duration);
    load.finish()
}

fn drive(port: u16, path: &str, over: &AtomicBool, answered: &AtomicUsize) -> Report {
    let mut report = Report::default();
    let mut client = None;
    while !over.load(Ordering::SeqCst) {
        std::thread::sleep(THINKING);
        let began = Instant::now();
        let mut connection = match client.take() {
            Some(open) => open,
            None => match Client::connect(port) {
                Ok(new) => new,
                Err(error) => {
                    report.failures.push(format!("connect: {error}"));
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            },
        };
        match connection.get(path) {
            Ok(answer) => {
                if answer.status == 200 {
                    report.answered += 1;
                    answered.fetch_add(1, Ordering::SeqCst);
                } else {
                    report.failures.push(format!("status {}", answer.status));
                }
                let took = began.elapsed();
                if report.answered == 1 {
                    report.first = took;
                }
                report.slowest = report.slowest.max(took);
                let closes =
                    answer.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
                client = (!closes).then_some(connection);
            }
            Err(error) => report.failures.push(format!("request: {error}")),
        }
    }
    report
}
