//! `millstream demo`: the ladder in front of a simulated API, for who has none at hand.
//!
//! The API is `millstream_origin`, in this process; what it lacks to be real is said wherever its figures stand.

use super::end::{self, End};
use super::ladder::{carry_out, parties, seed, tell};
use super::output::Output;
use crate::cli::Demo;
use millstream_load::ladder::chance::FEWEST;
use millstream_load::ladder::course::{Order, Wish};
use millstream_load::step::Step;
use millstream_load::target::{Ask, Permission};
use millstream_origin::{DemoOptions, THREADS};
use std::path::PathBuf;
use std::process::ExitCode;

const ROUNDS: u32 = FEWEST;

const PICTURE: &str = "millstream-demo.html";

pub fn run(demo: &Demo) -> ExitCode {
    end::status(climbed(demo))
}

/// The reports, and the picture's path: without `--html` a demo needs no writable working directory.
fn opened(demo: &Demo) -> Result<(Output, PathBuf), End> {
    let json = demo.json.as_deref();
    if let Some(html) = &demo.html {
        return Ok((Output::open(json, Some(html))?, html.clone()));
    }
    let here = PathBuf::from(PICTURE);
    if let Ok(output) = Output::open(json, Some(&here)) {
        return Ok((output, here));
    }
    // In a folder that everybody writes to, the name must not be one that somebody else has made.
    let folder = tempfile::Builder::new().prefix("millstream-demo-").tempdir();
    let folder = folder.map_err(|error| {
        format!("no writable directory was found for {PICTURE}: {error}; specify a file with --html")
    })?;
    let there = folder.path().join(PICTURE);
    let output = Output::open(json, Some(&there))?;
    // It is the user's from now on.
    Ok((output, folder.keep().join(PICTURE)))
}

fn climbed(demo: &Demo) -> Result<ExitCode, End> {
    let (mut output, html) = opened(demo)?;
    let options = DemoOptions {
        service_time: demo.service_time,
        workers: demo.workers as usize,
        ..DemoOptions::default()
    };
    let api = millstream_origin::start(&options)
        .map_err(|error| format!("cannot start the simulated API: {error}"))?;
    end::tell(&format!(
        "a simulated API (not a real one) listens on http://{}/list: {} workers, {} ms for each request.",
        api.address,
        demo.workers,
        demo.service_time.as_secs_f64() * 1000.0
    ));
    end::tell(&format!("the chart will be written to {}", html.display()));
    let order = Order {
        ask: Ask { url: format!("http://{}/list", api.address), keep_alive: true, ..Ask::default() },
        may: Permission::default(),
        steps: Step::ALL.to_vec(),
        parties: parties(&[])?,
        wish: Wish { rounds: Some(ROUNDS), each: None, limit: demo.duration, seed: seed() },
        running: None,
        connections: None,
        fallback: None,
        own_api: Some(THREADS),
    };
    let climbed = carry_out(&order)?;
    tell(&climbed, Vec::new(), &mut output, demo.verbose)?;
    output.put(&format!(
        "\nThe chart is in {}. Now try your own API:\n\n    millstream ladder http://127.0.0.1:8000/\n",
        html.display()
    ));
    Ok(ExitCode::SUCCESS)
}
