//! What stands before the API: `serve` with its options, and each file of `examples/` on addresses of its own.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{binary, command};
use millstream_tests::{ports, wait, workspace};

/// A running one.
pub struct Front {
    pub port: u16,
    prefix: Prefix,
    _process: Running,
}

impl Front {
    /// `serve` in front of a port.
    pub fn serve(api: u16, options: &[&str]) -> Front {
        let (port, prefix) = (ports::free(), Prefix::new());
        let mut command = Command::new(binary());
        command.args(["serve", &format!("http://127.0.0.1:{api}"), "--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--memory", "64m", "--dashboard", "off"]).args(options).stdin(Stdio::null());
        Front::start(command, port, prefix)
    }

    /// A file of `examples/`, whose addresses become free ones and whose upstreams become this port.
    pub fn example(file: &Path, api: u16) -> Front {
        let (port, prefix) = (ports::free(), Prefix::new());
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut next = Some(port);
        let lines = text.lines().map(|line| line_of_example(line, api, &mut next)).collect::<Vec<_>>();
        let file = prefix.write("millstream.conf", &lines.join("\n"));
        let mut command = command(prefix.path(), &file);
        command.args(["-g", "daemon off;"]);
        Front::start(command, port, prefix)
    }

    fn start(mut command: Command, port: u16, prefix: Prefix) -> Front {
        let output = File::create(prefix.join("output")).expect("own directory is writable");
        command.stdout(output.try_clone().expect("an open file")).stderr(output);
        let process = Running::start(&mut command).expect("the binary runs");
        let mut front = Front { port, prefix, _process: process };
        wait::until("it accepts connections", || {
            let ended = front._process.ended();
            assert!(ended.is_none(), "{ended:?}: {}", front.log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        front
    }

    /// What it said.
    pub fn log(&self) -> String {
        self.prefix.read("output") + &self.prefix.read("error.log")
    }
}

/// The first `listen` is the one that is asked.
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

/// Every configuration in `examples/`.
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
