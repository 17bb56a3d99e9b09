//! `cargo xtask bench verdict`: systems that are built so that one party must be the limit, and whether it is named.
//!
//! Each case is real processes and a real load; the verdict is the one that `ladder` and `capacity` give. A case counts
//! only if every one of its runs names the right party. The measuring is a program of its own, `bin/verdict`, so that the
//! generator is a release build. Next: `cases` for how each is built, `toxiproxy` for the narrow network, which this
//! kernel has no other way to make.

mod toxiproxy;
mod cases;

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
use cases::{Stage, VerdictCase};

/// What the cases are built of.
pub struct Servers {
    /// Millstream.
    pub proxy: PathBuf,
    /// The bench's fast API.
    pub api: PathBuf,
}

/// Runs with fewer connections come first.
const FEWER: u32 = 4;
const FEWER_DURATION: Duration = Duration::from_millis(400);
const DURATION: Duration = Duration::from_millis(1_200);
const WARM_UP: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(20);
/// A run in which others had the machine, as the verdict then says, is repeated so often at the most.
const AGAIN: u32 = 40;
/// Bytes of a single request's answer at the most.
const LARGEST: usize = 16 << 20;

/// Runs the program, which prints its table.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<(), String> {
    let proxy = programs.millstream.as_ref().ok_or("the verdicts are on Millstream itself")?;
    // Before anything is measured: building it takes a while.
    toxiproxy::program()?;
    let mut command = Command::new(&programs.verdict);
    command.arg(options.runs.to_string()).arg(proxy).arg(&programs.origin);
    let status = command.status().map_err(|error| format!("bench verdict: {error}"))?;
    if status.success() { Ok(()) } else { Err("not every verdict was right".to_owned()) }
}

/// Builds each case so often; the table. An error where one was named wrongly.
pub fn table(servers: &Servers, runs: u32) -> Result<String, String> {
    let mut text = format!(
        "### Verdicts on purpose-built cases\n\n`cargo xtask bench verdict --runs {runs}`: {} ms under load each.\n\n\
         | case | the limit | named | disturbed and repeated | the last verdict |\n| --- | --- | ---: | ---: | --- |\n",
        DURATION.as_millis()
    );
    let mut wrong = Vec::new();
    for case in cases::all() {
        let (mut right, mut disturbed) = (0, 0);
        let mut last = None;
        for number in 1..=runs {
            let mut verdict = once(&case, servers).map_err(|error| format!("{}: {error}", case.name))?;
            for _ in 0..AGAIN {
                if verdict.limit != Limit::Others {
                    break;
                }
                disturbed += 1;
                verdict = once(&case, servers).map_err(|error| format!("{}: {error}", case.name))?;
            }
            eprintln!("{} {number}: {:?}", case.name, verdict.limit);
            if verdict.limit == case.limit {
                right += 1;
            } else {
                wrong.push(format!("{} {number}: {}", case.name, verdict.text()));
            }
            last = Some(verdict);
        }
        let said = last.map_or_else(String::new, |verdict| verdict.text());
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "| {} | {:?} | {right} of {runs} | {disturbed} | {said} |", case.name, case.limit);
    }
    if wrong.is_empty() { Ok(text) } else { Err(format!("{text}\nnamed wrongly:\n{}", wrong.join("\n"))) }
}

/// Builds the case, loads it, judges.
fn once(case: &VerdictCase, servers: &Servers) -> Result<Verdict, String> {
    let stage = (case.build)(servers)?;
    let target = target(&stage.url)?;
    let through = single(&target)?;
    let direct = stage.direct.as_deref().map(|url| single(&self::target(url)?)).transpose()?;
    let load = |connections: u32, duration: Duration, meter: &mut Meter| {
        let mut plan = Plan::closed(target.clone(), connections, stage.threads.min(connections), duration);
        plan.warm_up = WARM_UP;
        plan.timeout = PATIENCE;
        drive::run(&plan, &AtomicBool::new(false), &mut |progress| meter.watch(progress))
            .map_err(|error| error.to_string())
    };
    let mut meter = stage.meter();
    // The generator's threads are those of the thread that starts them: its cores and its place in line are theirs.
    let (fewer, top) = std::thread::scope(|scope| {
        let runs = scope.spawn(|| {
            stage.hinder_generator()?;
            let fewer = load(stage.connections / FEWER, FEWER_DURATION, &mut stage.meter())?;
            Ok::<_, String>((fewer, load(stage.connections, DURATION, &mut meter)?))
        });
        runs.join().map_err(|_| "the load panicked".to_owned())?
    })?;
    Ok(judge(&stage.evidence(&meter.found(), Run::of(&top), Run::of(&fewer), direct, through)))
}

impl Stage {
    fn evidence(
        &self,
        found: &millstream_load::party::Metered,
        top: Run,
        fewer: Run,
        direct: Option<Once>,
        through: Once,
    ) -> Evidence {
        Evidence {
            top,
            fewer: Some(fewer),
            direct,
            through: Some(through),
            api_rate: None,
            origin_share: self.origin_share,
            proxy: found.of("proxy"),
            api: found.of("api"),
            generator: found.of("generator"),
            machine_busy: found.machine_busy,
            stolen: found.stolen,
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
            is_here: true,
            link: None,
        }
    }
}

fn target(url: &str) -> Result<Target, String> {
    let ask = Ask { url: url.to_owned(), keep_alive: true, ..Ask::default() };
    resolve(&ask, Permission::default()).map_err(|error| error.to_string())
}

fn single(target: &Target) -> Result<Once, String> {
    let mut samples = Vec::new();
    while !Once::are_enough(&samples) {
        let answer = probe::once(target, PATIENCE, LARGEST).map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("{} answers {}", target.url, answer.status));
        }
        samples.push(Once::of(&answer));
    }
    Once::of_several(&samples).ok_or_else(|| "no single request".to_owned())
}
