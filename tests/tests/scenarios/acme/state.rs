//! What outlives a process: kills at any moment, restarts without the authority, and who may read it.

use super::*;

struct Life {
    server: Server,
    ports: Ports,
}

impl Life {
    fn begin(authority: &Authority, ports: Ports) -> Life {
        let text = format!(
            "{BEGIN} acme_issuer test {{ {} }} {} {} }}",
            authority.lines(),
            elsewhere(ports),
            site(ports, "a.test", "test")
        );
        Life { server: Server::start(&text, &[]), ports }
    }

    fn kill(&mut self) {
        self.server.stop(Signal::KILL).expect("it ends");
    }

    fn state(&self) -> std::path::PathBuf {
        self.server.prefix().join("acme_test")
    }
}

#[test]
fn killed_at_any_moment_it_goes_on_with_what_it_has_and_asks_for_no_more_than_it_lacks() {
    let ports = Ports::new();
    let Some(mut authority) = Authority::start(&ports.plan()) else { return };
    let mut life = Life::begin(&authority, ports);
    let root = authority.root(0);
    // At its first key, at the account, while the authority looks for a name that nobody knows, and while it looks for one that is there.
    let state = life.state();
    wait::until("there is a key", || state.join("account.key").exists());
    life.kill();
    let key = fs::read(state.join("account.key")).expect("it is whole");
    life.server.run().expect("it starts");
    wait::until("there is an account", || state.join("account.url").exists());
    life.kill();
    let asked = authority.asked_for("a.test");
    life.server.run().expect("it starts");
    wait::until("the authority looks", || authority.asked_for("a.test") > asked);
    life.kill();
    authority.name("a.test");
    let asked = authority.asked_for("a.test");
    life.server.run().expect("it starts");
    wait::until("the authority looks", || authority.asked_for("a.test") > asked);
    life.kill();
    life.server.run().expect("it starts");
    wait::until("there is a certificate", || certificates(&state).len() == 1);
    life.kill();
    assert_eq!(fs::read(state.join("account.key")).expect("it is there"), key, "one account for all");
    let kept = fs::read(only_certificate(&state)).expect("it is there");
    // What holds is used, whoever is there.
    authority.end();
    life.server.run().expect("it starts");
    assert!(is_served(&root, "a.test", life.ports.tls));
    assert_eq!(fs::read(only_certificate(&state)).expect("it is there"), kept);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    for entry in fs::read_dir(&state).expect("it is ours") {
        let path = entry.expect("it can be read").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_damaged_certificate_is_asked_for_anew_and_one_of_another_name_is_not_used() {
    let ports = Ports::new();
    let Some(authority) = Authority::start(&ports.plan()) else { return };
    authority.name("a.test");
    let mut life = Life::begin(&authority, ports);
    let root = authority.root(0);
    wait::until("there is a certificate", || is_served(&root, "a.test", ports.tls));
    life.server.says("was issued");
    life.kill();
    let file = only_certificate(&life.state());
    let whole = fs::read(&file).expect("it is there");
    fs::write(&file, &whole[..whole.len() / 2]).expect("it is ours");
    life.server.run().expect("it starts");
    wait::until("there is another", || fs::read(&file).expect("it is there").len() > whole.len() / 2);
    wait::until("it is used", || is_served(&root, "a.test", ports.tls));
}

#[test]
fn after_an_upgrade_the_new_process_uses_what_is_there_and_asks_once_the_old_one_has_ended() {
    let ports = Ports::new();
    let Some(authority) = Authority::start(&ports.plan()) else { return };
    ["a.test", "b.test"].iter().for_each(|name| authority.name(name));
    let begin = format!("{BEGIN} acme_issuer test {{ {} }} {}", authority.lines(), elsewhere(ports));
    let one = format!("{begin} {}", site(ports, "a.test", "test"));
    let server = Server::start_daemon(&format!("{one} }}"), &[]);
    let (root, old) = (authority.root(0), server.current_id());
    wait::until("there is a certificate", || is_served(&root, "a.test", ports.tls));
    server.says("was issued");
    server.rewrite(&format!("{one} {} }}", site(ports, "b.test", "test")), &[]);
    server.signal(Signal::USR2);
    wait::until("the new process is there", || ![0, old].contains(&server.current_id()));
    server.says("another process has locked the state_path, waiting for it");
    process::send(old, Signal::QUIT);
    wait::until("the old one ends", || !process::is_alive(old));
    assert!(is_served(&root, "a.test", ports.tls));
    wait::until("the new one asks", || is_served(&root, "b.test", ports.tls));
    assert_eq!(server.log().matches("a certificate for a.test was issued").count(), 1);
}
