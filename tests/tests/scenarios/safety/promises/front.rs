//! What stands before the API, and how clients come to it: `serve` with its options, behind a proxy and with certificates, and each file
//! of `examples/` on addresses of its own.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{binary, command};
use millstream_tests::{ports, wait, workspace};

use super::resource::By;

/// The address of the trusted proxy, and of clients that bypass it.
pub const PROXY: &str = "127.0.0.1";
pub const PAST_PROXY: &str = "127.0.0.9";

#[derive(Debug, Clone, Copy)]
pub enum Way {
    Direct(u16),
    /// Through a trusted proxy that forwards client data, or past it.
    Proxied(u16),
    /// Over TLS: without a certificate, or with that of either side.
    Certified([u16; 3]),
}

pub struct Front {
    pub way: Way,
    prefix: Prefix,
    _process: Running,
}

impl Front {
    pub fn serve(api: u16, options: &[&str]) -> Front {
        let (port, prefix) = (ports::free(), Prefix::new());
        let mut command = serve(api, port);
        command.args(options);
        Front::start(command, port, Way::Direct(port), prefix)
    }

    pub fn behind_proxy(api: u16, options: &[&str]) -> Front {
        let (port, prefix) = (ports::free(), Prefix::new());
        let mut command = serve(api, port);
        command.args(["--trust-proxy", PROXY]).args(options);
        Front::start(command, port, Way::Proxied(port), prefix)
    }

    /// What `serve` runs, over TLS, for clients with certificates. They come through servers that present
    /// these.
    pub fn with_certificates(api: u16, options: &[&str]) -> Front {
        let (port, prefix) = (ports::free(), Prefix::with_certificate("api.example"));
        let printed = serve(api, port).args(options).arg("--print-config").output().expect("the binary runs");
        let text = String::from_utf8(printed.stdout).expect("text");
        let tls = "ssl; ssl_certificate server.pem; ssl_certificate_key server.key; ssl_verify_client optional_no_ca;";
        let listen = format!("listen 127.0.0.1:{port}");
        let text = text.replace(&format!("{listen};"), &format!("{listen} {tls}"));
        let told = format!("location / {{\n proxy_set_header {} $ssl_client_s_dn;", By::Certificate.field());
        let text = text.replace("location / {", &told);
        let ways = [ports::free(), ports::free(), ports::free()];
        let show = |name: &str| {
            let own = Prefix::with_certificate(&format!("{name}.example"));
            for (to, from) in [("pem", "server.pem"), ("key", "server.key")] {
                prefix.write(&format!("{name}.{to}"), own.read(from));
            }
            format!("proxy_ssl_certificate {name}.pem; proxy_ssl_certificate_key {name}.key;")
        };
        let shown = [String::new(), show("alice"), show("bob")];
        let servers = ways.iter().zip(shown).map(|(way, shown)| {
            format!(
                "server {{ listen 127.0.0.1:{way}; gzip off; proxy_buffering off; {shown} location / {{
                    proxy_pass https://127.0.0.1:{port}; proxy_bind $remote_addr; proxy_set_header Host $http_host; }} }}\n"
            )
        });
        let whole = text.trim_end().trim_end_matches('}').to_owned() + &servers.collect::<String>() + "}\n";
        let file = prefix.write("millstream.conf", &whole);
        let command = command(prefix.path(), &file);
        Front::start(command, ways[2], Way::Certified(ways), prefix)
    }

    /// A file of `examples/` with free addresses and this port as its upstreams.
    pub fn example(file: &Path, api: u16) -> Front {
        let (port, prefix) = (ports::free(), Prefix::new());
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut next = Some(port);
        let lines = text.lines().map(|line| line_of_example(line, api, &mut next)).collect::<Vec<_>>();
        let file = prefix.write("millstream.conf", lines.join("\n"));
        let mut command = command(prefix.path(), &file);
        command.args(["-g", "daemon off;"]);
        Front::start(command, port, Way::Direct(port), prefix)
    }

    fn start(mut command: Command, port: u16, way: Way, prefix: Prefix) -> Front {
        let output = File::create(prefix.join("output")).expect("own directory is writable");
        command.stdout(output.try_clone().expect("an open file")).stderr(output);
        let process = Running::start(&mut command).expect("the binary runs");
        let mut front = Front { way, prefix, _process: process };
        wait::until("it accepts connections", || {
            let ended = front._process.ended();
            assert!(ended.is_none(), "{ended:?}: {}", front.log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        front
    }

    pub fn log(&self) -> String {
        self.prefix.read("output") + &self.prefix.read("error.log")
    }
}

fn serve(api: u16, port: u16) -> Command {
    let mut command = Command::new(binary());
    command.args(["serve", &format!("http://127.0.0.1:{api}"), "--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--memory", "64m", "--dashboard", "off"]).stdin(Stdio::null());
    command
}

/// The first `listen` is the one in use.
fn line_of_example(line: &str, api: u16, next: &mut Option<u16>) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["listen", _, rest @ ..] => {
            let port = next.take().unwrap_or_else(ports::free);
            format!(
                "listen 127.0.0.1:{port}{};",
                rest.iter().map(|word| format!(" {}", word.trim_end_matches(';'))).collect::<String>()
            )
        }
        ["upstream", _, "{", "server", _, rest @ ..] => {
            format!("{} {} {{ server 127.0.0.1:{api}; {}", words[0], words[1], rest.join(" "))
        }
        ["server", address, rest @ ..] if *address != "{" => {
            format!(
                "server 127.0.0.1:{api}{} {}",
                if address.ends_with(';') { ";" } else { "" },
                rest.join(" ")
            )
        }
        _ => line.to_owned(),
    }
}

pub fn varies_by_address(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().any(|line| line.contains("proxy_cache_vary") && line.contains(" address"))
}

pub fn examples() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![workspace().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("examples are there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "conf")
                && std::fs::read_to_string(&path).is_ok_and(|text| text.contains("proxy_cache_path"))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
