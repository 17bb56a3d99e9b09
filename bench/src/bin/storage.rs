//! Measures the cache as a store, in a process of its own: `storage memory FIELDS` and `storage eviction`.
//!
//! It has the product's allocator and nothing beside the cache, so that what the process grows by is what entries take.
//! Read `millstream_bench::storage`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["memory", fields] if millstream_bench::storage::memory::measure(fields) => ExitCode::SUCCESS,
        ["eviction"] => {
            millstream_bench::storage::eviction::measure();
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("storage memory usual|unknown, storage eviction");
            ExitCode::from(2)
        }
    }
}
