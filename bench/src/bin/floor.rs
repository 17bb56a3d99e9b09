//! The floor: epoll, one hash lookup, a canned answer. `floor PORT BODY_BYTES [THREADS]`
//!
//! What a cache hit costs when nothing but the kernel's TCP and the lookup are paid for. The answer is as long as the
//! one that the proxies give in the same case. It must do nothing more; read `millstream_bench::epoll`.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use millstream_bench::epoll::{Respond, serve};

struct Canned {
    answers: HashMap<Vec<u8>, Arc<[u8]>>,
}

impl Respond for Canned {
    fn respond(&mut self, target: &[u8], out: &mut Vec<u8>) -> Duration {
        match self.answers.get(target) {
            Some(answer) => out.extend_from_slice(answer),
            None => out.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        }
        Duration::ZERO
    }
}

fn main() -> ExitCode {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let (Some(&port), Some(&size)) = (numbers.first(), numbers.get(1)) else {
        eprintln!("floor PORT BODY_BYTES [THREADS]");
        return ExitCode::from(2);
    };
    let threads = numbers.get(2).copied().unwrap_or_else(cores);
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\nContent-Type: application/json\r\n\
         Content-Length: {size}\r\nConnection: keep-alive\r\nCache-Control: max-age=3600\r\nX-Cache-Status: HIT\r\n\r\n"
    )
    .into_bytes();
    answer.resize(answer.len() + size, b'x');
    let answer: Arc<[u8]> = answer.into();
    // A thousand neighbours, so that the lookup is one.
    let mut answers: HashMap<Vec<u8>, Arc<[u8]>> =
        (0..1000).map(|number| (format!("/neighbour/{number}").into_bytes(), Arc::clone(&answer))).collect();
    answers.insert(b"/floor".to_vec(), answer);
    let result = serve(port as u16, threads, || Canned { answers: answers.clone() });
    eprintln!("floor: {result:?}");
    ExitCode::FAILURE
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}
