//! Files removed beneath the server, as cron jobs and plugins do it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use md5::{Digest, Md5};
use millstream_tests::client::Answer;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use rustix::process::Signal;

use super::proof::{check, origin};
use super::{SITE, start};

/// With `levels=1:2`.
fn file_of(cache: &Path, key: &str) -> PathBuf {
    let name: String = Md5::digest(key).iter().map(|byte| format!("{byte:02x}")).collect();
    cache.join(&name[31..]).join(&name[29..31]).join(&name)
}

#[test]
fn a_page_whose_file_a_plugin_unlinks_is_asked_for_anew_and_the_others_stay() {
    skip_on_nginx!("it goes by the file at every hit, and needs no notice");
    let origin = origin();
    let server = start(&origin, "");
    let cache = server.prefix().join("cache");
    let (one, two) = ("/one/3000/3600", "/two/3000/3600");
    for path in [one, two] {
        check(path, "none", &server.get(path)).expect("right");
        wait::until("it is stored", || file_of(&cache, path).exists());
    }
    for _ in 0..5 {
        assert_eq!((server.get(one).cache_status(), server.get(two).cache_status()), ("HIT", "HIT"));
        let before = origin.count();
        fs::remove_file(file_of(&cache, one)).expect("it has nginx's name");
        wait::until("the page is asked for anew", || {
            check(one, "none", &server.get(one)).expect("right");
            origin.count() > before
        });
        assert_eq!(origin.count(), before + 1, "once");
        assert_eq!(server.get(two).cache_status(), "HIT");
        wait::until("it is stored again", || file_of(&cache, one).exists());
    }
}

#[test]
fn all_files_removed_by_a_cron_job_are_forgotten_without_an_error_and_answers_in_flight_complete() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "");
    let cache = server.prefix().join("cache");
    let large = "/large/3000000/3600";
    let small: Vec<String> = (0..30).map(|number| format!("/{number}/2000/3600")).collect();
    for round in 0..3 {
        for path in small.iter().map(String::as_str).chain([large]) {
            check(path, "none", &server.get(path)).expect("right");
            wait::until("it is stored", || file_of(&cache, path).exists());
            assert_eq!(server.get(path).cache_status(), "HIT", "{path} in round {round}");
        }
        let mut reading = server.client();
        reading.send(format!("GET {large} HTTP/1.1\r\nHost: localhost\r\n\r\n")).expect("sent");
        let mut begun = reading.head().expect("a head");
        let before = origin.count();
        let removed = Command::new("sh").arg("-c").arg("rm -rf ./*").current_dir(&cache).status();
        assert!(removed.expect("a shell").success());
        wait::until("everything is asked for anew", || {
            // Each is a HIT until the removal is heard of, then a MISS and stored anew.
            small.iter().for_each(|path| check(path, "none", &server.get(path)).expect("right"));
            origin.count() >= before + small.len()
        });
        assert_eq!(origin.count(), before + small.len(), "each once");
        begun.body = reading.exactly(3_000_000).expect("an answer that has begun goes on");
        check(large, "none", &begun).expect("right");
        assert_eq!(begun.cache_status(), "HIT");
    }
    assert_eq!(server.log().lines().filter(|line| line.contains("[crit]")).count(), 0, "{}", server.log());
}

#[test]
fn a_cache_directory_that_vanishes_and_returns_serves_stores_and_notices_again() {
    skip_on_nginx!();
    let origin = origin();
    let server = start(&origin, "");
    let cache = server.prefix().join("cache");
    // Whoever the workers run as has to be able to make the directory again.
    fs::set_permissions(server.prefix().path(), fs::Permissions::from_mode(0o777)).expect("own directory");
    let path = "/page/3000/3600";
    for round in 0..3 {
        check(path, "none", &server.get(path)).expect("right");
        wait::until("it is stored", || file_of(&cache, path).exists());
        assert_eq!(server.get(path).cache_status(), "HIT");
        fs::rename(&cache, server.prefix().join(&format!("away {round}"))).expect("own directory");
        let before = origin.count();
        wait::until("the page is asked for anew", || {
            check(path, "none", &server.get(path)).expect("right");
            origin.count() > before
        });
    }
}

#[test]
fn a_directory_that_is_removed_itself_is_said_to_store_nothing_and_made_again_by_a_reload() {
    if is_nginx() || !rustix::process::geteuid().is_root() {
        return; // Whoever is no root may make it again without further ado.
    }
    let prefix = Prefix::new();
    fs::set_permissions(prefix.path(), fs::Permissions::from_mode(0o755)).expect("own directory");
    let origin = origin();
    let site = SITE.replace(
        "proxy_cache pages;",
        "proxy_cache pages; proxy_cache_explain on; proxy_cache_purge_allow local;",
    );
    let server = Server::start_in(prefix, &site, &[("ORIGIN", &origin.address()), ("ZONE", "")]);
    let cache = server.prefix().join("cache");
    let large = "/large/3000000/3600";
    let state = |answer: &Answer| answer.field("cache-status").unwrap_or_default().to_owned();
    let purge = || server.request("PURGE", "/*", &[]).status;
    assert_eq!(purge(), 200);
    fs::remove_dir_all(&cache).expect("root may");
    server.get(large);
    wait::until("the failure is known", || state(&server.get(large)).contains("detail=disk_error"));
    assert!(!state(&server.get(large)).contains("stored"));
    assert_eq!((purge(), cache.exists()), (500, false));
    server.signal(Signal::HUP);
    wait::until("the directory is there again", || cache.exists());
    wait::until("purges last again", || purge() == 200);
    wait::until("it is stored again", || server.get(large).cache_status() == "HIT");
    check(large, "none", &server.get(large)).expect("right");
}
