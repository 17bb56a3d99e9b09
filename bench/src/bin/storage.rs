//! Measures the cache as a store, in a process of its own: `storage memory` and `storage eviction`.
//!
//! It has the product's allocator and nothing beside the cache, so that what the process grows by is what entries take.
//! Read `millstream_bench::storage`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("memory") => millstream_bench::storage::memory::measure(),
        Some("eviction") => millstream_bench::storage::eviction::measure(),
        _ => {
            eprintln!("storage memory | storage eviction");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
