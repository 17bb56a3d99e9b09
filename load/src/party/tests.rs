//! Parties as they are in /proc: real children, real sockets, and the tables' text where the kernel's own cannot be made.

use super::account::Account;
use super::*;
use crate::machine::{Cores, opened};
use procfs::{FromBufReadSI, KernelStats};
use std::hint::black_box;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn shell(script: &str) -> Process {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    Process::start("a shell", command, Place::new().unwrap()).unwrap()
}

fn is_running(id: u32) -> bool {
    process_table::stat(id).is_some_and(|stat| stat.state != 'Z')
}

/// Reads on until what a party printed has as many words.
fn words(party: &mut Process, count: usize) -> Vec<String> {
    let began = clock::now();
    loop {
        let said: Vec<String> = party.said().split(' ').map(str::to_owned).collect();
        if said.len() >= count && !said[0].is_empty() {
            return said;
        }
        assert!(clock::now().duration_since(began) < Duration::from_secs(20), "it says only {said:?}");
        assert_eq!(party.wait_for_end(Duration::from_millis(5), None), Woken::Late, "it ended: {said:?}");
    }
}

#[test]
fn a_dropped_party_is_gone_with_the_children_it_left() {
    let mut party = shell("sleep 1000 & echo $! ; wait");
    let child: u32 = words(&mut party, 1)[0].parse().unwrap();
    let (id, directory) = (party.id(), party.place().path());
    assert!(is_running(id) && is_running(child) && directory.is_dir());
    drop(party);
    assert!(!is_running(id), "the shell");
    let began = clock::now();
    while is_running(child) {
        assert!(clock::now().duration_since(began) < Duration::from_secs(5), "its child");
        std::thread::yield_now();
    }
    assert!(!directory.exists());
}

#[test]
fn what_is_left_of_a_group_ends_where_its_first_process_ended_by_itself() {
    let mut party = shell("sleep 1000 & echo $!");
    let began = clock::now();
    while party.ended().is_none() {
        assert!(clock::now().duration_since(began) < Duration::from_secs(20), "{}", party.said());
        party.wait_for_end(Duration::from_millis(5), None);
    }
    let child: u32 = party.said().parse().unwrap();
    while is_running(child) {
        assert!(clock::now().duration_since(began) < Duration::from_secs(20), "its child");
        std::thread::yield_now();
    }
}

#[test]
fn who_insists_need_not_wait_for_a_party_that_will_not_end() {
    let stop = Stop::new().unwrap();
    let mut party = shell("trap '' TERM; echo ready; while :; do sleep 1; done").heeding(&stop);
    words(&mut party, 1);
    stop.ask();
    let silent = party.wait_for(free_address().unwrap(), Duration::from_secs(3600));
    assert!(matches!(silent, Err(Unmeasured::Stopped(_))), "{silent:?}");
    stop.press();
    let (began, id) = (clock::now(), party.id());
    drop(party);
    assert!(!is_running(id));
    assert!(clock::now().duration_since(began) < END, "it was made to end at once");
}

#[test]
fn a_directory_is_closed_to_others_and_its_own_floor_open() {
    let place = Place::new().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let upper = place.path().parent().unwrap().to_owned();
    assert_eq!(mode(&upper) & 0o067, 0, "{:o}", mode(&upper));
    assert_eq!(mode(&place.path()), 0o755);
    assert_eq!(mode(&place.write("key.pem", "secret").unwrap()), 0o600);
    drop(place);
    assert!(!upper.exists());
}

#[test]
fn what_a_killed_owner_left_is_cleared_away_and_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let alive = Place::within(parent.path()).unwrap();
    let dead = parent.path().join("millstream-measure-dead");
    let mut closed = std::fs::DirBuilder::new();
    closed.mode(0o700);
    for name in ["millstream-measure-dead", "millstream-measure-unproven", "millstream-measure-open", "other"]
    {
        closed.create(parent.path().join(name)).unwrap();
    }
    for name in ["millstream-measure-dead/owner", "millstream-measure-open/owner", "other/owner"] {
        std::fs::write(parent.path().join(name), "").unwrap();
    }
    // Who could enter could have put the file there.
    let open = parent.path().join("millstream-measure-open");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::create_dir(dead.join("in")).unwrap();
    std::fs::write(dead.join("in/secret"), "").unwrap();
    std::os::unix::fs::symlink(parent.path().join("other"), parent.path().join("millstream-measure-link"))
        .unwrap();
    assert_eq!(place::clear_away_in(parent.path()), 1);
    assert!(!dead.exists() && alive.path().is_dir() && open.is_dir());
    assert!(parent.path().join("other/owner").is_file());
    assert!(parent.path().join("millstream-measure-unproven").is_dir());
    assert_eq!(place::clear_away_in(parent.path()), 0);
}

#[test]
fn a_party_that_ends_at_once_is_told_with_what_it_said() {
    let mut party = shell("echo 'no such directive' >&2; exit 3");
    let error = party.wait_for(free_address().unwrap(), Duration::from_secs(20)).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("a shell exited before it responded ("), "{text}");
    assert!(text.contains("exit status: 3") && text.contains("no such directive"), "{text}");
}

#[test]
fn a_program_that_is_not_there_cannot_be_started() {
    let error =
        Process::start("varnish", Command::new("/nowhere/varnishd"), Place::new().unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("varnish cannot be started: "), "{error}");
}

#[test]
fn somebody_else_on_the_port_is_noticed() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut party = shell("sleep 1000");
    let error = party.wait_for(other.local_addr().unwrap(), Duration::from_secs(20)).unwrap_err().to_string();
    assert!(error.starts_with("a shell should listen on ") && error.ends_with(" listens there"), "{error}");
}

#[test]
fn silence_has_a_bound() {
    let mut party = shell("sleep 1000");
    let error = party.wait_for(free_address().unwrap(), Duration::from_millis(20)).unwrap_err();
    assert!(error.to_string().starts_with("a shell did not respond on "), "{error}");
}

#[test]
fn the_process_behind_an_address_is_found_by_name_and_on_all_addresses() {
    for bind in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
        let Ok(socket) = TcpListener::bind(bind) else { continue };
        let mut address = socket.local_addr().unwrap();
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let found = listener(address).expect("its own socket is seen");
        assert_eq!(
            (found.id, found.processes.as_slice()),
            (std::process::id(), [std::process::id()].as_slice())
        );
        drop(socket);
        assert_eq!(listener(address), None);
    }
}

#[test]
fn a_busy_thread_wants_its_core_all_the_time_and_an_idle_party_nothing() {
    let idle = shell("sleep 1000");
    let mut meter = Meter::new(vec![
        ("busy", Whose::Threads(std::process::id(), "burning".into())),
        ("idle", Whose::Tree(idle.id())),
    ]);
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("burning".into());
        let burning = || {
            while !enough.load(Ordering::Relaxed) {
                black_box(&enough);
            }
        };
        thread.spawn_scoped(scope, burning).unwrap();
        // The kernel counts a wait for a core when it is over, which takes its time on a crowded machine.
        for _ in 0..1500 {
            if meter.found().of("busy").is_some_and(|busy| busy.wanted > 0.8) {
                break;
            }
            meter.look();
            std::thread::park_timeout(Duration::from_millis(20));
        }
        enough.store(true, Ordering::Relaxed);
    });
    let found = meter.found();
    let (busy, idle) = (found.of("busy").unwrap(), found.of("idle").unwrap());
    assert!(busy.wanted > 0.8 && busy.cpu_seconds > 0.0, "{busy:?}");
    assert!(busy.busiest <= busy.wanted && busy.wanted <= 1.0, "{busy:?}");
    assert!(idle.wanted < 0.2, "{idle:?}");
    assert!(found.machine_busy > 0.0 && found.machine_busy <= 1.0);
    assert_eq!(found.of("nobody"), None);
}

#[test]
fn what_an_ended_child_used_stays_in_its_parents_account() {
    let party = shell("(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); echo done; sleep 1000");
    let before = Account::read(&Whose::Tree(party.id()));
    let began = clock::now();
    while !party.said().contains("done") {
        assert!(clock::now().duration_since(began) < Duration::from_secs(30), "{}", party.said());
        party.wait_for_end(Duration::from_millis(5), None);
    }
    let spent = Account::read(&Whose::Tree(party.id())).since(&before);
    assert!(spent.cpu_seconds > 0.02, "{spent:?}");
}

#[test]
fn a_connection_that_this_side_closes_first_is_left_in_time_wait() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    assert_eq!(time_wait_of_late(&[address], 60.0), 0);
    let client = TcpStream::connect(address).unwrap();
    let (mut there, _) = server.accept().unwrap();
    drop(client);
    // The client's end has come; closing after it completes the exchange.
    assert_eq!(there.read(&mut [0; 1]).unwrap(), 0);
    drop(there);
    assert_eq!(time_wait_of_late(&[address], 60.0), 1);
}

#[test]
fn the_machine_is_busy_where_it_neither_idles_nor_waits_for_a_disk() {
    let at = |line: &str| {
        let text = format!("cpu  {line}\nctxt 1\nbtime 1\nprocesses 1\n");
        let stats = KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).unwrap();
        Cores::of(&stats)
    };
    let (before, after) = (at("10 0 10 70 10 0 0 0 0 0"), at("40 0 30 95 20 5 5 5 7 0"));
    let (busy, stolen) = after.since(before);
    assert!((busy - 0.65).abs() < 1e-9, "guests are users already");
    assert!((stolen - 0.05).abs() < 1e-9);
    assert_eq!(before.since(after), (0.0, 0.0));
    assert!(Cores::read().since(Cores::default()).0 > 0.0, "this kernel tells");
    assert!(opened() > 0, "connections were begun here, by the tests alone");
}

#[test]
fn servers_as_one_party_use_what_all_use_and_want_what_the_keenest_wants() {
    let one = Spent { cpu_seconds: 0.5, busiest: 0.5, wanted: 0.6, wanted_cores: 0.6, ..Spent::default() };
    let one = Spent { seconds: 1.0, held_back: Some(0.1), ..one };
    let both = one.with(Spent { wanted: 0.9, held_back: None, ..one });
    assert_eq!((both.cpu_seconds, both.wanted, both.wanted_cores), (1.0, 0.9, 1.2));
    assert_eq!((both.held_back, both.may_use), (Some(0.1), None));
}
