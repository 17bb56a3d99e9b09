//! Names are looked up here; ids are changed in a child process, this test binary again with one test asked
//! for.

use super::*;
use std::process::Command;

fn user(name: &str, group: Option<&str>) -> User {
    User { name: name.to_owned(), group: group.map(str::to_owned) }
}

#[test]
fn root_is_found_and_unknown_names_are_told_apart() {
    assert_eq!(
        find(&user("root", None)).expect("there is a root"),
        Account { name: "root".into(), uid: 0, gid: 0 }
    );
    assert!(matches!(find(&user("no such user", None)), Err(PrivilegeError::NoUser(_))));
    assert!(matches!(find(&user("nul\0inside", None)), Err(PrivilegeError::NoUser(_))));
    assert!(matches!(find(&user("root", Some("no such group"))), Err(PrivilegeError::NoGroup(_))));
}

#[test]
fn a_number_that_is_no_name_is_an_id_and_no_other_number_is() {
    let account = |uid, gid| Account { name: "65432".into(), uid, gid };
    assert_eq!(find(&user("65432", None)).expect("an id"), account(65432, 65432));
    assert_eq!(find(&user("65432", Some("65431"))).expect("two ids"), account(65432, 65431));
    for wrong in ["4294967295", "4294967296", "+1", "-1", "0x10", ""] {
        assert!(find(&user(wrong, None)).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_trial_has_the_rights_of_the_user_and_leaves_those_of_the_process() {
    if !geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("of-root");
    std::fs::write(&file, "").expect("written");
    let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, only_owner).expect("ours");
    let stranger = user("65432", None);
    let seen = as_served(Some(&stranger), || {
        (geteuid().as_raw(), rustix::process::getegid().as_raw(), std::fs::read(&file).is_ok())
    });
    assert_eq!(seen.expect("root may"), (65432, 65432, false));
    assert!(geteuid().is_root() && std::fs::read(&file).is_ok());
    let as_root = as_served(Some(&user("root", None)), || std::fs::read(&file).is_ok());
    assert!(as_root.expect("nothing changes"));
    assert!(matches!(as_served(Some(&user("no such user", None)), || ()), Err(PrivilegeError::NoUser(_))));
}

#[test]
fn root_becomes_the_user_and_keeps_no_right() {
    if !geteuid().is_root() || find(&user("nobody", None)).is_err() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let child = Command::new(std::env::current_exe().expect("this test binary has a path"))
        .args(["--exact", "privileges::tests::child_drops_its_privileges", "--ignored", "--test-threads=1"])
        .output()
        .expect("the child starts");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

#[test]
#[ignore = "changes the ids of its process: run by the test above"]
fn child_drops_its_privileges() {
    let account = find(&user("nobody", None)).expect("it is there");
    let parent = rustix::process::getppid().expect("the test above");
    become_powerless(&account, parent).expect("root may");
    assert_eq!(geteuid().as_raw(), account.uid);
    assert_eq!(rustix::process::getegid().as_raw(), account.gid);
    let after = capabilities(None).expect("readable");
    assert!((after.permitted | after.effective | after.inheritable).is_empty());
    assert!(rustix::thread::set_thread_uid(rustix::process::Uid::ROOT).is_err());
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("readable");
    for line in ["CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    let dumpable = rustix::process::dumpable_behavior().expect("readable");
    assert_eq!(dumpable, DumpableBehavior::NotDumpable);
    close_to_others();
    renounce().expect("there is nothing left");
    let another = Pid::from_raw(1).filter(|one| *one != parent).expect("it is not init's");
    assert!(become_powerless(&account, another).is_err(), "its parent is another one");
}
