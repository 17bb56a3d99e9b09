//! `millstream ladder URL`: the steps in front of the user's API, measured, checked and judged.
//!
//! Flags become an order, what comes of it text, JSON and a page. What is measured and how is `millstream_load::ladder`'s.

use crate::cli::Ladder;
use millstream_load::ladder::climb::{ClimbError, Order, Sight, climb};
use millstream_load::ladder::result::Climbed;
use millstream_load::ladder::stand::Programs;
use millstream_load::ladder::{page, table};
use millstream_load::peer::{self, Party};
use millstream_load::progress::Live;
use millstream_load::report;
use millstream_load::step::{self, STEPS, Setting, Step};
use millstream_load::target::{Ask, Permission};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What the default ladder may take, so that it is told before two minutes are over.
const LIMIT: Duration = Duration::from_secs(105);

/// What a shell says of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// The whole command.
pub fn run(ladder: &Ladder) -> ExitCode {
    if let Some(name) = &ladder.print {
        return ended(print(ladder, name));
    }
    ended(order(ladder).map_err(Ended::Wrong).and_then(|order| {
        let climbed = carry_out(&order)?;
        show(&climbed);
        write(&climbed, ladder.json.as_deref(), ladder.html.as_deref())
    }))
}

/// Why the command has no result.
#[derive(Debug)]
pub enum Ended {
    /// In one sentence.
    Wrong(String),
    /// By the user.
    Stopped,
}

/// The exit status, and the sentence where there is one.
pub fn ended(result: Result<(), Ended>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Wrong(why)) => {
            eprintln!("millstream: {why}");
            ExitCode::FAILURE
        }
        Err(Ended::Stopped) => {
            eprintln!("millstream: stopped; what was started for it has ended");
            ExitCode::from(INTERRUPTED)
        }
    }
}

/// What the flags ask for.
fn order(ladder: &Ladder) -> Result<Order, String> {
    let steps = match &ladder.steps {
        Some(names) => step::parse(names)?,
        None => STEPS.iter().map(|entry| entry.step).collect(),
    };
    let peers = ladder.against.as_deref().map(peer::parse).transpose()?.unwrap_or_default();
    Ok(Order {
        ask: Ask {
            url: ladder.url.clone().unwrap_or_default(),
            method: ladder.method.clone(),
            fields: ladder.header.clone(),
            body: ladder.body.clone().into_bytes(),
            keep_alive: true,
        },
        may: Permission { public: ladder.yes },
        steps,
        programs: programs(&peers)?,
        parties: std::iter::once(Party::Millstream).chain(peers).collect(),
        rounds: ladder.rounds,
        each: ladder.duration,
        limit: LIMIT,
        connections: ladder.connections,
        fallback: ladder.valid.clone(),
        own_api: None,
    })
}

/// This program, and those of the peers.
///
/// # Errors
/// One is not installed, or this program's own file is gone.
pub fn programs(peers: &[Party]) -> Result<Programs, String> {
    let own =
        std::env::current_exe().map_err(|error| format!("this program's own file is not there: {error}"))?;
    let folders = peer::search_path(std::env::var_os("PATH").as_deref());
    let mut programs = vec![(Party::Millstream, own)];
    for &party in peers {
        let found = party.program(&folders);
        let program = found.ok_or_else(|| {
            format!(
                "{} is not installed here (looked for in PATH and the usual folders of servers)",
                party.name()
            )
        })?;
        programs.push((party, program));
    }
    Ok(Programs(programs))
}

/// Climbs with the progress on standard error; Ctrl-C and TERM stop it in order.
pub fn carry_out(order: &Order) -> Result<Climbed, Ended> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&stop));
        registered.map_err(|error| Ended::Wrong(format!("signals cannot be taken: {error}")))?;
    }
    let mut live = Live::to_stderr();
    let climbed = climb(order, &stop, &mut |sight| match sight {
        Sight::Said(words) => live.say(words),
        Sight::Begins { number, of, what } => live.label(&format!("{number} of {of}, {what}")),
        Sight::Goes(progress) => live.show(progress),
    });
    climbed.map_err(|error| match error {
        ClimbError::Because(why) => Ended::Wrong(why),
        ClimbError::Stopped => Ended::Stopped,
    })
}

/// The text on standard output.
pub fn show(climbed: &Climbed) {
    put(&format!("\n{}", table::text(climbed)));
}

/// Text on standard output.
pub fn put(text: &str) {
    use std::io::Write;
    // A closed pipe on standard output is the reader's wish.
    _ = std::io::stdout().write_all(text.as_bytes());
}

/// The files that were asked for.
pub fn write(climbed: &Climbed, json: Option<&Path>, html: Option<&Path>) -> Result<(), Ended> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    if let Some(file) = json {
        files.push((file.to_owned(), climbed.json()));
    }
    if let Some(file) = html {
        files.push((file.to_owned(), report::steps::html(&page::page(climbed))));
    }
    for (file, text) in files {
        std::fs::write(&file, text)
            .map_err(|error| Ended::Wrong(format!("{} cannot be written: {error}", file.display())))?;
    }
    Ok(())
}

/// `--print STEP`.
fn print(ladder: &Ladder, name: &str) -> Result<(), Ended> {
    let step = step::find(name).map_err(Ended::Wrong)?;
    let origin = match &ladder.url {
        Some(url) => host_and_port(url).map_err(Ended::Wrong)?,
        None => "127.0.0.1:8000".to_owned(),
    };
    let port = if step == Step::Tls { 8443 } else { 8080 };
    // With the lifetime of what says nothing only where it was asked for: the API's word is what this step is about.
    let setting = Setting { port, origin: &origin, fallback: ladder.valid.as_deref(), workers: "auto" };
    if step == Step::Alone {
        return Err(Ended::Wrong(
            "\"alone\" is the API without a proxy: there is no configuration".to_owned(),
        ));
    }
    let peers = ladder.against.as_deref().map(peer::parse).transpose().map_err(Ended::Wrong)?;
    for party in peers.unwrap_or_else(|| vec![Party::Millstream]) {
        let launch = peer::launch(party, step, &setting, Path::new("."))
            .map_err(|why| Ended::Wrong(format!("{} {why}", party.name())))?;
        for (_, text) in launch.files {
            put(&text);
        }
    }
    Ok(())
}

/// Where a URL leads, as `server` names it.
fn host_and_port(url: &str) -> Result<String, String> {
    let rest =
        url.strip_prefix("http://").ok_or_else(|| format!("\"{url}\": write http://host:port/path"))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
    if host.is_empty() || !host.chars().all(is_plain) {
        return Err(format!("\"{url}\": write http://host:port/path"));
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { host.to_owned() } else { format!("{host}:80") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_host_and_port() {
        let found = |url: &str| host_and_port(url);
        assert_eq!(found("http://127.0.0.1:8000/a?b"), Ok("127.0.0.1:8000".to_owned()));
        assert_eq!(found("http://api.example"), Ok("api.example:80".to_owned()));
        assert_eq!(found("http://[::1]/"), Ok("[::1]:80".to_owned()));
        assert!(found("https://api.example/").is_err());
        assert!(found("http://a;b/").is_err(), "nothing but a host gets into a configuration");
    }
}
