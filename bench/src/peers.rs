//! Starting each server under measurement on its own file, in its own directory.
//!
//! A server is one process tree that ends with its value. Nothing here measures.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::process::Running;
use millstream_tests::{ports, wait, workspace};

use crate::Programs;
use crate::cases::Case;
use crate::product::{Product, find};

pub(crate) struct Started {
    pub(crate) product: Product,
    pub(crate) port: u16,
    process: Running,
    prefix: Prefix,
}

impl Started {
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn log(&self) -> String {
        self.prefix.read("error.log") + &self.prefix.read("output")
    }

    /// Responses so far, if it is the origin.
    pub(crate) fn answered(&self) -> Result<u64, String> {
        let mut client = Client::connect(self.port).map_err(|error| format!("origin: {error}"))?;
        let answer = client.get("/__count").map_err(|error| format!("origin: {error}"))?;
        answer.text().parse().map_err(|_| "the origin's count is no number".to_owned())
    }
}

/// Two threads at most, to leave room for what is measured.
pub(crate) fn origin(programs: &Programs) -> Result<Started, String> {
    origin_on_threads(programs, 2)
}

pub(crate) fn origin_on_threads(programs: &Programs, threads: u32) -> Result<Started, String> {
    start(Product::Origin, &Prefix::new, |port, _| {
        let mut command = Command::new(&programs.origin);
        command.args([port.to_string(), threads.to_string()]);
        Ok(command)
    })
}

pub(crate) fn for_case(
    product: Product,
    case: &Case,
    origin_port: u16,
    programs: &Programs,
) -> Result<Started, String> {
    match product {
        Product::Origin => origin(programs),
        Product::Floor => start(product, &Prefix::new, |port, _| {
            let mut command = Command::new(&programs.floor);
            command.args([port.to_string(), case.size.to_string()]);
            Ok(command)
        }),
        Product::Millstream | Product::Nginx | Product::Varnish => {
            on_files(product, (case.nginx, case.varnish), origin_port, programs)
        }
        Product::Haproxy => start(product, &Prefix::new, |port, prefix| {
            let file = configure(prefix, case.haproxy, "haproxy.cfg", port, origin_port)?;
            let mut command = Command::new(find("haproxy").ok_or("no haproxy")?);
            command.arg("-db").arg("-f").arg(file);
            Ok(command)
        }),
    }
}

fn varnish(file: &str, origin_port: u16) -> Result<Started, String> {
    start(Product::Varnish, &Prefix::new, |port, prefix| {
        let file = configure(prefix, file, "default.vcl", port, origin_port)?;
        let mut command = Command::new(find("varnishd").ok_or("no varnishd")?);
        command.arg("-F").args(["-a", &format!("127.0.0.1:{port}"), "-T", "none", "-s", "malloc,256m"]);
        command.args(["-p", "gzip_level=2"]).arg("-f").arg(file).arg("-n").arg(prefix.join("varnish"));
        Ok(command)
    })
}

/// Millstream and nginx on the same file, Varnish on its own.
pub(crate) fn on_files(
    product: Product,
    (nginx, vcl): (&str, &str),
    origin_port: u16,
    programs: &Programs,
) -> Result<Started, String> {
    match product {
        Product::Varnish => varnish(vcl, origin_port),
        Product::Nginx => {
            let binary = programs.nginx.as_deref().ok_or("no nginx")?;
            on_nginx_file(product, binary, nginx, origin_port)
        }
        _ => {
            let binary = programs.millstream.as_deref().ok_or("Millstream was not built")?;
            on_nginx_file(Product::Millstream, binary, nginx, origin_port)
        }
    }
}

pub(crate) fn on_nginx_file(
    product: Product,
    binary: &Path,
    file: &str,
    origin_port: u16,
) -> Result<Started, String> {
    // The article's RAM cache is on tmpfs; the others do not mind.
    let shared_memory = Path::new("/dev/shm");
    let prefix = || if shared_memory.is_dir() { Prefix::within(shared_memory) } else { Prefix::new() };
    start(product, &prefix, |port, prefix| {
        let file = configure(prefix, file, "nginx.conf", port, origin_port)?;
        let mut command = Command::new(binary);
        command.arg("-c").arg(file).arg("-p").arg(prefix.path()).args(["-g", "daemon off;"]);
        Ok(command)
    })
}

pub(crate) fn on_site(
    product: Product,
    file: &str,
    site: &Path,
    programs: &Programs,
) -> Result<Started, String> {
    let binary = match product {
        Product::Millstream => programs.millstream.clone().ok_or("Millstream was not built")?,
        _ => programs.nginx.clone().ok_or("no nginx")?,
    };
    start(product, &Prefix::new, |port, prefix| {
        let path = workspace().join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = |path: &Path| path.to_str().unwrap_or_default().to_owned();
        let (own, site, port) = (folder(prefix.path()), folder(site), port.to_string());
        let text = fill(&text, &[("DIR", &own), ("SITE", &site), ("PORT", &port)]);
        let mut command = Command::new(binary);
        command.arg("-c").arg(prefix.write("nginx.conf", &text));
        command.arg("-p").arg(prefix.path()).args(["-g", "daemon off;"]);
        Ok(command)
    })
}

pub(crate) fn serving(binary: &Path, origin_port: u16, options: &[&str]) -> Result<Started, String> {
    start(Product::Millstream, &Prefix::new, |port, _| {
        let mut command = Command::new(binary);
        command.args(["serve", &format!("http://127.0.0.1:{origin_port}")]);
        command.args(["--listen", &format!("127.0.0.1:{port}")]).args(options);
        Ok(command)
    })
}

pub(crate) fn configure(
    prefix: &Prefix,
    template: &str,
    name: &str,
    port: u16,
    origin: u16,
) -> Result<PathBuf, String> {
    let path = workspace().join(template);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    // nginx without Plus does not know this word; it changes nothing that is measured.
    let text = text.replace("status_zone wordpress;", "");
    if text.contains("ssl_certificate ") {
        certify(prefix)?;
    }
    let (port, origin_port) = (port.to_string(), origin.to_string());
    let text = fill(
        &text,
        &[
            ("DIR", prefix.path().to_str().unwrap_or_default()),
            ("PORT", &port),
            ("ORIGIN", &format!("127.0.0.1:{origin_port}")),
            ("ORIGIN_HOST", "127.0.0.1"),
            ("ORIGIN_PORT", &origin_port),
            ("FILES", workspace().join("bench/files").to_str().unwrap_or_default()),
        ],
    );
    Ok(prefix.write(name, &text))
}

fn certify(prefix: &Prefix) -> Result<(), String> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let made = made.map_err(|error| format!("no certificate: {error}"))?;
    prefix.write("certificate.pem", made.cert.pem());
    prefix.write("key.pem", made.signing_key.serialize_pem());
    Ok(())
}

fn start(
    product: Product,
    prefix: &dyn Fn() -> Prefix,
    command: impl FnOnce(u16, &Prefix) -> Result<Command, String>,
) -> Result<Started, String> {
    let (port, prefix) = (ports::free(), prefix());
    let output = File::create(prefix.join("output")).map_err(|error| error.to_string())?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    let mut command = command(port, &prefix)?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let mut process = Running::start(&mut command).map_err(|error| format!("{command:?}: {error}"))?;
    let mut ended = false;
    let ready = wait::within(Duration::from_secs(30), || {
        ended = process.ended().is_some();
        (ended || TcpStream::connect(("127.0.0.1", port)).is_ok()).then_some(())
    });
    if ready.is_none() || ended {
        return Err(format!(
            "{} did not start: {}",
            product.name(),
            prefix.read("output") + &prefix.read("error.log")
        ));
    }
    Ok(Started { product, port, process, prefix })
}
