//! `millstream shadow URL`: in front of an API as `serve` is, but without a cache; a table while it runs, and the report at its end.
//!
//! What is observed is `millstream-server`'s `watched`, what it means `millstream-shadow`'s. Of the two processes that a start by root
//! makes, the one that serves writes the report; the files are opened before its rights are given up.

mod page;
mod proof;
mod replay;

use crate::cli::ShadowUrl;
use crate::measure::end::{self, End};
use crate::measure::output::Output;
use crate::running;
use crate::serve_url;
use crate::serve_url::Frame;
use millstream_conf::lexer::quoted;
use millstream_net::{clock, terminal};
use millstream_server::shadow_zone::ShadowZone;
use millstream_shadow::Report;
use millstream_shadow::configuration::Front;
use replay::{Log, LogReplay};
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGQUIT, SIGTERM};
use signal_hook::low_level::raise;
use std::io::{self, IsTerminal, Write};
use std::path::{self, Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often the table is drawn.
const PACE: Duration = Duration::from_secs(2);

/// Longest wait at the end of `--for` for responses that are on their way.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lines of a terminal that does not know its height, and those below the table.
const UNKNOWN: usize = 24;
const BELOW: usize = 3;

/// What was observed, and the end of the threads beside it.
struct Observed {
    zone: Arc<ShadowZone>,
    ended: Sender<()>,
    replay: Option<LogReplay>,
}

pub fn run(shadow: &ShadowUrl) -> ExitCode {
    end::status(observe(shadow))
}

fn observe(flags: &ShadowUrl) -> Result<ExitCode, End> {
    if flags.front.urls.is_empty() {
        return Err("specify the API, such as http://127.0.0.1:8000".to_owned().into());
    }
    let mut frame = Frame::of(&flags.front, None, &flags.front.urls)?;
    let is_root = rustix::process::geteuid().is_root();
    let folder = pid_folder(flags.config.as_deref(), is_root).map_err(|error| error.to_string())?;
    frame.http.insert_str(0, &pid(&folder, &serve_url::address_of(&flags.front)));
    let mut output = Output::open(flags.json.as_deref(), flags.html.as_deref())?;
    output.export(flags.config.as_deref())?;
    let log = flags.log.as_deref().map(|file| Log::open(file, &flags.front)).transpose()?;
    let front = log.as_ref().map_or_else(|| flags.front.clone(), |_| replay::trusting(&flags.front));
    let may_end = flags.duration.is_some() || log.is_some();
    let mut observed = None;
    let code = running::in_front(&front, None, may_end, |shared| {
        let Some(zone) = shared.zones.shadows.zone().cloned() else { return };
        zone.allow_stale(flags.stale_budget);
        if flags.probe {
            zone.probe();
        }
        let (ended, is_over) = channel();
        let (shown, duration) = (zone.clone(), flags.duration);
        let watching = std::thread::Builder::new().name("shadow".into());
        let watching = watching.spawn(move || watch(&shown, duration, &is_over));
        if let Err(error) = watching {
            end::tell(&format!("cannot start the thread for the table and --for: {error}"));
        }
        observed = Some(Observed { zone, ended, replay: log.and_then(Log::replay) });
    });
    let Some(Observed { zone, ended, replay }) = observed else {
        if code == ExitCode::SUCCESS {
            // The process that served has written them.
            std::mem::forget(output);
        }
        return Ok(code);
    };
    drop((ended, replay));
    let report = zone.report(None);
    write(&report, flags, &frame, &mut output)?;
    if flags.prove {
        proof::measure(&report, &flags.front.urls)?;
    }
    Ok(code)
}

/// Draws the table until `is_over`, and brings the end about after `duration`.
fn watch(zone: &ShadowZone, duration: Option<Duration>, is_over: &Receiver<()>) {
    let mut end = duration.map(|duration| clock::now() + duration);
    let (mut due, mut drawn, mut is_ending) = (clock::now(), 0, false);
    loop {
        let next = match io::stdout().is_terminal() {
            true => {
                drawn = draw(&zone.report(None), drawn);
                due += PACE;
                Some(end.map_or(due, |end| end.min(due)))
            }
            false => end,
        };
        let waited = match next {
            Some(next) => is_over.recv_timeout(next.saturating_duration_since(clock::now())),
            None => is_over.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        if !matches!(waited, Err(RecvTimeoutError::Timeout)) {
            return;
        }
        if end.is_some_and(|end| clock::now() >= end) {
            // What is on its way is finished first, but not for ever.
            _ = raise(if is_ending { SIGTERM } else { SIGQUIT });
            end = (!is_ending).then(|| clock::now() + PATIENCE);
            is_ending = true;
        }
    }
}

/// Over the table that is there; returns how many lines it has.
fn draw(report: &Report, drawn: usize) -> usize {
    let out = io::stdout();
    let rows = tcgetwinsize(&out).map_or(0, |size| usize::from(size.ws_row));
    let room = if rows == 0 { UNKNOWN } else { rows }.saturating_sub(BELOW).max(2);
    let table = page::figures(report).first_block(0, terminal::columns(&out));
    let lines: Vec<&str> = table.lines().take(room).collect();
    let mut text = if drawn > 0 { format!("\x1b[{drawn}A\x1b[J") } else { String::new() };
    lines.iter().for_each(|line| text.extend([line, "\n"]));
    let mut out = out.lock();
    // A closed terminal is the end of watching only.
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    lines.len()
}

fn write(report: &Report, flags: &ShadowUrl, frame: &Frame, output: &mut Output) -> Result<(), End> {
    let caches = report.totals.cached_routes > 0;
    let file = flags.config.as_ref().filter(|file| caches && *file != "-");
    let file = file.map(|file| file.display());
    let commands = file.map(|file| vec![format!("millstream -c {file} -t"), format!("millstream -c {file}")]);
    let page = page::page(report, &flags.front.urls, commands.unwrap_or_default());
    output.put_page(&page, true);
    if flags.config.is_none() && caches {
        output.put("\n--config FILE writes the nginx.conf that caches these routes.\n");
    }
    let front = Front { http: &frame.http, server: &frame.server, pass: &frame.pass };
    output.write_exports(std::iter::once_with(|| report.configuration(0, front)))?;
    output.write(|| report.json() + "\n", || page.html())
}

/// Where who runs the written configuration can make its pid file: in the prefix as root, and otherwise next to the configuration.
fn pid_folder(config: Option<&Path>, is_root: bool) -> io::Result<PathBuf> {
    if is_root {
        return Ok(PathBuf::from("logs"));
    }
    let config = config.filter(|file| *file != "-").unwrap_or(Path::new("nginx.conf"));
    Ok(path::absolute(config)?.parent().map_or_else(PathBuf::new, Path::to_owned))
}

/// A pid file of its own, so that two written configurations, or this one and another server's, run on one machine.
fn pid(folder: &Path, address: &str) -> String {
    let address: String = address.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let file = folder.join(format!("shadow-{}.pid", address.trim_matches('-')));
    format!("pid {};\n", quoted(&file.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_configuration_has_a_pid_file_by_its_address() {
        for (address, expected) in [
            ("127.0.0.1:8080", "pid logs/shadow-127-0-0-1-8080.pid;\n"),
            ("[::1]:8080", "pid logs/shadow-1--8080.pid;\n"),
            ("unix:/run/a.sock", "pid logs/shadow-unix--run-a-sock.pid;\n"),
        ] {
            assert_eq!(pid(Path::new("logs"), address), expected);
        }
    }

    #[test]
    fn the_pid_file_is_where_the_user_may_write() {
        let folder = |config, is_root| pid_folder(config, is_root).expect("a current directory");
        assert_eq!(folder(Some(Path::new("/srv/u/c.conf")), true), Path::new("logs"));
        assert_eq!(folder(Some(Path::new("/srv/u/c.conf")), false), Path::new("/srv/u"));
        let here = std::env::current_dir().expect("a current directory");
        for config in [None, Some(Path::new("-")), Some(Path::new("c.conf"))] {
            assert_eq!(folder(config, false), here);
        }
        assert_eq!(pid(Path::new("/a b"), "80"), "pid \"/a b/shadow-80.pid\";\n");
    }
}
