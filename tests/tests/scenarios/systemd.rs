//! A service manager as systemd: what it hears of a process, and the sockets that it opens for it.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::client;
use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::process::Running;
use millstream_tests::server::{binary, command};
use millstream_tests::{ports, wait};
use rustix::process::Signal;

const SITE: &str = site! {
    main "worker_processes 2; daemon off;" events "worker_connections 100;"
    server "return 200 \"here\\n\";"
};

struct Manager {
    prefix: Prefix,
    port: u16,
    socket: UnixDatagram,
}

impl Manager {
    fn new(port: u16) -> Manager {
        let prefix = Prefix::new();
        let values = [("DIR", &*prefix.path().to_string_lossy()), ("PORT", &port.to_string())];
        prefix.write("nginx.conf", fill(SITE, &values));
        let socket = UnixDatagram::bind(prefix.join("notify")).expect("own directory is writable");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        Manager { prefix, port, socket }
    }

    fn start(&self, environment: &[(&str, &str)]) -> Running {
        let mut command = command(self.prefix.path(), &self.prefix.join("nginx.conf"));
        command.env("NOTIFY_SOCKET", self.prefix.join("notify")).envs(environment.iter().copied());
        Running::start(&mut command).expect("the binary can be run")
    }

    fn hears(&self) -> String {
        let mut message = [0; 1000];
        let count = self.socket.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..count]).into_owned()
    }

    fn serves(&self) -> bool {
        client::get(self.port, "/").text() == "here\n"
    }
}

#[test]
fn it_hears_when_the_process_serves_reloads_and_stops() {
    skip_on_nginx!("it says nothing");
    let manager = Manager::new(ports::free());
    let mut process = manager.start(&[]);
    let serves = format!("MAINPID={}\nREADY=1\n", process.id());
    assert_eq!(manager.hears(), serves);
    assert!(manager.serves(), "at once");
    process.signal(Signal::HUP);
    let reloads = manager.hears();
    let moment = reloads.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&reloads).trim_end();
    assert!(moment.parse::<u64>().is_ok_and(|moment| moment > 0), "{reloads}");
    assert_eq!(manager.hears(), serves);
    manager.prefix.write("nginx.conf", "events {");
    process.signal(Signal::HUP);
    assert!(manager.hears().starts_with("RELOADING=1\n"));
    assert_eq!(manager.hears(), serves, "a reload that failed has ended too");
    process.signal(Signal::QUIT);
    assert_eq!(manager.hears(), "STOPPING=1\n");
    assert!(process.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
}

#[test]
fn after_an_upgrade_the_next_process_is_the_main_one_and_the_old_one_leaves_without_a_word() {
    skip_on_nginx!();
    let manager = Manager::new(ports::free());
    let mut process = manager.start(&[]);
    manager.hears();
    process.signal(Signal::USR2);
    let next = manager.hears();
    assert!(next.starts_with("MAINPID=") && next.ends_with("\nREADY=1\n"), "{next}");
    let id = next.trim_start_matches("MAINPID=").lines().next().and_then(|id| id.parse::<u32>().ok());
    let id = id.expect("a process id");
    assert_ne!(id, process.id());
    process.signal(Signal::QUIT);
    assert!(process.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
    assert!(manager.serves());
    millstream_tests::process::send(id, Signal::TERM);
    assert_eq!(manager.hears(), "STOPPING=1\n", "that of the process which nobody follows");
}

#[test]
fn it_hears_that_the_process_lives_for_as_long_as_it_asks() {
    skip_on_nginx!();
    let manager = Manager::new(ports::free());
    let process = manager.start(&[("WATCHDOG_USEC", "100000")]);
    let heard: Vec<String> = (0..4).map(|_| manager.hears()).collect();
    assert!(heard.iter().filter(|message| *message == "WATCHDOG=1\n").count() >= 3, "{heard:?}");
    drop(process);
}

#[test]
fn a_socket_that_it_opened_is_listened_on_and_stays_its_own() {
    skip_on_nginx!();
    let opened = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let manager = Manager::new(opened.local_addr().expect("an address").port());
    let mut refused = manager.start(&[]);
    assert!(
        refused.wait(Duration::from_secs(20)).is_some_and(|status| !status.success()),
        "nobody said that the socket is for it"
    );
    let handed: OwnedFd = opened.try_clone().expect("a descriptor").into();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"", "sh"]);
    shell.arg(binary()).arg("-c").arg(manager.prefix.join("nginx.conf")).arg("-p").arg(manager.prefix.path());
    shell.env("NOTIFY_SOCKET", manager.prefix.join("notify")).stdin(Stdio::from(handed));
    let mut process = Running::start(&mut shell).expect("a shell");
    assert_eq!(manager.hears(), format!("MAINPID={}\nREADY=1\n", process.id()));
    assert!(manager.serves());
    process.signal(Signal::QUIT);
    assert!(process.wait(Duration::from_secs(20)).is_some_and(|status| status.success()));
    wait::until("the manager still has it", || {
        std::net::TcpStream::connect(("127.0.0.1", manager.port)).is_ok()
    });
}
