//! `millstream capacity`: what several API servers give alone and behind the proxy, as a table with its reasons.
//!
//! The proxy that is measured is this binary, started anew with a configuration of its own. Everything that is started
//! ends with the command, with Ctrl-C too.

use super::end::{self, End};
use super::ladder::seed;
use super::output::Output;
use super::stop;
use crate::cli::Capacity as Flags;
use millstream_load::capacity::{self, Capacity, Measured, Setting, Subject};
use millstream_load::party;
use millstream_load::progress::Live;
use millstream_load::report::json;
use millstream_load::report::quantity::plural;
use millstream_load::stop::{CutShort, Stop};
use millstream_load::unmeasured::Unmeasured;
use millstream_net::cores;
use std::process::ExitCode;
use std::time::Duration;

const CAPACITY: json::Kind = "millstream.capacity/2";
/// Default number of threads at most.
const THREADS: usize = 4;

pub fn run(flags: &Flags) -> ExitCode {
    end::status(carry_out(flags))
}

fn carry_out(flags: &Flags) -> Result<ExitCode, End> {
    let mut output = Output::open(flags.json.as_deref(), flags.html.as_deref())?;
    let stop = stop::on_signals(stop::THIRD)?;
    party::clear_away();
    let measured = measured(flags, &stop)?;
    end::tell_unoptimised();
    let page = capacity::page(&measured);
    output.put_page(&page, flags.verbose);
    output.write(|| json::write_versioned(CAPACITY, &measured), || page.html())?;
    if measured.cut_short.is_some() { Err(End::STOPPED) } else { Ok(ExitCode::SUCCESS) }
}

fn measured(flags: &Flags, stop: &Stop) -> Result<Capacity, Unmeasured> {
    let services: Vec<Option<Duration>> = match flags.sleep.is_empty() {
        true => vec![None],
        false => flags.sleep.iter().copied().map(Some).collect(),
    };
    let cases: Vec<_> = flags
        .connections
        .iter()
        .flat_map(|connections| services.iter().map(move |service| (*connections, *service)))
        .collect();
    let mut all = Capacity {
        is_simulated: !flags.sleep.is_empty(),
        urls: flags.urls.clone(),
        cores: u32::try_from(cores::usable()).unwrap_or(u32::MAX),
        workers: flags.workers.clone(),
        cut_short: None,
        seed: flags.seed.unwrap_or_else(seed),
        rows: Vec::new(),
    };
    let (mut runs, mut done) = (0, 0);
    for &(connections, service) in &cases {
        let is_stopped = match case(flags, connections, service, all.seed, stop) {
            Ok((urls, measured)) => {
                all.urls = urls;
                all.rows.push(measured.row);
                runs = measured.runs;
                done += measured.cut_short.map_or(runs, |cut| cut.measured);
                measured.cut_short.is_some()
            }
            // What stands above is whole.
            Err(Unmeasured::Stopped(_)) if !all.rows.is_empty() => true,
            Err(error) => return Err(error),
        };
        if is_stopped {
            all.cut_short = Some(CutShort { measured: done, of: runs * cases.len() as u32 });
            break;
        }
    }
    Ok(all)
}

fn case(
    flags: &Flags,
    connections: u32,
    service: Option<Duration>,
    seed: u64,
    stop: &Stop,
) -> Result<(Vec<String>, Measured), Unmeasured> {
    let setting = setting(flags, connections, seed)?;
    let Some(service) = service else {
        let name = plural(connections.into(), "connection");
        let subject = Subject { name, urls: flags.urls.clone(), service: None };
        return Ok((
            flags.urls.clone(),
            capacity::measure(&subject, &setting, stop, &mut Live::unless(flags.quiet))?,
        ));
    };
    let (subject, _origins) =
        capacity::sleeping(service, usize::from(flags.servers), usize::from(flags.at_once))?;
    let measured = capacity::measure(&subject, &setting, stop, &mut Live::unless(flags.quiet))?;
    Ok((subject.urls, measured))
}

fn setting(flags: &Flags, connections: u32, seed: u64) -> Result<Setting, Unmeasured> {
    Ok(Setting {
        connections,
        threads: flags.threads.unwrap_or(cores::usable().min(THREADS) as u32),
        duration: flags.duration,
        warm_up: flags.warm_up,
        rounds: flags.rounds,
        seed,
        workers: flags.workers.clone(),
        fields: flags.header.clone(),
        public: flags.yes,
        proxy: std::env::current_exe()?,
    })
}
