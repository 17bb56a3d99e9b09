//! Heads that come byte by byte: a head has a time for the whole of it.

use std::time::{Duration, Instant};

use millstream_tests::visitor::Visitor;

use super::Finding;
use super::subject::{Bench, on_this_thread, plain};
use crate::source::Source;

const DRIP: Duration = Duration::from_millis(500);
/// Both timeouts are 3 s.
const BAR: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(12);

pub(super) fn measure(bench: &Bench) -> Result<Finding, String> {
    let source = Source::start();
    let server = bench.on_file("bench/conf/attack.conf", &source)?;
    let (request, answer) =
        on_this_thread(async { tokio::join!(request(server.port), answer(server.port)) })?;
    let (status, answered) = answer;
    Ok(Finding {
        figures: format!(
            "a request's head is ended after {:.1} s, an answer's after {:.1} s ({status})",
            request.as_secs_f64(),
            answered.as_secs_f64()
        ),
        holds: request <= BAR && answered <= BAR && status == 504,
    })
}

/// When the connection was closed or a status arrived.
async fn request(port: u16) -> Duration {
    let began = Instant::now();
    let Ok(mut visitor) = Visitor::connect(port).await else { return began.elapsed() };
    for byte in plain("/").trim_end().bytes().chain(std::iter::repeat(b'x')) {
        let dripped = visitor.send([byte]).await.is_err();
        // An end shows while the next byte is waited for.
        let ended = tokio::time::timeout(DRIP, visitor.head()).await.is_ok();
        if dripped || ended || began.elapsed() > LIMIT {
            break;
        }
    }
    began.elapsed()
}

async fn answer(port: u16) -> (u16, Duration) {
    let began = Instant::now();
    let asked = async {
        let mut visitor = Visitor::connect(port).await?;
        visitor.send(plain("/dripping")).await?;
        visitor.head().await
    };
    let status = match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(answer)) => answer.status,
        _ => 0,
    };
    (status, began.elapsed())
}
