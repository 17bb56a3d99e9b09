//! The measuring of `cargo xtask bench verdict`: `verdict RUNS MILLSTREAM API`, the last two being programs.

use std::process::ExitCode;

use millstream_bench::verdict::{Servers, table};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, proxy, api] = arguments.as_slice() else {
        eprintln!("verdict RUNS MILLSTREAM API");
        return ExitCode::from(2);
    };
    let Ok(runs) = runs.parse() else {
        eprintln!("{runs} is no number of runs");
        return ExitCode::from(2);
    };
    // They run in directories of their own.
    let (Ok(proxy), Ok(api)) = (std::path::absolute(proxy), std::path::absolute(api)) else {
        eprintln!("verdict: no such program");
        return ExitCode::from(2);
    };
    match table(&Servers { proxy, api }, runs) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}
