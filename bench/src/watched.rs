//! `cargo xtask bench watched`: what a hit costs more where everything is counted and five people look at the dashboard.
//!
//! Three servers on one file (`api-5`), in turns: Millstream that counts by no zone and has no dashboard, Millstream with both
//! zones and a dashboard that five viewers follow, and nginx. The viewers' own work is not in the figures, what they make the
//! server do is.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

use millstream_load::rank::median;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::cpu_time;
use millstream_tests::{ports, workspace};

use crate::peers::{self, Started};
use crate::product::Product;
use crate::{Options, Programs, wrk};

const FILE: &str = "tests/seed-configs/api-5-buffered-log.conf";
const TARGET: &str = "/api?size=900&age=86400";
const VIEWERS: usize = 5;
/// The bars relative to Millstream alone, and to nginx.
const BESIDE_ALONE: f64 = 1.03;
const BESIDE_NGINX: f64 = 0.45;

const NAMES: [&str; 3] = ["Millstream alone", "Millstream watched", "nginx"];

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let origin = peers::origin(programs)?;
    let ours = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let nginx = programs.nginx.as_deref().ok_or("no nginx: --nginx PATH")?;
    let files = Prefix::new();
    let file = std::fs::read_to_string(workspace().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let dashboard = ports::free();
    let changed = |name: &str, place: &str, directives: &str| {
        let path = files.write(name, file.replacen(place, &format!("{place} {directives}"), 1));
        path.to_str().unwrap_or_default().to_owned()
    };
    let alone = changed("alone.conf", "location / {", "status_zone off;");
    let watched = changed("watched.conf", "http {", &format!("dashboard 127.0.0.1:{dashboard};"));
    let servers = [
        peers::on_nginx_file(Product::Millstream, ours, &alone, origin.port)?,
        peers::on_nginx_file(Product::Millstream, ours, &watched, origin.port)?,
        peers::on_nginx_file(Product::Nginx, nginx, FILE, origin.port)?,
    ];
    let viewers: Vec<Viewer> = (0..VIEWERS).map(|_| Viewer::start(dashboard)).collect::<Result<_, _>>()?;
    let mut costs: [Vec<f64>; 3] = Default::default();
    for round in 0..=options.rounds {
        for (server, costs) in servers.iter().zip(&mut costs) {
            let cost = turn(server, options, if round == 0 { 1 } else { options.duration })?;
            // Round 0 fills the caches.
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    let seen: Vec<u64> = viewers.into_iter().map(Viewer::leave).collect();
    if seen.contains(&0) {
        return Err("a viewer saw nothing".to_owned());
    }
    let [alone, watched, nginx] = costs.map(median);
    let (more, beside) = (watched / alone, watched / nginx);
    let holds = more <= BESIDE_ALONE && beside <= BESIDE_NGINX;
    let mut text = format!(
        "### A hit of 900 B, with {VIEWERS} viewers of the dashboard and without\n\n`cargo xtask bench watched --rounds {} --duration \
         {}`: median CPU of the server's processes, the viewers read {} KB.\n\n| server | CPU µs a request |\n| --- | ---: |\n",
        options.rounds,
        options.duration,
        seen.iter().sum::<u64>() / 1000,
    );
    for (name, cost) in NAMES.into_iter().zip([alone, watched, nginx]) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {name} | {cost:.2} |");
    }
    let _ = writeln!(
        text,
        "\n{}: watched {more:.3} of alone (at most {BESIDE_ALONE}), {beside:.2} of nginx (at most {BESIDE_NGINX})",
        if holds { "pass" } else { "**FAIL**" }
    );
    if holds { Ok(text) } else { Err(text) }
}

fn turn(server: &Started, options: &Options, seconds: u32) -> Result<f64, String> {
    let before = cpu_time(server.id());
    let url = format!("http://127.0.0.1:{}{TARGET}", server.port);
    let run = wrk::run(&url, &[], options.connections, seconds)?;
    if run.errors > 0 {
        return Err(format!("{}: {} errors\n{}", server.product.name(), run.errors, server.log()));
    }
    Ok((cpu_time(server.id()) - before).as_micros() as f64 / run.requests.max(1) as f64)
}

/// Keeps the page open and reads its events until told to leave.
struct Viewer {
    stream: TcpStream,
    reading: JoinHandle<u64>,
}

impl Viewer {
    fn start(port: u16) -> Result<Viewer, String> {
        let failed = |error: std::io::Error| format!("the dashboard: {error}");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
        let request =
            format!("GET /live HTTP/1.1\r\nHost: localhost:{port}\r\nAccept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut reader = stream.try_clone().map_err(failed)?;
        let reading = std::thread::spawn(move || {
            let (mut seen, mut bytes) = (0, [0; 16 * 1024]);
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                seen += count as u64;
            }
            seen
        });
        Ok(Viewer { stream, reading })
    }

    fn leave(self) -> u64 {
        // One that is gone already has left.
        _ = self.stream.shutdown(Shutdown::Both);
        self.reading.join().unwrap_or_default()
    }
}
