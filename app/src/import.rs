//! `millstream import`: an nginx configuration is checked, copied to where Millstream reads it, and what differs is said.
//!
//! Files of nginx are read and never written. A copy is made beside the target, read again there, and put in its place as a whole, so that
//! nothing is left of one that is not good. What the files say is `millstream-conf`'s matter: no directive is judged here.
//! Modules stand lowest floor first.

mod origin;
mod places;
mod edits;
mod original;
mod plan;
mod rewriting;
mod target;
mod surroundings;
mod report;

use crate::cli::Import;
use millstream_conf::diagnostics::{Diagnostics, Severity};
use millstream_conf::load::{Loaded, Options, load};
use millstream_net::terminal;
use origin::Origin;
use places::OwnPlaces;
use plan::Plan;
use report::ImportReport;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use target::Target;

const MAIN_FILE: &str = "nginx.conf";

/// Prints everything on standard output, the result in the first line.
pub fn run(import: &Import) -> ExitCode {
    let (text, code) = match imported(import) {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(text) => (text, ExitCode::FAILURE),
    };
    // Names and lines of somebody's files stand in it. A closed pipe is the reader's wish.
    let mut out = std::io::stdout();
    _ = out.write_all(terminal::fitting(&terminal::visible(&text), &out).as_bytes());
    code
}

fn imported(import: &Import) -> Result<String, String> {
    let told = import.from.display();
    let failed = |why: String| format!("{told} was not copied: {why}.\n");
    let origin = Origin::find(&import.from, import.prefix.as_deref()).map_err(failed)?;
    let target = Target::find(&import.to).map_err(failed)?;
    target.refuse(&origin).map_err(failed)?;
    let loaded = origin.load();
    let Some(configuration) = &loaded.configuration else {
        return Err(errors(&told.to_string(), &loaded, |text| text));
    };
    let places = OwnPlaces::of(target.folder());
    let (plan, mut differences) = rewriting::plan(&origin, &loaded, &places).map_err(failed)?;
    differences.extend(report::findings(&loaded));
    let differing = target.differing(&plan);
    if !import.force && !differing.is_empty() {
        return Err(report::refused(&told.to_string(), target.folder(), &differing));
    }
    let mut report =
        ImportReport::new(&told.to_string(), target.folder(), &plan, differences, &loaded.sources);
    if import.dry_run {
        report.is_dry();
    } else {
        write(&target, &plan, &places, &differing, &mut report).map_err(|why| why.told(&told.to_string()))?;
    }
    report.before(surroundings::look(configuration, &loaded, &origin, &plan, (&places, target.folder())));
    Ok(report.text(&places))
}

enum Failure {
    Unwritten(String),
    Unread(Box<Loaded>, String, String),
}

impl Failure {
    fn told(self, from: &str) -> String {
        match self {
            Failure::Unwritten(why) => format!("{from} was not copied: {why}.\n"),
            // The copy is gone; its places are those that it would have had.
            Failure::Unread(loaded, staging, target) => {
                errors(from, &loaded, |text| text.replace(&staging, &target))
            }
        }
    }
}

/// Writes the copy, loads it, and moves it into place.
fn write(
    target: &Target,
    plan: &Plan,
    places: &OwnPlaces,
    differing: &[std::path::PathBuf],
    report: &mut ImportReport,
) -> Result<(), Failure> {
    let staging = target.stage(plan).map_err(Failure::Unwritten)?;
    let copy = staging.path();
    for folder in places.folders() {
        let made = std::fs::create_dir_all(copy.join(folder));
        made.map_err(|error| Failure::Unwritten(format!("{folder}: {error}")))?;
    }
    let again = load(&options(copy, Path::new(MAIN_FILE), places.globals(), false));
    if again.diagnostics.has_errors() {
        let shown = |path: &Path| path.display().to_string();
        return Err(Failure::Unread(Box::new(again), shown(copy), shown(target.folder())));
    }
    report.strangers(&target::strangers(&again, copy, plan));
    let kept = target.put(staging, plan, differing).map_err(Failure::Unwritten)?;
    report.kept(kept);
    Ok(())
}

fn options(prefix: &Path, main_file: &Path, globals: Option<String>, lenient: bool) -> Options {
    Options { main_file: main_file.into(), prefix: prefix.into(), globals, error_log: None, lenient }
}

fn errors(from: &str, loaded: &Loaded, shown: impl Fn(String) -> String) -> String {
    let found = of(&loaded.diagnostics, Severity::Error).map(|error| error.render(&loaded.sources));
    let found: Vec<String> = found.map(|text| text.trim_start_matches("millstream: ").to_owned()).collect();
    let number = report::counted(found.len(), "error");
    let list: String = found.iter().map(|text| format!("\n{text}")).collect();
    shown(format!("{from} cannot run on Millstream yet: {number}. Nothing was copied.\n{list}"))
}

fn of(
    findings: &Diagnostics,
    severity: Severity,
) -> impl Iterator<Item = &millstream_conf::diagnostics::Diagnostic> {
    findings.sorted().into_iter().filter(move |finding| finding.severity == severity)
}
