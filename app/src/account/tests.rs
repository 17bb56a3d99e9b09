//! Ownership is checked for real where the tests run as root; becoming a user is a scenario's part.

use super::*;
use millstream_conf::load::load_text;

fn loaded(text: &str) -> Loaded {
    load_text("nginx.conf", text, Path::new("/nonexistent"))
}

fn user_of(loaded: &Loaded) -> Option<&str> {
    loaded.configuration.as_ref().expect("it loads").main.user.as_ref().map(|user| user.name.as_str())
}

#[test]
fn root_runs_a_file_without_user_as_nobody_and_others_run_it_as_themselves() {
    let text = "events {} http {}";
    assert_eq!(user_of(&with_default_user(loaded(text), true)), Some("nobody"));
    assert_eq!(user_of(&with_default_user(loaded(text), false)), None);
}

#[test]
fn a_user_in_the_file_is_kept_root_included() {
    assert_eq!(user_of(&with_default_user(loaded("user root; events {} http {}"), true)), Some("root"));
}

#[test]
fn a_user_that_nobody_can_become_is_a_warning() {
    let warnings = |text: &str, is_root: bool| {
        let mut loaded = loaded(text);
        warn_of_idle_user(&mut loaded, is_root);
        loaded.diagnostics.sorted().iter().filter(|finding| finding.message.contains("no effect")).count()
    };
    assert_eq!(warnings("user www-data; events {} http {}", false), 1);
    assert_eq!(warnings("user www-data; events {} http {}", true), 0);
    assert_eq!(warnings("events {} http {}", false), 0);
}

#[test]
fn what_root_made_is_given_and_nothing_is_given_through_a_link() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (file, link, twice) =
        (directory.path().join("file"), directory.path().join("link"), directory.path().join("twice"));
    fs::write(&file, "").expect("written");
    std::os::unix::fs::symlink(&file, &link).expect("linked");
    let account = Account { name: "somebody".into(), uid: 12345, gid: 12346 };
    let owner = |path: &Path| fs::metadata(path).map(|found| (found.uid(), found.gid())).expect("there");

    give(&link, &account).expect("left alone");
    assert_eq!(owner(&file).0, 0);
    fs::hard_link(&file, &twice).expect("linked");
    give(&file, &account).expect("left alone");
    assert_eq!(owner(&file).0, 0);
    fs::remove_file(&twice).expect("removed");
    give(&file, &account).expect("given");
    assert_eq!(owner(&file), (12345, 12346));
    give(directory.path(), &account).expect("given");
    assert_eq!(owner(directory.path()), (12345, 12346));
    give(Path::new("/nonexistent/file"), &account).expect("nothing to give");
}

#[test]
fn roots_check_says_nothing_of_a_cache_in_the_folder_of_a_service_with_a_user_of_its_own() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let cache = directory.path().join("cache");
    fs::create_dir(&cache).expect("made");
    lchown(directory.path(), Some(12345), Some(12346)).expect("given");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(directory.path(), closed).expect("own directory");
    let warnings = |user: &str, is_check: bool| {
        let cached = "server { location / { proxy_pass http://127.0.0.1:1; proxy_cache a; } }";
        let zone = format!("proxy_cache_path {} keys_zone=a:1m;", cache.display());
        let mut loaded =
            with_default_user(loaded(&format!("{user} events {{}} http {{ {zone} {cached} }}")), true);
        let configuration = loaded.configuration.as_ref().expect("it loads");
        prove_folders(configuration, is_check, &mut loaded.diagnostics);
        let found = loaded.diagnostics.sorted();
        found.iter().filter(|finding| finding.message.contains("cannot be used")).count()
    };
    assert_eq!(warnings("", true), 0);
    assert_eq!(fs::metadata(&cache).expect("there").uid(), 0, "it was given to nobody else");
    assert_eq!(warnings("user nobody nogroup;", false), 1, "a start tries it as whoever serves");
}
