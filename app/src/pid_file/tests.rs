//! The file's life: written, aside, back, moved, gone.

use super::*;

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn it_holds_the_id_and_a_newline_while_the_process_lives() {
    let directory = directory();
    let path = directory.path().join("run/nginx.pid");
    let file = PidFile::write(&path).expect("its directory is made");
    assert_eq!(fs::read_to_string(&path).expect("there"), format!("{}\n", std::process::id()));
    assert_eq!(read(&path).expect("a number"), own_id());
    drop(file);
    assert!(!path.exists());
}

#[test]
fn it_steps_aside_for_the_next_process_and_takes_its_name_back() {
    let directory = directory();
    let path = directory.path().join("nginx.pid");
    let mut file = PidFile::write(&path).expect("written");
    file.step_aside().expect("renamed");
    assert_eq!(file.path(), old(&path));
    assert!(!path.exists() && old(&path).exists());
    file.step_back().expect("renamed");
    file.step_back().expect("nothing to do");
    assert!(path.exists() && !old(&path).exists());
    file.step_aside().expect("renamed");
    drop(file);
    assert!(!path.exists() && !old(&path).exists());
}

#[test]
fn it_does_not_step_aside_while_the_process_before_it_lives() {
    let directory = directory();
    let path = directory.path().join("nginx.pid");
    let mut file = PidFile::write(&path).expect("written");
    let parent = rustix::process::getppid().expect("a test has a parent").as_raw_nonzero();
    fs::write(old(&path), format!("{parent}\n")).expect("written");
    assert!(file.step_aside().is_err());
    assert_eq!(file.path(), path);
    fs::write(old(&path), "4194399\n").expect("written");
    file.step_aside().expect("nobody has the highest id");
}

#[test]
fn another_processs_file_is_left_alone() {
    let directory = directory();
    let path = directory.path().join("nginx.pid");
    let file = PidFile::write(&path).expect("written");
    fs::write(&path, "1\n").expect("written");
    drop(file);
    assert_eq!(read(&path).expect("there"), 1);
}

#[test]
fn a_reload_moves_it_and_no_name_means_no_file() {
    let directory = directory();
    let (first, second) = (directory.path().join("a.pid"), directory.path().join("b.pid"));
    let mut file = PidFile::write(&first).expect("written");
    file.move_to(&second).expect("written");
    assert!(!first.exists() && second.exists());
    assert!(file.move_to(Path::new("/proc/nowhere/x.pid")).is_err());
    assert!(second.exists());
    let mut none = PidFile::write(Path::new("")).expect("nothing to do");
    none.step_aside().expect("nothing to do");
    none.step_back().expect("nothing to do");
}

#[test]
fn the_holder_of_an_id_is_known_by_the_lock_or_by_its_program() {
    let directory = directory();
    let path = directory.path().join("nginx.pid");
    let file = PidFile::write(&path).expect("written");
    assert!(holds_lock(&path, own_id()) && !holds_lock(&path, 1));
    assert_eq!(holder(&path, own_id()), Holder::Ours);
    drop(file);
    fs::write(&path, "").expect("written");
    assert!(!holds_lock(&path, own_id()));
    assert_eq!(holder(&path, own_id()), Holder::Ours, "the program is the same");
    let mut other = std::process::Command::new("sleep").arg("60").spawn().expect("it runs");
    let pid = other.id().cast_signed();
    // Until its exec it is this very program.
    while is_same_program(pid) {
        std::thread::yield_now();
    }
    let found = holder(&path, pid);
    assert!(matches!(&found, Holder::Other(name) if !name.is_empty()), "{found:?}");
    other.kill().expect("it is ours");
    other.wait().expect("it is ours");
    assert_eq!(holder(&path, pid), Holder::Gone);
    assert_eq!(base_name(Path::new("/usr/bin/millstream (deleted)")), "millstream");
}

#[test]
fn only_one_positive_number_is_an_id() {
    let directory = directory();
    let path = directory.path().join("nginx.pid");
    for (text, expected) in [
        ("12\n", Some(12)),
        (" 12 ", Some(12)),
        ("", None),
        ("0", None),
        ("-1", None),
        ("12 13", None),
        ("x", None),
    ] {
        fs::write(&path, text).expect("written");
        assert_eq!(read(&path).ok(), expected, "{text:?}");
    }
    assert!(read(&directory.path().join("none")).is_err());
}
