//! `cargo xtask bench verdict`: whether the verdict names the limit of systems that are built to have a known one.
//!
//! Each case is real processes and a real load; the verdict is that of `ladder` and `capacity`. Each run counts, none is repeated. A wrong
//! name is an error; unknown is not, but should be rare. A program of its own measures (`bin/verdict`), so that the generator is a release
//! build. Next: `cases` for how each is built, `held_out` for those that the rules were not made on, `toxiproxy` for narrow and long links,
//! which this kernel cannot make otherwise.

mod toxiproxy;
mod cases;
mod held_out;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use millstream_load::drive;
use millstream_load::party::Meter;
use millstream_load::plan::{Plan, Target};
use millstream_load::probe;
use millstream_load::target::{Ask, Permission, resolve};
use millstream_load::verdict::{Evidence, Limit, Once, Run, Verdict, judge};

use crate::{Options, Programs};
use cases::VerdictCase;

pub struct Servers {
    pub proxy: PathBuf,
    pub api: PathBuf,
}

const DURATION: Duration = Duration::from_millis(1_200);
const WARM_UP: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(300);
/// Percent of runs that must be right, if the right limit is the one the case is built for, and the percent
/// that may be unknown although a limit could be named.
const RIGHT: usize = 95;
const UNKNOWN: usize = 10;
const LARGEST: usize = 16 << 20;

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<(), String> {
    let proxy = programs.millstream.as_ref().ok_or("the verdicts are on Millstream itself")?;
    // Before anything is measured: building it takes a while.
    toxiproxy::program()?;
    let mut command = Command::new(&programs.verdict);
    command.arg(options.runs.to_string()).arg(proxy).arg(&programs.origin);
    let status = command.status().map_err(|error| format!("bench verdict: {error}"))?;
    if status.success() { Ok(()) } else { Err("not every verdict was right".to_owned()) }
}

#[derive(Debug, Default)]
struct Score {
    right: usize,
    unknown: usize,
    wrong: Vec<String>,
    /// The share of the machine that others used before each run.
    busy: Vec<f64>,
}

/// Runs each case so often; an error if one was named wrongly, or too many are unknown.
pub fn table(servers: &Servers, runs: u32) -> Result<String, String> {
    let mut text = format!(
        "### Verdicts on purpose-built cases\n\n`cargo xtask bench verdict --runs {runs}`: {} ms under load each, none \
         repeated.\n\n| case | what is right | right | unknown | wrong | the last verdict |\n| --- | --- | ---: | ---: | \
         ---: | --- |\n",
        DURATION.as_millis()
    );
    let mut score = Score::default();
    for case in cases::all().into_iter().chain(held_out::all()) {
        let mut of_case = Score::default();
        let mut said = String::new();
        for number in 1..=runs {
            of_case.busy.push(busy());
            let verdict = once(&case, servers).map_err(|error| format!("{}: {error}", case.name))?;
            said = verdict.text();
            eprintln!("{} {number}: {said}", case.name);
            match verdict.limit {
                limit if limit == case.right => of_case.right += 1,
                Limit::Unknown => of_case.unknown += 1,
                _ => of_case.wrong.push(format!("{} {number}: {said}", case.name)),
            }
        }
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {:?} | {} | {} | {} | {said} |",
            case.name,
            case.right,
            of_case.right,
            of_case.unknown,
            of_case.wrong.len()
        );
        score.right += of_case.right;
        score.unknown += of_case.unknown;
        score.wrong.extend(of_case.wrong);
        score.busy.extend(of_case.busy);
    }
    let all = score.busy.len().max(1);
    let busy = score.busy.iter().sum::<f64>() / all as f64;
    let _ = writeln!(
        text,
        "\nOf {all} runs {} were right, {} unknown where a name could be given, {} wrong. Before a run other processes \
         used {:.0} % of the machine on average.",
        score.right,
        score.unknown,
        score.wrong.len(),
        busy * 100.0
    );
    if score.wrong.is_empty() && score.right * 100 >= RIGHT * all && score.unknown * 100 <= UNKNOWN * all {
        return Ok(text);
    }
    Err(format!("{text}\nnamed wrongly:\n{}", score.wrong.join("\n")))
}

/// The share of the machine that is busy before anything is started.
fn busy() -> f64 {
    let mut meter = Meter::new(Vec::new());
    meter.look();
    std::thread::sleep(GLANCE);
    meter.look();
    meter.found().machine_busy
}

fn once(case: &VerdictCase, servers: &Servers) -> Result<Verdict, String> {
    let stage = (case.build)(servers)?;
    let target = target(&stage.url)?;
    let through = single(&target)?;
    let direct = stage.direct.as_deref().map(|url| single(&self::target(url)?)).transpose()?;
    let load = |target: Target, meter: &mut Meter| {
        let mut plan = Plan::closed(target, stage.connections, stage.threads, DURATION);
        plan.warm_up = WARM_UP;
        plan.timeout = PATIENCE;
        drive::run(&plan, &AtomicBool::new(false), &mut |progress| meter.watch(progress))
            .map_err(|error| error.to_string())
    };
    let straight = stage.direct.as_deref().map(self::target).transpose()?;
    let mut meter = stage.meter();
    // The generator's threads are those of the thread that starts them: its cores and its place in line are theirs.
    let (alone, top) = std::thread::scope(|scope| {
        let runs = scope.spawn(|| {
            stage.hinder_generator()?;
            let alone = straight.map(|target| load(target, &mut stage.meter())).transpose()?;
            Ok::<_, String>((alone, load(target.clone(), &mut meter)?))
        });
        runs.join().map_err(|_| "the load panicked".to_owned())?
    })?;
    let evidence = Evidence {
        alone: alone.as_ref().map(Run::of),
        direct,
        through: Some(through),
        origin_share: stage.origin_share,
        link: stage.link,
        ..Evidence::of(&top, &meter.found(), !stage.is_elsewhere)
    };
    Ok(judge(&evidence))
}

fn target(url: &str) -> Result<Target, String> {
    let ask = Ask { url: url.to_owned(), keep_alive: true, ..Ask::default() };
    resolve(&ask, Permission::default()).map_err(|error| error.to_string())
}

fn single(target: &Target) -> Result<Once, String> {
    Once::ask(Vec::new(), || {
        let answer = probe::once(target, PATIENCE, LARGEST).map_err(|error| error.to_string())?;
        if answer.status == 200 {
            Ok(answer)
        } else {
            Err(format!("{} answers {}", target.url, answer.status))
        }
    })
}
