//! `millstream ladder URL`: the steps in front of the user's API, measured, checked and judged.
//!
//! Flags become an order, what comes of it text, JSON and a page. What is measured and how is `millstream_load::ladder`'s.

use super::end::{self, End};
use super::output::Output;
use super::stop;
use crate::cli::Ladder;
use millstream_conf::load::{self, Options};
use millstream_load::correctness::Keeps;
use millstream_load::ladder::climb::climb;
use millstream_load::ladder::course::{Order, Wish};
use millstream_load::ladder::gain;
use millstream_load::ladder::page::page;
use millstream_load::ladder::result::{Climbed, JSON};
use millstream_load::party;
use millstream_load::peer::{self, Party};
use millstream_load::progress::Live;
use millstream_load::report::json;
use millstream_load::report::steps::Page;
use millstream_load::step::running::{self, Running};
use millstream_load::step::{self, Fact, MICRO, SecureOrigin, Step, StepSetting};
use millstream_load::stream::absolute_authorities;
use millstream_load::target::{Ask, Permission, Url};
use millstream_net::clock;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Limit of the default ladder, so that the report comes within two minutes.
const LIMIT: Duration = Duration::from_secs(105);

pub fn run(ladder: &Ladder) -> ExitCode {
    end::status(match &ladder.print {
        Some(name) => print(ladder, name),
        None => measured(ladder),
    })
}

fn measured(ladder: &Ladder) -> Result<ExitCode, End> {
    let order = order(ladder)?;
    let mut output = Output::open(ladder.json.as_deref(), ladder.html.as_deref())?;
    let mut climbed = carry_out(&order)?;
    if let Some(words) = left_out(&order.steps, climbed.here()) {
        // Behind the answer, which is one of the steps that are left.
        climbed.verdict.insert(climbed.verdict.len().min(1), words);
    }
    let commands = next(ladder, &climbed).unwrap_or_default();
    tell(&climbed, commands, &mut output, ladder.verbose)?;
    Ok(ExitCode::SUCCESS)
}

/// Steps that were not requested, and whether `here`, the user's own configuration, is one of them.
fn left_out(steps: &[Step], here: Option<Step>) -> Option<String> {
    let is_out = |step: &Step| !steps.contains(step);
    let names: Vec<&str> = Step::ALL.into_iter().filter(is_out).map(Step::name).collect();
    let here = here.filter(is_out).map_or_else(String::new, |here| {
        format!(" Your configuration is at \"{}\", which was not measured.", here.entry().title)
    });
    (!names.is_empty()).then(|| format!("Left out by --steps: {}.{here}", names.join(", ")))
}

/// How to get the recommended step, if it caches something public.
fn next(ladder: &Ladder, climbed: &Climbed) -> Option<Vec<String>> {
    let url = ladder.url.as_deref().filter(|_| climbed.caching.keeps != Keeps::No)?;
    let step = gain::recommended(climbed)?;
    // What knows its users apart `serve` leaves to a configuration of one's own.
    let names_users =
        |name: &str| ["authorization", "cookie"].iter().any(|field| name.eq_ignore_ascii_case(field));
    if ladder.header.iter().any(|(name, _)| names_users(name))
        || !ladder.body.is_empty()
        || !climbed.personal.is_empty()
    {
        return None;
    }
    let time = ladder.valid.as_deref().unwrap_or(MICRO);
    let (microcache, valid) = match climbed.caching.keeps {
        Keeps::Silent => (format!(" --microcache {time}"), format!(" --valid {time}")),
        _ => (String::new(), String::new()),
    };
    let print = format!("millstream ladder {url}{valid} --print {}", step.name());
    if let Some(file) = &ladder.config {
        let file = file.display();
        return Some(vec![
            print,
            format!(
                "# shows the cache and upstream of the step: add these directives to {file}, and keep its own"
            ),
            "# rules of access, limits and header fields, which the step does not have".to_owned(),
        ]);
    }
    let Url { is_https, authority: origin, .. } = Url::parse(&climbed.url).ok()?;
    let scheme = if is_https { "https" } else { "http" };
    Some(vec![
        format!("millstream serve {scheme}://{origin}{microcache}"),
        "# (keeps responses without public or s-maxage apart by client address; --client-address hide shares them)".to_owned(),
        "# or, this step's own configuration:".to_owned(),
        format!("{print} > ladder.conf"),
    ])
}

/// The steps that the file of `--config` has.
fn running(ladder: &Ladder) -> Result<Option<Running>, String> {
    let (Some(file), Some(url)) = (&ladder.config, &ladder.url) else { return Ok(None) };
    let name = file.display().to_string();
    let prefix = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let main_file = std::path::absolute(file).map_err(|error| format!("{name}: {error}"))?;
    // As a check of the same file would: what it lacks here is said by `-t`, and what nginx alone knows does not matter.
    let loaded =
        load::load(&Options { main_file, prefix: prefix.to_owned(), lenient: true, ..Options::default() });
    let configuration =
        loaded.configuration.ok_or_else(|| format!("{name} has errors: see millstream -t -c {name}"))?;
    let url = Url::parse(url)?;
    running::running(&name, &configuration, &url).map(Some)
}

fn order(ladder: &Ladder) -> Result<Order, String> {
    let steps = match &ladder.steps {
        Some(names) => step::parse(names)?,
        None => Step::ALL.to_vec(),
    };
    let peers = ladder.against.as_deref().map(peer::parse).transpose()?.unwrap_or_default();
    Ok(Order {
        ask: Ask {
            url: ladder.url.clone().unwrap_or_default(),
            method: ladder.method.clone(),
            fields: ladder.header.clone(),
            body: ladder.body.clone().into_bytes(),
            keep_alive: true,
            ..Ask::default()
        },
        may: Permission { public: ladder.yes },
        steps,
        parties: parties(&peers)?,
        wish: Wish {
            rounds: ladder.rounds,
            each: ladder.duration,
            limit: LIMIT,
            seed: ladder.seed.unwrap_or_else(seed),
        },
        running: running(ladder)?,
        connections: ladder.connections,
        fallback: ladder.valid.clone(),
        own_api: None,
    })
}

pub(super) fn seed() -> u64 {
    // JSON's readers know whole numbers up to 2^53.
    clock::unix_milliseconds()
}

/// This program and the peers, each with its binary.
pub(super) fn parties(peers: &[Party]) -> Result<Vec<(Party, PathBuf)>, String> {
    let own = std::env::current_exe()
        .map_err(|error| format!("the program file of millstream was not found: {error}"))?;
    let path = std::env::var_os("PATH");
    let mut parties = vec![(Party::Millstream, own)];
    for &party in peers {
        let found = party.program(path.as_deref());
        let program = found.ok_or_else(|| {
            format!(
                "{} is not installed (searched in PATH and the usual directories of servers)",
                party.name()
            )
        })?;
        parties.push((party, program));
    }
    Ok(parties)
}

/// Prints progress on standard error; Ctrl-C and TERM stop it in order.
pub(super) fn carry_out(order: &Order) -> Result<Climbed, End> {
    let stop = stop::on_signals(stop::THIRD)?;
    party::clear_away();
    let mut live = Live::unless(false);
    let climbed = climb(order, &stop, &mut live)?;
    end::tell_unoptimised();
    Ok(climbed)
}

/// Writes text and reports, also of an interrupted ladder.
pub(super) fn tell(
    climbed: &Climbed,
    commands: Vec<String>,
    output: &mut Output,
    is_verbose: bool,
) -> Result<(), End> {
    let page = Page { commands, ..page(climbed) };
    output.put("\n");
    output.put_page(&page, is_verbose);
    output.write(|| json::write_versioned(JSON, climbed), || page.html())?;
    if climbed.cut_short.is_some() { Err(End::STOPPED) } else { Ok(()) }
}

fn print(ladder: &Ladder, name: &str) -> Result<ExitCode, End> {
    let step = step::find(name)?;
    let url = ladder.url.as_deref().unwrap_or("http://127.0.0.1:8000");
    let url = Url::parse(url).map_err(|why| format!("\"{url}\": {why}"))?;
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let origin = format!("{host}:{}", url.port);
    let authorities =
        url.is_https.then(absolute_authorities).transpose().map_err(|error| error.to_string())?;
    let secure = authorities.as_deref().map(|authorities| SecureOrigin {
        name: &url.host,
        host: &url.authority,
        authorities,
    });
    let port = if step.has(Fact::Tls) { 8443 } else { 8080 };
    // With the lifetime of what says nothing only where it was asked for: the API's word is what this step is about.
    let setting =
        StepSetting { port, origin: &origin, secure, fallback: ladder.valid.as_deref(), puts_aside: false };
    if step == Step::Alone {
        return Err(End::Wrong("\"alone\" is the API without a proxy and has no configuration".to_owned()));
    }
    let peers = ladder.against.as_deref().map(peer::parse).transpose()?;
    let output = Output::open(None, None)?;
    for party in peers.unwrap_or_else(|| vec![Party::Millstream]) {
        let launch = peer::launch(party, step, &setting, Path::new("."))
            .map_err(|why| End::Wrong(format!("{} {why}", party.name())))?;
        output.put_whole(&launch.text);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_were_not_asked_for_are_named() {
        let out = |steps, here| left_out(&step::parse(steps).expect("they are steps"), here);
        assert_eq!(out("alone-http2", Some(Step::Memory)), None);
        let most = out("alone-tls", Some(Step::Memory));
        assert_eq!(most.as_deref(), Some("Left out by --steps: http2."));
        let says = "Left out by --steps: proxied, lock, headers, memory, log, tls, http2. Your configuration is at \"in memory\", \
                    which was not measured.";
        assert_eq!(out("alone,keepalive-microcache", Some(Step::Memory)).as_deref(), Some(says));
    }
}
