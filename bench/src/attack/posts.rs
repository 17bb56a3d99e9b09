//! POSTs to a URL that many others ask for: each may empty the cache of it. They come from an address of their own, since a client
//! sees its own writes.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream_tests::visitor::{Framing, Visitor};

use super::Finding;
use super::subject::{Bench, on_this_thread};
use crate::source::Source;
use crate::wrk;

const RATE: u32 = 20;
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
/// Connections of the victims, and seconds of each of the two runs.
const CONNECTIONS: u32 = 32;
const SECONDS: u32 = 5;
const TARGET: &str = "/body/900?age=60&delay=10";
/// The bars: share of the request rate that remains, and further requests a second at the API.
const LEFT: f64 = 0.7;
const MORE: f64 = 2.0;

pub(super) fn measure(bench: &Bench) -> Result<Finding, String> {
    let source = Source::start();
    let server = bench.serving(&[], &source)?;
    let url = format!("http://127.0.0.1:{}{TARGET}", server.port);
    wrk::run(&url, &[], CONNECTIONS, 1)?;
    let calm = wrk::run(&url, &[], CONNECTIONS, SECONDS)?;
    let (over, asked) = (AtomicBool::new(false), source.requests());
    let attacked = std::thread::scope(|scope| {
        scope.spawn(|| on_this_thread(post(server.port, &over)));
        let attacked = wrk::run(&url, &[], CONNECTIONS, SECONDS);
        over.store(true, Ordering::SeqCst);
        attacked
    })?;
    let share = attacked.requests_per_second / calm.requests_per_second.max(1.0);
    let more = (source.requests() - asked) as f64 / f64::from(SECONDS);
    Ok(Finding {
        figures: format!(
            "{:.0} requests/s, then {:.0} (p99 {:.1} ms): {share:.2} left; {more:.1} a second at the API beside the POSTs",
            calm.requests_per_second, attacked.requests_per_second, attacked.p99
        ),
        // One in the whole run may be the entry's own end.
        holds: share >= LEFT && more <= MORE + 1.0 / f64::from(SECONDS),
    })
}

async fn post(port: u16, over: &AtomicBool) {
    let request =
        format!("POST {TARGET} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 4\r\n\r\npost");
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
    while !over.load(Ordering::SeqCst) {
        ticks.tick().await;
        let Ok(mut visitor) = Visitor::connect_from(STRANGER, port).await else { continue };
        // What it is answered does not matter.
        let _ = visitor.send(&request).await;
        if let Ok(answer) = visitor.head().await
            && let Ok(framing) = Framing::of("POST", &answer)
        {
            let _ = visitor.body(framing, &mut Vec::new()).await;
        }
    }
}
