//! Clients that ask and do not read: every write to a client has its timeout, whatever is written.

use std::time::{Duration, Instant};

use millstream_tests::visitor::Visitor;

use super::Finding;
use super::subject::{Bench, established_to, on_this_thread, plain};
use crate::source::Source;

const CLIENTS: usize = 20;
/// By then nothing may be held; `send_timeout` is 2 s.
const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn interim(bench: &Bench) -> Result<Finding, String> {
    stall(bench, "/interim", true)
}

pub(super) fn bodies(bench: &Bench) -> Result<Finding, String> {
    stall(bench, "/body/50000000", false)
}

/// `upstream`: the API's connections must be closed too, as its response has no end.
fn stall(bench: &Bench, target: &str, upstream: bool) -> Result<Finding, String> {
    let source = Source::start();
    // One that is answered after all is closed too; who reads nothing does not see it, but the kernel does.
    let request = plain(target).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let server = bench.on_file("bench/conf/attack.conf", &source)?;
    let (clients, upstreams, took) = on_this_thread(async {
        let mut visitors = Vec::new();
        for _ in 0..CLIENTS {
            let Ok(mut visitor) = Visitor::connect_narrow(server.port).await else { continue };
            // A server that refuses has ended it.
            let _ = visitor.send(&request).await;
            visitors.push(visitor);
        }
        let began = Instant::now();
        let held = || (established_to(server.port), if upstream { source.connections() } else { 0 });
        // It takes a moment until they are asked.
        tokio::time::sleep(Duration::from_secs(1)).await;
        while held() != (0, 0) && began.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (clients, upstreams) = held();
        drop(visitors);
        (clients, upstreams, began.elapsed())
    })?;
    Ok(Finding {
        figures: format!(
            "after {:.1} s {clients} connections of clients and {upstreams} to the API are held",
            took.as_secs_f64()
        ),
        holds: clients == 0 && upstreams == 0,
    })
}
