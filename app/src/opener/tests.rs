//! What a serving process that was taken over could ask for.

use super::asked::{Ask, Reply};
use super::*;
use millstream_conf::load::load_text;
use std::path::Path;

#[test]
fn a_question_is_answered_by_what_the_configuration_names_and_by_signals_alone() {
    files::note_names();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("secrets"), "").expect("written");
    std::fs::write(at("more.conf"), "").expect("written");
    let text = format!(
        "error_log {0}/error.log; events {{}} http {{ include {0}/*.conf; server {{ proxy_ssl_password_file {0}/secrets; }} }}",
        folder.path().display()
    );
    let load = move || load_text("nginx.conf", &text, Path::new("/nonexistent"));
    let configuration = load().configuration.expect("it loads");
    let office = Office::new(Box::new(load), Vec::new());
    let account = Account { name: "65432".to_owned(), uid: 65_432, gid: 65_432 };
    let mut opener = Opener::new(office, configuration, account, None).expect("an opener");
    let log = |name: &str| Ask::Open(at(name), Some(0o644));
    let read = |path: PathBuf| Ask::Open(path, None);
    let listed = |pattern: &str| Ask::Matches(at(pattern).display().to_string());
    for (question, files) in [
        (log("error.log"), Some(1)),
        (read(at("secrets")), Some(1)),
        (read(at("more.conf")), Some(1)),
        (listed("*.conf"), Some(0)),
        (Ask::Say(0), Some(0)),
        // What is named for one thing is not for another, and what is not named for nothing.
        (read(at("error.log")), None),
        (log("secrets"), None),
        (log("other.log"), None),
        (read("/etc/shadow".into()), None),
        (read(at("../secrets")), None),
        (listed("*"), None),
        (Ask::Follow(vec!["/etc/shadow".into()], true), None),
        (Ask::Follow(vec!["/etc/shadow".into()], false), None),
        (Ask::Rest, None),
        // No signal came.
        (Ask::Load, None),
        (Ask::Listen, None),
        (Ask::Upgrade, None),
        (Ask::Leave, None),
        (Ask::Sockets(0, 0), None),
        (Ask::Say(9), None),
    ] {
        let shown = format!("{question:?}");
        let mut passed = Vec::new();
        let answered = opener.answer(question, &mut passed).is_ok().then_some(passed.len());
        assert_eq!(answered, files, "{shown}");
    }
    opener.due.reload = true;
    assert!(matches!(opener.answer(Ask::Load, &mut Vec::new()), Ok(Reply::Done)));
    assert!(opener.answer(Ask::Load, &mut Vec::new()).is_err(), "one signal is one reload");
    assert!(opener.answer(read(at("secrets")), &mut Vec::new()).is_ok());
}

#[test]
fn a_pattern_is_not_followed_through_a_link_of_another_users() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["roots", "theirs", "theirs/own"] {
        std::fs::create_dir(at(name)).expect("made");
    }
    for name in ["roots/secret.conf", "theirs/own/a.conf"] {
        std::fs::write(at(name), "").expect("written");
    }
    std::os::unix::fs::symlink("../roots", at("theirs/link")).expect("a link");
    std::os::unix::fs::symlink("theirs", at("link")).expect("a link");
    std::os::unix::fs::chown(at("theirs"), Some(65_432), Some(65_432)).expect("given");
    let found = |pattern: &str| {
        let whole = at(pattern).display().to_string();
        millstream_conf::include::pattern::matches_through(&whole, millstream_net::guarded_path::names)
    };
    for (pattern, wanted) in [
        ("theirs/*/*.conf", &["theirs/own/a.conf"][..]),
        ("theirs/link/*", &[]),
        ("theirs/*/secret.conf", &[]),
        ("link/own/*", &["link/own/a.conf"]),
        ("l*/own/a.conf", &["link/own/a.conf"]),
        ("theirs/*", &["theirs/link", "theirs/own"]),
    ] {
        assert_eq!(found(pattern), wanted.iter().map(|name| at(name)).collect::<Vec<_>>(), "{pattern}");
    }
}
