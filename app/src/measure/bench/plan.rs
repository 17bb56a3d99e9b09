//! From the flags of `bench` to a plan.

use super::replay::{self, Request, Wanted};
use super::rows::{self, Rows, RowsFormat, Template};
use crate::cli::{ArrivalsOption, DataOrder, Load};
use crate::measure::end;
use fastrand::Rng;
use millstream_load::drive;
use millstream_load::plan::{Arrivals, Expect, Mode, Plan, Schedule, Target, Way};
use millstream_load::report::quantity::plural;
use millstream_load::target::{self, Ask, Permission, Url};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// Largest body file: each target holds it.
const BODY: u64 = 256 << 20;
const CONNECTIONS: u64 = 10;
const DURATION: Duration = Duration::from_secs(10);
const WARM_UP: Duration = Duration::from_secs(1);
const TRIAL: Duration = Duration::from_secs(5);

/// Resolves names and reads files. The error is one sentence.
pub fn plan(flags: &Load) -> Result<Plan, String> {
    let is_open = flags.rate.is_some() || flags.find_max || !flags.stages.is_empty() || flags.speed.is_some();
    if !is_open && (flags.poisson || flags.arrivals.is_some()) {
        return Err("--poisson and --arrivals need an open loop: specify --rate or --find-max".to_owned());
    }
    let (asks, order, moments) = match (&flags.log, &flags.data_file) {
        (Some(file), _) => replayed(flags, file)?,
        (None, Some(file)) => with_rows(flags, file)?,
        (None, None) => {
            let (body, method) = (body(flags)?, method(flags)?);
            tell_unfilled(flags, &body);
            let ask = |url: &String| Ask { body: body.clone(), ..ask(flags, url.clone(), method.clone()) };
            (flags.urls.iter().map(ask).collect(), Vec::new(), None)
        }
    };
    let targets =
        target::resolve_all(&asks, Permission { public: flags.yes }).map_err(|error| error.to_string())?;
    let expect = |target: Target| Target {
        expect: Expect { statuses: flags.status.clone(), ..target.expect },
        ..target
    };
    let streams = streams(flags)?;
    // A log is replayed to its end, and as with -n its last answer is waited for; without its times or clients, it only says
    // what is requested how often.
    let is_whole = (moments.is_some() || flags.log_clients) && flags.duration.is_none();
    let of_log = is_whole.then_some(order.len() as u64);
    let requests = flags.requests.or(of_log);
    let most = requests.unwrap_or(u64::MAX);
    let connections = match flags.connections {
        Some(connections) => narrow(connections.min(of_log.unwrap_or(u64::MAX))),
        // Streams carry what is due, and all connections are opened at once for them.
        None if is_open && streams == 1 => most_connections(flags).min(narrow(most)),
        None => narrow(CONNECTIONS.min(most)),
    };
    let schedule = match (moments, flags.speed) {
        (Some(moments), Some(speed)) => Some(Schedule::Log { moments: moments.into(), speed }),
        _ if flags.stages.is_empty() => None,
        _ => Some(Schedule::Stages(flags.stages.clone())),
    };
    let duration = duration(flags, schedule.as_ref(), requests);
    Ok(Plan {
        targets: targets.into_iter().map(expect).collect(),
        order,
        connections,
        threads: flags.threads.map_or_else(|| threads(connections), narrow),
        mode: mode(flags, schedule.as_ref())?,
        warm_up: flags
            .warm_up
            .unwrap_or_else(|| warm_up(duration.filter(|_| schedule.is_none() && flags.requests.is_none()))),
        duration,
        requests,
        keep_alive: !flags.no_keep_alive,
        pipeline: if flags.http2 { narrow(streams) } else { narrow(flags.pipeline) },
        timeout: flags.timeout,
        schedule,
        redirects: if flags.location { flags.max_redirs } else { 0 },
    })
}

/// `None`: until the requests are done.
fn duration(flags: &Load, schedule: Option<&Schedule>, requests: Option<u64>) -> Option<Duration> {
    match (schedule, flags.find_max, requests) {
        (Some(Schedule::Log { .. }), ..) if flags.duration.is_none() => None,
        (Some(schedule), ..) => Some(flags.duration.unwrap_or(Duration::MAX).min(schedule.duration())),
        (None, true, _) => Some(flags.duration.unwrap_or(TRIAL)),
        (None, false, None) => Some(flags.duration.unwrap_or(DURATION)),
        (None, false, Some(_)) => flags.duration,
    }
}

fn mode(flags: &Load, schedule: Option<&Schedule>) -> Result<Mode, String> {
    let mean = schedule.map(|schedule| schedule.requests() / schedule.duration().as_secs_f64());
    if mean.is_some_and(|mean| !(mean > 0.0 && mean.is_finite())) {
        let why = match schedule {
            Some(Schedule::Log { .. }) => "all requests of the log have the same time",
            _ => {
                "no stage of --stages has both a length and a rate above zero at its start or end: write 10s:100"
            }
        };
        return Err(format!("no request would ever be sent: {why}"));
    }
    Ok(mean.or(flags.rate).map_or(Mode::Closed, |rate| Mode::Open { rate, arrivals: arrivals(flags) }))
}

/// The default warm-up: connecting, and a server that wakes up. None for a number of requests, as someone may
/// count them.
fn warm_up(duration: Option<Duration>) -> Duration {
    duration.map_or(Duration::ZERO, |duration| (duration / 10).min(WARM_UP))
}

/// Whether this `-m` means streams: no method is a number.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Empty: none given.
fn method(flags: &Load) -> Result<String, String> {
    let mut methods = flags.method.iter().filter(|text| !is_number(text));
    match (methods.next(), methods.next()) {
        (None, _) => Ok(String::new()),
        (Some(method), None) => Ok(method.clone()),
        (Some(first), Some(second)) => {
            Err(format!("only one method can be specified, not {first} and {second}"))
        }
    }
}

/// `--streams`, or `-m` with a number, as in h2load.
fn streams(flags: &Load) -> Result<u64, String> {
    let mut numbers = flags.method.iter().filter(|text| is_number(text));
    match (numbers.next(), numbers.next(), flags.streams) {
        (Some(number), None, None) if flags.http2 => match number.parse() {
            Ok(0) => Err("-m 0: write a number of at least 1".to_owned()),
            number => Ok(number.unwrap_or(u64::MAX)),
        },
        (Some(number), None, None) => {
            Err(format!("-m {number} is the number of HTTP/2 streams: add --http2, or specify a method"))
        }
        (Some(_), _, _) => Err("the number of streams is specified twice".to_owned()),
        (None, _, streams) => Ok(streams.unwrap_or(1)),
    }
}

/// An open loop opens a connection whenever a request is due and none is free.
fn most_connections(flags: &Load) -> u32 {
    drive::most_connections(flags.threads.map_or_else(|| threads(u32::MAX), narrow))
}

pub fn arrivals(flags: &Load) -> Arrivals {
    if flags.poisson || flags.arrivals == Some(ArrivalsOption::Poisson) {
        Arrivals::Poisson
    } else {
        Arrivals::Constant
    }
}

/// Saturates, so that the plan rejects it with its own words.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn threads(connections: u32) -> u32 {
    let cores = u32::try_from(millstream_net::cores::usable()).unwrap_or(1);
    cores.clamp(1, connections.max(1))
}

fn ask(flags: &Load, url: String, method: String) -> Ask {
    Ask {
        url,
        method,
        fields: flags.header.clone(),
        keep_alive: !flags.no_keep_alive,
        http2: flags.http2,
        way: Way { unix_socket: flags.unix_socket.as_deref().map(Into::into), insecure: flags.insecure },
        connect_to: flags.connect_to.clone(),
        ..Ask::default()
    }
}

fn body(flags: &Load) -> Result<Vec<u8>, String> {
    match flags.body.as_deref() {
        None => Ok(Vec::new()),
        Some(text) => match text.strip_prefix('@') {
            Some("") => Err("-b @ has no file name: write -b @FILE".to_owned()),
            Some(file) => body_file(file),
            None => Ok(text.as_bytes().to_vec()),
        },
    }
}

/// Reads at most [`BODY`] bytes: a device or a pipe may have no end.
fn body_file(file: &str) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(BODY + 1).read_to_end(&mut body))
        .map_err(|error| format!("{file} cannot be read: {error}"))?;
    if body.len() as u64 > BODY {
        return Err(format!("{file} is larger than {} MB, the largest body that can be sent", BODY >> 20));
    }
    Ok(body)
}

/// `-` is standard input.
fn opened(file: &Path) -> io::Result<Box<dyn BufRead>> {
    if file == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(file)?)))
}

/// Warns of what looks like a template but has no data file.
fn tell_unfilled(flags: &Load, body: &[u8]) {
    let texts = flags.urls.iter().chain(flags.header.iter().map(|(_, value)| value)).map(String::as_str);
    let double = texts.chain(str::from_utf8(body)).find_map(|text| rows::name_in(text, ("{{", "}}")));
    // No URL has a brace of its own (RFC 3986 section 2); fields and bodies have, such as those of JSON.
    let single = || flags.urls.iter().find_map(|url| rows::name_in(url, ("{", "}")));
    if let Some(name) = double {
        end::tell(&format!("{name} is sent literally: only --data-file replaces it"));
    } else if let Some(name) = single() {
        end::tell(&format!("{name} is sent literally: use {{{name}}} and --data-file to replace it"));
    }
}

fn with_rows(flags: &Load, file: &Path) -> Result<Asked, String> {
    let name = file.display().to_string();
    let is_json = file.extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson");
    let format = if is_json { RowsFormat::JsonLines } else { RowsFormat::Csv };
    let opened = opened(file).map_err(|error| format!("{name} cannot be read: {error}"))?;
    let rows = Rows::read(&name, format, opened)?;
    let template = |what: &str, text: &str| Template::parse(what, text, &rows);
    let urls = flags.urls.iter().map(|url| template("the URL", url)).collect::<Result<Vec<_>, _>>()?;
    let fields = flags.header.iter().map(|(name, value)| {
        template(&format!("the field {name}"), value).map(|value| (name.clone(), value))
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let body =
        String::from_utf8(body(flags)?).map_err(|_| "a body with {{name}} must be UTF-8".to_owned())?;
    let body = template("the body", &body)?;
    if !urls.iter().chain(fields.iter().map(|(_, value)| value)).chain([&body]).any(Template::has_names) {
        end::tell(&format!(
            "no URL, field or body contains a column of {name}, as in {{{{name}}}}: each row produces the same request"
        ));
    }
    let method = method(flags)?;
    let (mut asks, mut size) = (Vec::new(), 0);
    for row in rows.all() {
        for url in &urls {
            let ask = Ask {
                fields: fields.iter().map(|(name, value)| (name.clone(), value.text(row))).collect(),
                body: body.text(row).into_bytes(),
                ..ask(flags, url.url(row), method.clone())
            };
            size += ask.url.len() + ask.body.len();
            // Before more of them are held.
            if size as u64 > BODY {
                return Err(format!(
                    "the requests from {name} exceed {} MB in total, the maximum",
                    BODY >> 20
                ));
            }
            asks.push(ask);
        }
    }
    let order = if flags.data_order == DataOrder::Random { shuffled(asks.len()) } else { Vec::new() };
    Ok((asks, order, None))
}

/// A permutation that looks random and is always the same.
fn shuffled(count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    Rng::with_seed(count as u64).shuffle(&mut order);
    order
}

/// Requests, their order, and when each starts.
type Asked = (Vec<Ask>, Vec<u32>, Option<Vec<u64>>);

fn replayed(flags: &Load, file: &Path) -> Result<Asked, String> {
    let [base] = flags.urls.as_slice() else {
        return Err("a log is replayed against one server: specify one URL with --log".to_owned());
    };
    if flags.body.is_some() || !method(flags)?.is_empty() {
        return Err("a log has its own methods and no bodies: omit -m and -b with --log".to_owned());
    }
    let url = Url::parse(base).map_err(|why| format!("\"{base}\" cannot be loaded: {why}"))?;
    let scheme = if url.is_https { "https" } else { "http" };
    if url.target != "/" {
        return Err(format!("a log has its own paths: specify {scheme}://{} without a path", url.authority));
    }
    let name = if file == "-" { "standard input".to_owned() } else { file.display().to_string() };
    let replay = opened(file)
        .and_then(|log| {
            replay::read(log, Wanted { times: flags.speed.is_some(), clients: flags.log_clients })
        })
        .map_err(|error| format!("{name} cannot be read: {error}"))?;
    let moments = flags.speed.map(|speed| replay.moments(speed));
    if replay.order.is_empty() {
        let timed = if moments.is_some() { " with its time in [brackets]" } else { "" };
        return Err(format!("{name} has no GET or HEAD request{timed} to replay"));
    }
    let skipped = replay.skipped.iter().map(|(why, count)| format!("{count} {}", why.words()));
    let skipped = skipped.collect::<Vec<_>>().join(", ");
    let lines = plural(replay.skipped.values().sum(), "line");
    let skipping = if skipped.is_empty() { String::new() } else { format!("; skipping {lines}: {skipped}") };
    end::tell(&format!(
        "replaying {} of the log, {} of them distinct{skipping}",
        plural(replay.order.len() as u64, "request"),
        replay.requests.len(),
    ));
    if replay.is_cut {
        end::tell(&format!("only the first {} of the log are used", plural(replay::LINES, "line")));
    }
    let failing = replay.requests.iter().filter(|(_, statuses)| !statuses.is_empty()).count();
    if failing > 0 && flags.status.is_empty() {
        end::tell(&format!(
            "{failing} of the distinct requests failed in the log too (4xx): the same status is not an error here"
        ));
    }
    let asks = replay
        .requests
        .into_iter()
        .map(|(Request { method, target, client }, also)| {
            let url = format!("{scheme}://{}{target}", url.authority);
            let mut ask = Ask { also: also.into_iter().collect(), ..ask(flags, url, method.to_owned()) };
            ask.fields.extend(client.map(|client| ("X-Forwarded-For".to_owned(), client.to_string())));
            ask
        })
        .collect();
    Ok((asks, replay.order, moments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        load: Load,
    }

    fn planned(line: &str) -> Result<Plan, String> {
        let words = ["bench"].into_iter().chain(line.split(' ')).chain(["http://127.0.0.1:1/"]);
        plan(&Line::try_parse_from(words).expect("it is a command line").load)
    }

    #[test]
    fn a_number_of_requests_has_no_warm_up_but_the_one_that_is_asked_for() {
        for (line, milliseconds) in [
            ("-d 5s", 500),
            ("-d 60s", 1_000),
            ("-n 3", 0),
            ("-n 3 -d 5s", 0),
            ("-n 3 --warm-up 40ms", 40),
            ("--stages 1s:5", 0),
        ] {
            let warm_up = planned(line).map(|plan| plan.warm_up);
            assert_eq!(warm_up, Ok(Duration::from_millis(milliseconds)), "{line}");
        }
    }

    #[test]
    fn a_log_is_asked_for_so_many_times_as_fast_as_it_was_written() {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let line = |second: u32, path: &str| {
            format!("::1 - - [21/Nov/2026:10:00:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 2\n")
        };
        std::fs::write(log.path(), line(0, "/a") + &line(4, "/b") + &line(20, "/a")).expect("written");
        for (speed, moments) in [
            ("1", [0, 4_000_000_000, 20_000_000_000]),
            ("10", [0, 400_000_000, 2_000_000_000]),
            ("0.5", [0, 8_000_000_000, 40_000_000_000]),
        ] {
            let plan =
                planned(&format!("--speed {speed} --log {}", log.path().display())).expect("it is a log");
            let Some(Schedule::Log { moments: found, speed: told }) = &plan.schedule else {
                panic!("{:?}", plan.schedule)
            };
            assert_eq!((&found[..], told.to_string().as_str()), (&moments[..], speed));
            // To the end of the log, and to the last answer.
            assert_eq!(
                (plan.order.as_slice(), plan.requests, plan.duration),
                (&[0, 1, 0][..], Some(3), None)
            );
            let mean = 3e9 / (moments[2] + 1) as f64;
            let is_mean = matches!(plan.mode, Mode::Open { rate, .. } if (rate - mean).abs() < 1e-9);
            assert!(is_mean, "{speed}: {:?}", plan.mode);
        }
    }

    #[test]
    fn a_connection_without_a_stream_is_refused_by_the_name_of_its_flag() {
        let why = planned("--http2 -m 0").map(|plan| plan.pipeline).expect_err("no stream");
        assert_eq!(why, "-m 0: write a number of at least 1");
        assert_eq!(planned("--http2 -m 7").map(|plan| plan.pipeline), Ok(7));
    }

    #[test]
    fn a_random_order_has_each_row_once() {
        let order = shuffled(1_000);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(!order.is_sorted() && sorted == (0..1_000).collect::<Vec<u32>>());
        assert_eq!(order, shuffled(1_000));
    }

    #[test]
    fn stages_in_which_nothing_is_due_are_told_as_stages() {
        let why = planned("--stages 0s:0").map(|plan| plan.warm_up).expect_err("nothing is due");
        assert!(why.starts_with("no request would ever be sent: no stage of --stages has"), "{why}");
    }
}
