//! `cargo xtask conformance --nginx-tests DIR`: nginx's own test suite against this server.
//!
//! DIR is a clone of github.com/nginx/nginx-tests; nothing of it is kept here but the names of the files that matter to
//! this server, the number of assertions that nginx passes in each, and how many have held here, which may only rise.
//! Next: `play`, which runs one file; `score`, which keeps.

mod tap;
mod score;
mod play;

use super::{blockers, told_of};
use millstream_tests::server::binary;
use millstream_tests::target_directory;
use play::{Played, Stage};
use score::Row;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub(super) struct SuiteOptions {
    pub(super) clone: PathBuf,
    /// Empty: all.
    pub(super) only: Vec<String>,
    /// Files run at once.
    pub(super) jobs: usize,
    pub(super) update: bool,
}

pub(super) fn run(options: &SuiteOptions) -> Result<(), String> {
    let mut rows = score::kept()?;
    let wanted: Vec<usize> = (0..rows.len())
        .filter(|at| options.only.is_empty() || options.only.contains(&rows[*at].name))
        .collect();
    let home = target_directory().join("conformance/nginx-tests");
    let stage = Stage::new(&options.clone, binary(), &home)?;
    let jobs = if stage.is_apart() { options.jobs } else { 1 };
    println!(
        "{} files, {jobs} at a time, each {}",
        wanted.len(),
        if stage.is_apart() { "in a network of its own" } else { "alone" }
    );
    let results = all(&stage, &rows, &wanted, jobs)?;
    let held: usize = results.iter().map(|(at, played)| played.held.min(rows[*at].of)).sum();
    let of: usize = results.iter().map(|(at, _)| rows[*at].of).sum();
    let passing = results.iter().filter(|(_, played)| played.passes).count();
    let lacking: Vec<BTreeSet<String>> = results.iter().map(|(_, played)| missing(played)).collect();
    blockers::print(&blockers::table(lacking.iter()));
    println!("{passing} of {} files pass, {held} of {of} assertions", results.len());
    write_results(&rows, &results)?;
    settle(&mut rows, &results, options.update)
}

/// Several files at once; one that falls short of the stored score is run once more.
fn all(stage: &Stage, rows: &[Row], wanted: &[usize], jobs: usize) -> Result<Vec<(usize, Played)>, String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        while let Some(at) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = &rows[*at];
            let mut played = stage.play(&row.name)?;
            if row.is_above(played.held.min(row.of), played.passes) {
                let again = stage.play(&row.name)?;
                played =
                    if (again.passes, again.held) > (played.passes, played.held) { again } else { played };
            }
            tell(row, &played);
            results.push((*at, played));
        }
        Ok(results)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            let results: Result<_, String> = worker.join().map_err(|_| "a run panicked".to_owned())?;
            all.extend(results?);
        }
        all.sort_by_key(|(at, _)| *at);
        Ok(all)
    })
}

/// What the server lacks for a file: from the refused configuration, or from the reason it was skipped.
fn missing(played: &Played) -> BTreeSet<String> {
    let mut all = blockers::of(&played.errors);
    all.extend(played.why.starts_with("skipped: ").then(|| played.why.clone()));
    all
}

fn tell(row: &Row, played: &Played) {
    let (word, why) = if played.passes { ("passes", "") } else { ("fails", &*played.why) };
    let lacking: Vec<String> = missing(played).into_iter().collect();
    let why = if lacking.is_empty() { why.to_owned() } else { lacking.join("; ") };
    println!("{word:<6} {:>3}/{:<3} {} {why}", played.held.min(row.of), row.of, row.name);
}

fn write_results(rows: &[Row], results: &[(usize, Played)]) -> Result<(), String> {
    let results: Vec<_> = results
        .iter()
        .map(|(at, played)| {
            let row = &rows[*at];
            json!({ "file": row.name, "passes": played.passes, "held": played.held.min(row.of), "of": row.of,
                    "why": played.why, "missing": missing(played) })
        })
        .collect();
    let path = target_directory().join("conformance/nginx-tests.json");
    fs::write(&path, format!("{:#}\n", json!(results))).map_err(|error| told_of(&path, &error))
}

fn settle(rows: &mut [Row], results: &[(usize, Played)], update: bool) -> Result<(), String> {
    let lost: Vec<String> = results
        .iter()
        .filter(|(at, played)| rows[*at].is_above(played.held.min(rows[*at].of), played.passes))
        .map(|(at, played)| format!("{} ({} of {} that held)", rows[*at].name, played.held, rows[*at].held))
        .collect();
    let mut raised = 0;
    for (at, played) in results {
        let of = rows[*at].of;
        raised += usize::from(rows[*at].raise(played.held.min(of), played.passes));
    }
    if update && raised > 0 {
        score::keep(rows)?;
    } else if raised > 0 {
        println!("{raised} files are better than the kept score; --update keeps that");
    }
    if lost.is_empty() { Ok(()) } else { Err(format!("worse than the kept score: {}", lost.join(", "))) }
}
