//! Requests whose `Connection` lists thousands of tokens beside a thousand fields: what each costs, and what others wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_tests::process::cpu_time;
use millstream_tests::visitor::Visitor;

use super::Finding;
use super::subject::{Bench, HOT, get, milliseconds, on_this_thread, others, percentile};
use crate::source::Source;

/// Attacks a second, their connections, and the duration.
const RATE: u64 = 1_000;
const CONNECTIONS: usize = 64;
const LASTING: Duration = Duration::from_secs(6);
const COST: f64 = 1.0;
const WAIT: f64 = 10.0;

pub(super) fn measure(bench: &Bench) -> Result<Finding, String> {
    let source = Source::start();
    let server = bench.on_file("bench/conf/attack.conf", &source)?;
    let (over, port) = (AtomicBool::new(false), server.port);
    let before = cpu_time(server.id());
    let ((done, refused), mut waited) = std::thread::scope(|scope| {
        // A thread of their own, so that they wait for the server alone.
        let others = scope.spawn(|| on_this_thread(others(port, &over)));
        let attacked = on_this_thread(attack(port));
        over.store(true, Ordering::SeqCst);
        let waited = others.join().map_err(|_| "the others panicked".to_owned())??;
        Ok::<_, String>((attacked?, waited))
    })?;
    let cost = milliseconds(cpu_time(server.id()) - before) / done.max(1) as f64;
    let p99 = milliseconds(percentile(&mut waited, 99));
    let rate = done as f64 / LASTING.as_secs_f64();
    Ok(Finding {
        figures: format!(
            "{cost:.2} ms of CPU each at {rate:.0}/s ({refused} refused), others' p99 {p99:.1} ms"
        ),
        holds: cost < COST && p99 < WAIT && done > 0,
    })
}

fn request() -> String {
    let mut text = format!("GET {HOT} HTTP/1.1\r\nHost: attack.example\r\n");
    for part in 0..3 {
        let tokens: Vec<String> = (0..1_250).map(|number| format!("t{part}{number:x}")).collect();
        text.push_str(&format!("Connection: {}\r\n", tokens.join(",")));
    }
    for number in 0..980 {
        text.push_str(&format!("x{number:x}: 1\r\n"));
    }
    text + "\r\n"
}

async fn attack(port: u16) -> (u64, u64) {
    let request: Rc<str> = request().into();
    let idle = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..CONNECTIONS {
        let visitor = Visitor::connect(port).await.ok();
        idle.borrow_mut().extend(visitor);
    }
    let (done, refused) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(0)));
    let (end, mut ticks) =
        (Instant::now() + LASTING, tokio::time::interval(Duration::from_micros(1_000_000 / RATE)));
    while Instant::now() < end {
        ticks.tick().await;
        let Some(mut visitor) = idle.borrow_mut().pop() else { continue };
        let (request, idle, done, refused) = (request.clone(), idle.clone(), done.clone(), refused.clone());
        tokio::task::spawn_local(async move {
            match get(&mut visitor, &request).await {
                Ok((200, _)) => idle.borrow_mut().push(visitor),
                _ => {
                    *refused.borrow_mut() += 1;
                    let visitor = Visitor::connect(port).await.ok();
                    idle.borrow_mut().extend(visitor);
                }
            }
            *done.borrow_mut() += 1;
        });
    }
    (*done.borrow(), *refused.borrow())
}
