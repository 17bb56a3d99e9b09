//! The API behind the proxies in the benchmark: `origin PORT [THREADS]`. Fast, and told by the target what to answer:
//!
//! `/any?size=900&kind=json&age=3600&delay=180-660` gives 900 bytes of JSON (or `kind=text`: varied words, which gzip level 2
//! brings to about a third), fresh for an hour by `Cache-Control`, after a delay in milliseconds that walks through the range. `/__count` tells how many other requests came so far, which is what microcaching is about.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millstream_bench::canned::Canned;
use millstream_bench::epoll::{Respond, serve};

/// Responses remembered per thread; for further targets they are built each time.
const REMEMBERED: usize = 1024;

static REQUESTS: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Origin {
    answers: HashMap<Vec<u8>, Canned>,
}

impl Respond for Origin {
    fn respond(&mut self, target: &[u8], out: &mut Vec<u8>) -> Duration {
        if target == b"/__count" {
            let count = REQUESTS.load(Ordering::Relaxed).to_string();
            out.extend_from_slice(
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{count}", count.len()).as_bytes(),
            );
            return Duration::ZERO;
        }
        let count = REQUESTS.fetch_add(1, Ordering::Relaxed);
        let canned = match self.answers.get(target) {
            Some(canned) => canned,
            None => {
                if self.answers.len() >= REMEMBERED {
                    self.answers.clear();
                }
                self.answers.entry(target.to_vec()).or_insert_with(|| Canned::of(target))
            }
        };
        out.extend_from_slice(&canned.bytes);
        let (least, most) = canned.delay;
        // A walk through the range in steps that are no divisor of it: every request its own time, every run the same times.
        Duration::from_millis(least + count.wrapping_mul(137) % (most - least + 1))
    }
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let Some(port) = numbers.next() else {
        eprintln!("origin PORT [THREADS]");
        return ExitCode::from(2);
    };
    let threads = numbers
        .next()
        .map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from);
    let result = serve(port, threads, Origin::default);
    eprintln!("origin: {result:?}");
    ExitCode::FAILURE
}
