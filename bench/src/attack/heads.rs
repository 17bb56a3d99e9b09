//! Slow heads on as many connections as there may be, and new clients who want to be answered.

use std::time::{Duration, Instant};

use millstream_tests::visitor::Visitor;

use super::Finding;
use super::subject::{Bench, established_to, get, milliseconds, on_this_thread, percentile, plain};
use crate::source::Source;

/// More than the file's `worker_connections`.
const SLOW: usize = 200;
const DRIP: Duration = Duration::from_secs(1);
const CLIENTS: usize = 20;
/// The longest wait of a client; the bar.
const PATIENCE: Duration = Duration::from_secs(5);
const BAR: Duration = Duration::from_secs(1);

pub(super) fn measure(bench: &Bench) -> Result<Finding, String> {
    let source = Source::start();
    let server = bench.on_file("bench/conf/heads.conf", &source)?;
    let (mut waited, answered, slow) = on_this_thread(clients(server.port))?;
    let middle = percentile(&mut waited, 50);
    let longest = percentile(&mut waited, 100);
    Ok(Finding {
        figures: format!(
            "beside {slow} slow heads {answered} of {CLIENTS} answered; p50 {:.0} ms, longest {:.0} ms",
            milliseconds(middle),
            milliseconds(longest)
        ),
        holds: middle <= BAR,
    })
}

/// The wait of each client, how many got a response, and how many slow heads were open before.
async fn clients(port: u16) -> (Vec<Duration>, usize, usize) {
    for _ in 0..SLOW {
        tokio::task::spawn_local(async move {
            let end = Instant::now() + PATIENCE * CLIENTS as u32;
            // One that is shed comes back, as an attacker does.
            while Instant::now() < end {
                let Ok(mut visitor) = Visitor::connect(port).await else { return };
                while visitor.send(b"G").await.is_ok() {
                    let ended = tokio::time::timeout(DRIP, visitor.head()).await.is_ok();
                    if ended {
                        break;
                    }
                }
                tokio::time::sleep(DRIP).await;
            }
        });
    }
    tokio::time::sleep(DRIP).await;
    let slow = established_to(port);
    let (mut waited, mut answered) = (Vec::new(), 0);
    for _ in 0..CLIENTS {
        let began = Instant::now();
        let asked = async {
            let mut visitor = Visitor::connect(port).await?;
            get(&mut visitor, &plain("/body/900?age=60")).await
        };
        if let Ok(Ok((200, _))) = tokio::time::timeout(PATIENCE, asked).await {
            answered += 1;
            waited.push(began.elapsed());
        } else {
            // Refused at once is no answer either.
            waited.push(PATIENCE);
        }
    }
    (waited, answered, slow)
}
