//! Started by root, a server serves as its user without any right: another process of that user, such as an application that was broken into, reaches
//! neither its memory nor what root may.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::prefix::Prefix;
use millstream_tests::process::{self, Running, is_alive, send, serving};
use millstream_tests::server::{Server, binary, is_nginx};
use millstream_tests::signed::SigningAuthority;
use millstream_tests::{client, ports, wait};
use rustix::process::Signal;

/// Used by no other process here.
const USER: u32 = 65_432;

const SITE: &str =
    "user 65432; worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/logs/error.log notice; events {}
    http {
        access_log @DIR@/logs/access.log;
        server { listen 127.0.0.1:@PORT@; location / { return 200 @TEXT@; } }
    }";

/// Only as root, with our own server. Skipped with a message otherwise.
fn is_possible() -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can start a server that becomes another user");
        return false;
    }
    !is_nginx()
}

/// The service's user may enter it; its folder for logs is root's.
fn prefix() -> Prefix {
    let prefix = Prefix::new();
    fs::set_permissions(prefix.path(), Permissions::from_mode(0o755)).expect("own directory");
    prefix
}

fn start() -> Server {
    Server::start_in(prefix(), SITE, &[("TEXT", "one")])
}

fn error_log(server: &Server) -> String {
    server.prefix().read("logs/error.log")
}

/// A line for each attack that a process of the service's user could make on these processes.
fn attack(ids: &[u32]) -> Option<String> {
    const SCRIPT: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
own = ctypes.create_string_buffer(8)
def done(what, result):
    if result >= 0: print("could", what)
for id in map(int, sys.argv[1:]):
    # The text of the program is at some address; where does not matter for the right to look.
    far = Vec(0x400000, 8)
    near = Vec(ctypes.cast(own, ctypes.c_void_p).value, 8)
    for call in ("process_vm_readv", "process_vm_writev"):
        result = getattr(libc, call)(id, ctypes.byref(near), 1, ctypes.byref(far), 1, 0)
        if result < 0 and ctypes.get_errno() == 14: result = 0
        done(call, result)
    done("PTRACE_SEIZE", libc.ptrace(0x4206, id, None, None))
    try: threads = os.listdir(f"/proc/{id}/task")
    except OSError: threads = []
    places = [f"/proc/{id}"] + [f"/proc/{id}/task/{thread}" for thread in threads]
    for place in places:
        for name, flags in (("mem", os.O_RDWR), ("mem", os.O_RDONLY), ("maps", os.O_RDONLY), ("environ", os.O_RDONLY)):
            try:
                file = os.open(f"{place}/{name}", flags)
                if name != "maps" or os.read(file, 1): print("could open", f"{place}/{name}", flags)
            except OSError: pass
        try: os.readlink(f"{place}/fd/0"); print("could see the files of", place)
        except OSError: pass
    print("tried", id, len(places))
"#;
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).args(ids.iter().map(u32::to_string)).current_dir("/");
    python.uid(USER).gid(USER).stdin(Stdio::null());
    let Some(output) = python.output().ok().filter(|output| output.status.success()) else {
        eprintln!("SKIPPED: there is no python3 that user {USER} may run");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn status(id: u32, thread: &str) -> String {
    fs::read_to_string(format!("/proc/{id}/task/{thread}/status")).unwrap_or_default()
}

/// No thread has a right or can get one. The bounding set stays if root did not start it, and is meaningless
/// then.
fn assert_powerless(id: u32, when: &str) {
    assert_has_none(id, &["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"], when);
}

fn assert_has_none(id: u32, sets: &[&str], when: &str) {
    let threads: Vec<String> = fs::read_dir(format!("/proc/{id}/task"))
        .expect("it runs")
        .flatten()
        .map(|thread| thread.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(threads.len() > 2, "{when}: {threads:?}");
    for thread in threads {
        let status = status(id, &thread);
        if status.is_empty() {
            // It has ended meanwhile.
            continue;
        }
        let none = "0000000000000000";
        for line in sets {
            assert!(status.contains(&format!("{line}:\t{none}\n")), "{when}, {line}: {status}");
        }
        assert!(status.contains("NoNewPrivs:\t1\n"), "{when}: {status}");
        for line in ["Uid", "Gid"] {
            assert!(
                status.contains(&format!("{line}:\t{USER}\t{USER}\t{USER}\t{USER}\n")),
                "{when}: {status}"
            );
        }
    }
    let owner = fs::metadata(format!("/proc/{id}/mem")).expect("it runs").uid();
    assert_eq!(owner, 0, "{when}: it is open to its user");
}

#[test]
fn no_thread_has_a_right_and_its_user_reaches_no_memory_after_start_reload_and_upgrade() {
    if !is_possible() {
        return;
    }
    let server = start();
    let old = server.id();
    // A process of the same user that is open shows that the attack works.
    let mut sleeping =
        Command::new("sleep").arg("1000").uid(USER).gid(USER).current_dir("/").spawn().expect("it runs");
    let open = attack(&[sleeping.id()]);
    _ = sleeping.kill();
    _ = sleeping.wait();
    let Some(open) = open else { return };
    for deed in ["could PTRACE_SEIZE", "could process_vm_readv", "/mem"] {
        assert!(open.contains(deed), "{deed}: {open}");
    }
    let assert_closed = |opener: u32, when: &str| {
        let ids = [serving(opener), opener];
        assert_ne!(ids[0], ids[1], "{when}");
        assert_powerless(ids[0], when);
        let told = attack(&ids).expect("it could be tried before");
        assert!(!told.contains("could") && told.matches("tried").count() == 2, "{when}: {told}");
    };
    assert_closed(old, "start");
    server.rewrite(SITE, &[("TEXT", "two")]);
    server.signal(Signal::HUP);
    wait::until("it is reloaded", || server.get("/").text() == "two");
    assert_closed(old, "reload");
    server.signal(Signal::USR2);
    wait::until("the next process is there", || ![0, old].contains(&server.current_id()));
    let new = server.current_id();
    assert_closed(new, "upgrade");
    send(old, Signal::QUIT);
    wait::until("the old process ends", || !is_alive(old));
    assert_eq!(server.get("/").text(), "two");
    assert_closed(new, "after the upgrade");
}

#[test]
fn a_server_that_may_have_low_ports_keeps_that_right_from_those_who_serve_and_listens_on_another_after_a_reload()
 {
    let is_low = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    if !is_possible() || Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let Some(low) = (600..1024).rev().find(is_low) else { return };
    let prefix = prefix();
    chown(prefix.path(), Some(USER), Some(USER)).expect("ours to give");
    fs::create_dir_all(prefix.join("logs")).expect("ours");
    chown(prefix.join("logs"), Some(USER), Some(USER)).expect("ours to give");
    let port = ports::free();
    let write = |listen: &str, text: &str| {
        let site = format!(
            "worker_processes 2; daemon off; pid {0}/nginx.pid; error_log {0}/logs/error.log notice; events {{}}
            http {{ access_log off; server {{ listen 127.0.0.1:{port}; {listen} location / {{ return 200 {text}; }} }} }}",
            prefix.path().display()
        );
        prefix.write("nginx.conf", site);
    };
    write("", "one");
    let own = USER.to_string();
    let right = "+net_bind_service";
    let mut with_right = Command::new("setpriv");
    with_right.args([
        "--reuid",
        &own,
        "--regid",
        &own,
        "--clear-groups",
        "--inh-caps",
        right,
        "--ambient-caps",
        right,
    ]);
    with_right.arg(binary()).arg("-p").arg(prefix.path()).arg("-c").arg(prefix.join("nginx.conf"));
    let running = Running::start(with_right.current_dir("/").stderr(Stdio::null())).expect("it starts");
    let text = |port: u16| {
        let got = client::Client::connect(port).and_then(|mut client| client.get("/"));
        got.map_or_else(|_| String::new(), |answer| answer.text())
    };
    wait::until("it serves", || text(port) == "one");
    let opener = running.id();
    let assert_kept = |when: &str| {
        let served = serving(opener);
        assert_ne!(served, opener, "{when}");
        assert_has_none(served, &["CapInh", "CapPrm", "CapEff", "CapAmb"], when);
        let status = status(opener, &opener.to_string());
        assert!(
            status.contains("CapEff:\t0000000000000400\n") && status.contains("Threads:\t1\n"),
            "{when}: {status}"
        );
        let Some(told) = attack(&[served, opener]) else { return };
        assert!(!told.contains("could") && told.matches("tried").count() == 2, "{when}: {told}");
    };
    assert_kept("start");
    write(&format!("listen 127.0.0.1:{low};"), "two");
    send(opener, Signal::HUP);
    wait::until("it listens on the low port", || text(low) == "two");
    assert_kept("reload");
}

#[test]
fn its_user_cannot_signal_the_process_in_the_pid_file_and_a_serving_process_that_is_killed_is_replaced() {
    if !is_possible() {
        return;
    }
    let server = start();
    let (opener, first) = (server.id(), serving(server.id()));
    let kill = |signal: &str, id: u32| {
        let mut kill = Command::new("kill");
        kill.args([signal, &id.to_string()]).uid(USER).gid(USER).current_dir("/").stderr(Stdio::null());
        kill.status().is_ok_and(|status| status.success())
    };
    for signal in ["-HUP", "-USR2", "-QUIT", "-TERM", "-KILL", "-STOP"] {
        assert!(!kill(signal, opener), "{signal}");
    }
    let mut before = first;
    for (signal, how) in [("-KILL", "on signal 9"), ("-TERM", "with status 0"), ("-QUIT", "with status 0")] {
        assert!(kill(signal, before), "a process may end others of its user");
        wait::until("another one serves", || ![opener, before].contains(&serving(opener)));
        wait::until("it answers", || server.client().get("/").is_ok_and(|answer| answer.text() == "one"));
        wait::until("it is told", || {
            error_log(&server).contains(&format!("serving process {before} exited {how}"))
        });
        before = serving(opener);
    }
    // What it asks for on its own is not done: only a signal to the opener is one of root's.
    server.rewrite(SITE, &[("TEXT", "two")]);
    for (signal, told) in
        [("-HUP", "the configuration cannot be read"), ("-USR2", "cannot start the new process")]
    {
        assert!(kill(signal, before));
        wait::until(told, || error_log(&server).contains(told));
    }
    assert_eq!((server.current_id(), server.get("/").text()), (opener, "one".to_owned()));
    server.signal(Signal::HUP);
    wait::until("root's reload is done", || server.get("/").text() == "two");
    assert_powerless(serving(opener), "after all that");
}

#[test]
fn whatever_ends_the_opener_ends_the_process_that_serves() {
    if !is_possible() {
        return;
    }
    for signal in [Signal::QUIT, Signal::TERM, Signal::INT, Signal::KILL] {
        let mut server = start();
        let served = serving(server.id());
        let status = server.stop(signal).expect("it ends");
        assert_eq!(status.success(), signal != Signal::KILL, "{status}");
        wait::until("nothing is left", || !is_alive(served));
        // A thread of it may hold the sockets for a moment longer than its first one is there.
        wait::until("nobody listens", || client::Client::connect(server.port()).is_err());
        assert_eq!(server.prefix().join("nginx.pid").exists(), signal == Signal::KILL);
        server.run().expect("the port is free");
    }
}

fn secret(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("own file");
}

#[test]
fn what_root_alone_may_read_and_write_is_had_at_a_reload_a_rotation_and_a_renewal() {
    if !is_possible() {
        return;
    }
    let prefix = prefix();
    let mut authority = SigningAuthority::new(prefix.path());
    ["one", "two"].iter().for_each(|name| authority.issue(name, "ec"));
    for folder in ["live", "conf.d"] {
        fs::create_dir(prefix.join(folder)).expect("own directory");
    }
    let put = |prefix: &Prefix, name: &str| {
        for kind in ["pem", "key"] {
            fs::copy(prefix.join(&format!("{name}.{kind}")), prefix.join(&format!("live/cert.{kind}")))
                .expect("copied");
            secret(&prefix.join(&format!("live/cert.{kind}")));
        }
    };
    put(&prefix, "one");
    let template = "user 65432; pid @DIR@/nginx.pid; error_log @DIR@/logs/error.log notice; events {}
        http {
            access_log @DIR@/logs/access.log; ssl_key_log @DIR@/logs/keys.log;
            proxy_cache_path @DIR@/cache/deep/a keys_zone=a:1m;
            client_body_temp_path @DIR@/bodies;
            server { listen 127.0.0.1:@PORT@ ssl; ssl_certificate @DIR@/live/cert.pem; ssl_certificate_key @DIR@/live/cert.key;
                listen unix:@DIR@/roots.sock; return 200 hello; }
            include @DIR@/conf.d/*.conf;
        }";
    let below = millstream_tests::ports::free().to_string();
    prefix.write("conf.d/one.conf", "");
    for folder in ["live", "conf.d"] {
        fs::set_permissions(prefix.join(folder), Permissions::from_mode(0o700)).expect("own directory");
    }
    let server = Server::start_in(prefix, template, &[]);
    secret(&server.prefix().join("nginx.conf"));
    let owner = |name: &str| fs::metadata(server.prefix().join(name)).map(|found| found.uid()).ok();
    for name in ["logs/access.log", "logs/error.log", "logs/keys.log", "cache/deep/a", "bodies"] {
        assert_eq!(owner(name), Some(USER), "{name}");
    }
    assert_eq!([owner("logs"), owner("cache/deep"), owner("roots.sock")], [Some(0); 3]);
    put(server.prefix(), "two");
    wait::until("the pair is in use", || {
        error_log(&server).contains("has changed, the new certificate is in use")
    });
    let more =
        format!("server {{ listen 127.0.0.1:{below}; access_log @DIR@/logs/more.log; return 200 more; }}");
    let more = more.replace("@DIR@", server.prefix().path().to_str().expect("a path"));
    secret(&server.prefix().write("conf.d/more.conf", &more));
    server.signal(Signal::HUP);
    wait::until("what was included answers", || {
        client::Client::connect(below.parse().expect("a port"))
            .is_ok_and(|mut client| client.get("/").is_ok_and(|answer| answer.text() == "more"))
    });
    for name in ["access.log", "error.log", "more.log"] {
        let file = server.prefix().join("logs").join(name);
        fs::rename(&file, file.with_extension("1")).expect("root may");
    }
    server.signal(Signal::USR1);
    wait::until("the logs are there again", || {
        owner("logs/more.log") == Some(USER) && owner("logs/error.log") == Some(USER)
    });
    wait::until("they are written", || {
        client::get(below.parse().expect("a port"), "/");
        server.prefix().read("logs/more.log").lines().count() > 0
    });
    assert!(!error_log(&server).contains("[alert]"), "{}", error_log(&server));
    fs::remove_file(server.prefix().join("conf.d/more.conf")).expect("root may");
    server.signal(Signal::HUP);
    wait::until("the address is given up", || {
        client::Client::connect(below.parse().expect("a port")).is_err()
    });
    let socket = server.prefix().join("roots.sock");
    server.signal(Signal::QUIT);
    wait::until("the socket's file goes", || !socket.exists());
}

#[test]
fn files_whose_names_fill_many_messages_are_included_at_a_reload_and_followed() {
    if !is_possible() {
        return;
    }
    let long = |number: u32, kind: &str| format!("{number:03}-{}.{kind}", "x".repeat(230));
    let prefix = prefix();
    let mut authority = SigningAuthority::new(prefix.path());
    ["one", "two"].iter().for_each(|name| authority.issue(name, "ec"));
    for folder in ["live", "conf.d"] {
        fs::create_dir(prefix.join(folder)).expect("own directory");
    }
    let put = |prefix: &Prefix, name: &str| {
        for kind in ["pem", "key"] {
            fs::copy(prefix.join(&format!("{name}.{kind}")), prefix.join("live/next")).expect("copied");
            fs::rename(prefix.join("live/next"), prefix.join(&format!("live/last.{kind}"))).expect("renamed");
        }
    };
    put(&prefix, "one");
    let port = ports::free();
    for number in 0..800 {
        let site = if number < 400 {
            let [pem, key] = ["pem", "key"].map(|kind| {
                let link = prefix.join("live").join(long(number, kind));
                symlink(format!("last.{kind}"), &link).expect("a link");
                link.display().to_string()
            });
            format!(
                "server {{ listen 127.0.0.1:{port} ssl; server_name s{number}; ssl_certificate {pem}; ssl_certificate_key {key}; }}"
            )
        } else {
            String::new()
        };
        prefix.write(&format!("conf.d/{}", long(number, "conf")), &site);
    }
    let last = format!("conf.d/{}", long(800, "conf"));
    prefix.write(&last, "map $host $word { default one; }");
    let template = "user 65432; pid @DIR@/nginx.pid; error_log @DIR@/logs/error.log notice; events {}
        http { access_log off; include @DIR@/conf.d/*.conf; server { listen 127.0.0.1:@PORT@; return 200 $word; } }";
    let server = Server::start_in(prefix, template, &[]);
    let first = serving(server.id());
    assert_eq!(server.get("/").text(), "one");
    server.prefix().write(&last, "map $host $word { default two; }");
    server.signal(Signal::HUP);
    wait::until("the last file is in force", || {
        server.client().get("/").is_ok_and(|answer| answer.text() == "two")
    });
    assert_eq!(serving(server.id()), first, "{}", error_log(&server));
    put(server.prefix(), "two");
    wait::until("a pair is in use", || {
        error_log(&server).contains("has changed, the new certificate is in use")
    });
    assert!(!error_log(&server).contains("cannot be watched"), "{}", error_log(&server));
}

#[test]
fn a_link_in_a_log_folder_of_the_services_user_is_not_followed_with_roots_rights() {
    if !is_possible() {
        return;
    }
    let prefix = prefix();
    chown(prefix.join("logs"), Some(USER), Some(USER)).expect("root may");
    let server = Server::start_in(prefix, SITE, &[("TEXT", "one")]);
    let told = "is not owned by root: symbolic links in it are not followed";
    assert!(server.log().contains(told), "{}", server.log());
    let roots = server.prefix().join("roots");
    fs::create_dir(&roots).expect("own directory");
    fs::write(roots.join("file"), "root's\n").expect("own directory");
    for (log, target) in [("access.log", "made"), ("error.log", "file")] {
        let log = server.prefix().join("logs").join(log);
        fs::rename(&log, log.with_extension("1")).expect("root may");
        symlink(roots.join(target), &log).expect("a link");
        rustix::fs::chownat(
            rustix::fs::CWD,
            &log,
            Some(rustix::process::Uid::from_raw(USER)),
            None,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
        .expect("root may");
    }
    server.signal(Signal::USR1);
    let old = || server.prefix().read("logs/error.1");
    server.says("Too many levels of symbolic links");
    server.get("/");
    server.signal(Signal::HUP);
    wait::until("a reload is over", || {
        old().contains("stays in force") || old().contains("configuration 2 is in force")
    });
    assert!(!roots.join("made").exists(), "{}", old());
    assert_eq!(server.prefix().read("roots/file"), "root's\n");
    let owner = fs::metadata(roots.join("file")).expect("it is there").uid();
    assert_eq!(owner, 0);
}

#[test]
fn a_pid_file_in_a_folder_of_the_services_user_is_written_through_no_link_and_over_no_second_name() {
    if !is_possible() {
        return;
    }
    let outside = prefix();
    let roots = outside.write("file", "root's\n");
    secret(&roots);
    let theirs = || {
        let prefix = prefix();
        chown(prefix.path(), Some(USER), Some(USER)).expect("root may");
        prefix
    };
    type Place = fn(&Path, &Path);
    let refused: [(&str, Place); 3] = [
        ("a link", |roots, pid| symlink(roots, pid).expect("a link")),
        ("a link to nothing", |roots, pid| symlink(roots.with_extension("made"), pid).expect("a link")),
        ("a second name", |roots, pid| fs::hard_link(roots, pid).expect("a second name")),
    ];
    let told = "a symbolic link that another user may have created is not followed";
    for (name, place) in refused {
        let prefix = theirs();
        place(&roots, &prefix.join("nginx.pid"));
        let refused = Server::try_start(prefix, SITE, &[("TEXT", "one")]).err().expect(name);
        assert!(refused.output.contains(told), "{name}: {refused:?}");
        assert!(refused.status.is_some_and(|status| !status.success()), "{name}: {refused:?}");
        assert_eq!(outside.read("file"), "root's\n", "{name}");
        assert!(!outside.join("made").exists(), "{name}");
    }
    let mut server = Server::start_in(theirs(), SITE, &[("TEXT", "one")]);
    symlink(&roots, server.prefix().join("other.pid")).expect("a link");
    server.rewrite(&SITE.replace("nginx.pid", "other.pid"), &[("TEXT", "two")]);
    server.signal(Signal::HUP);
    wait::until("it is told", || error_log(&server).contains(told));
    assert_eq!(server.get("/").text(), "two");
    assert_eq!(outside.read("file"), "root's\n");
    assert_eq!(server.current_id(), server.id(), "the file before it stays");
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
    assert!(!server.prefix().join("nginx.pid").exists());
}

#[test]
fn a_daemon_lets_go_of_the_terminal_and_a_start_that_fails_says_so_with_its_status() {
    if !is_possible() {
        return;
    }
    let server = Server::start_daemon(&SITE.replace("@DIR@/logs/", "@DIR@/"), &[("TEXT", "one")]);
    let id = server.current_id();
    for id in [id, serving(id)] {
        let stderr = fs::read_link(format!("/proc/{id}/fd/2")).expect("it runs");
        assert!(stderr.ends_with("error.log"), "{stderr:?}");
    }
    let mut second = Command::new(millstream_tests::server::binary());
    second.arg("-c").arg(server.prefix().join("nginx.conf")).arg("-p").arg(server.prefix().path());
    let output = second.output().expect("it runs");
    assert!(!output.status.success());
    let unknown = Server::try_start(
        Prefix::new(),
        &SITE.replace("65432", "no-such-user").replace("/logs/", "/"),
        &[("TEXT", "one")],
    );
    let refused = unknown.err().expect("there is no such user");
    assert!(refused.output.contains("user \"no-such-user\" not found"), "{refused:?}");
    assert!(refused.status.is_some_and(|status| !status.success()), "{refused:?}");
    send(id, Signal::TERM);
    wait::until("the daemon ends", || !is_alive(id));
    assert!(process::tree(id).len() == 1);
}

#[test]
fn a_pipe_in_the_place_of_a_file_holds_up_neither_a_check_nor_a_reload_nor_a_stop() {
    skip_on_nginx!("it waits for who writes");
    let prefix = Prefix::new();
    fs::create_dir(prefix.join("conf.d")).expect("own directory");
    let template = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; events {}
        http { access_log off; include @DIR@/conf.d/*.conf; server { listen 127.0.0.1:@PORT@; @MORE@ location / { return 200 here; } } }";
    let mut server = Server::start_in(prefix, template, &[("MORE", "")]);
    let pipe = |name: &str| {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let path = server.prefix().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("own directory");
    };
    pipe("users");
    let users = server.prefix().join("users");
    let more = format!("location /in {{ auth_basic a; auth_basic_user_file {}; }}", users.display());
    server.rewrite(template, &[("MORE", &more)]);
    server.reload();
    let answer = server.get_with("/in", &[("Authorization", "Basic YTpi")]);
    assert!([403, 500].contains(&answer.status), "{}", answer.status);
    pipe("conf.d/pipe.conf");
    let mut check =
        millstream_tests::server::command(server.prefix().path(), &server.prefix().join("nginx.conf"));
    let output = check.arg("-t").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("conf.d/pipe.conf\" failed (not a regular file)"),
        "{said}"
    );
    server.signal(Signal::HUP);
    wait::until("it is told", || server.log().contains("failed (not a regular file)"));
    assert_eq!(server.get("/").text(), "here");
    let mut import = Command::new(millstream_tests::server::binary());
    import.arg("import").arg(server.prefix().join("nginx.conf")).arg("--dry-run");
    let mut importing =
        process::Running::start(import.stdout(Stdio::null()).stderr(Stdio::null())).expect("it runs");
    assert!(importing.wait(Duration::from_secs(20)).is_some(), "import waits for the pipe");
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()));
}
