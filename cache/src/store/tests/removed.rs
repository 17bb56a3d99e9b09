//! What others do to the directory: files removed, directories gone, all of it at once.

use super::*;
use crate::front::Hit;
use std::process::Command;
use std::rc::Rc;

async fn noticed(store: &Store, count: u64) {
    while store.stats().files_unlinked < count {
        blocking::run(std::thread::yield_now).await;
    }
}

fn lookup(store: &Arc<Store>, key: &str) -> Lookup {
    Front::new(store.clone()).lookup(key.as_bytes(), Fields::default(), &conf(), start())
}

fn hit(store: &Arc<Store>, key: &str) -> Rc<Hit> {
    match lookup(store, key) {
        Lookup::Fresh(hit) => hit,
        other => panic!("not a hit: {other:?}"),
    }
}

fn file_of(store: &Store, key: &str) -> PathBuf {
    store.tier.as_ref().expect("a disk").disk.path(&key::md5(key.as_bytes()))
}

#[test]
fn a_file_that_somebody_removes_takes_the_entry_in_memory_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let store = store(&zone);
        listed(&store).await;
        for key in ["one", "two"] {
            put(&store, key, &Headers::new(), &[], b"body").await;
        }
        let held = hit(&store, "one");
        let mut front = Front::new(store.clone());
        assert!(matches!(front.lookup(b"one", Fields::default(), &conf(), start()), Lookup::Fresh(_)));
        fs::remove_file(file_of(&store, "one")).expect("it is there");
        noticed(&store, 1).await;
        while !held.entry.is_retired() {
            blocking::run(std::thread::yield_now).await;
        }
        assert!(matches!(front.lookup(b"one", Fields::default(), &conf(), start()), Lookup::Miss(_)));
        assert_eq!(held.entry.body_in_memory(), Some(&b"body"[..]), "a hit in flight goes on");
        hit(&store, "two");
        let stats = store.stats();
        assert_eq!((stats.files, stats.disk_bytes), (1, 4096));
    });
}

#[test]
fn what_was_read_after_a_restart_goes_with_its_file_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        put(&store(&zone), "key", &Headers::new(), &[], b"body").await;
        let store = store(&zone);
        assert_eq!(found(&store, "key", &Headers::new()).await, Some(b"body".to_vec()));
        let held = hit(&store, "key");
        fs::remove_file(file_of(&store, "key")).expect("it is there");
        while !held.entry.is_retired() {
            blocking::run(std::thread::yield_now).await;
        }
        listed(&store).await;
        assert_eq!(store.stats().files, 0);
    });
}

#[test]
fn everything_removed_at_once_is_forgotten_and_stored_anew_and_noticed_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let store = store(&zone);
        listed(&store).await;
        for round in 1..=3 {
            for number in 0..50 {
                put(&store, &format!("key {number}"), &Headers::new(), &[], b"body").await;
            }
            let shell = Command::new("sh").arg("-c").arg("rm -rf ./*").current_dir(directory.path()).status();
            assert!(shell.expect("a shell").success());
            noticed(&store, round * 50).await;
            while store.stats().keys > 0 {
                blocking::run(std::thread::yield_now).await;
            }
            assert_eq!((store.stats().files, store.stats().disk_bytes), (0, 0));
        }
    });
}

#[test]
fn a_directory_moved_away_takes_all_that_was_in_it() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("cache");
    let zone = zone(Some(&directory));
    runtime().block_on(async {
        let store = store(&zone);
        listed(&store).await;
        for round in 1..=3u32 {
            put(&store, "key", &Headers::new(), &[], b"body").await;
            let held = hit(&store, "key");
            fs::rename(&directory, parent.path().join(format!("old {round}"))).expect("moved");
            while !held.entry.is_retired() {
                blocking::run(std::thread::yield_now).await;
            }
            assert_eq!((store.stats().files, store.stats().disk_errors), (0, 0));
        }
    });
}

#[test]
fn a_variant_goes_with_its_file_and_all_of_them_with_the_keys_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let languages = ["de", "en", "fr"].map(|language| headers(&[("Accept-Language", language)]));
    runtime().block_on(async {
        let store = store(&zone);
        for language in &languages {
            put(&store, "key", language, &[("Vary", "Accept-Language")], b"body").await;
        }
        let held = languages.each_ref().map(|language| {
            match Front::new(store.clone()).lookup(b"key", language.view(), &conf(), start()) {
                Lookup::Fresh(hit) => hit,
                other => panic!("not a hit: {other:?}"),
            }
        });
        let values = held[1].entry.variant.as_ref().expect("a variant").values.clone();
        let disk = store.tier.as_ref().expect("a disk").disk.clone();
        fs::remove_file(disk.path(&key::md5_of_variant(b"key", &values))).expect("it is there");
        while !held[1].entry.is_retired() {
            blocking::run(std::thread::yield_now).await;
        }
        assert!(!held[0].entry.is_retired() && !held[2].entry.is_retired());
        fs::remove_file(disk.path(&key::md5(b"key"))).expect("it is there");
        while !(held[0].entry.is_retired() && held[2].entry.is_retired()) {
            blocking::run(std::thread::yield_now).await;
        }
    });
}

#[test]
fn what_we_remove_ourselves_is_nobodys_loss() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = CacheZone { max_size: Some(64 * 1024), ..zone(Some(directory.path())) };
    runtime().block_on(async {
        let store = store(&zone);
        listed(&store).await;
        for number in 0..50 {
            put(&store, &format!("key {number}"), &Headers::new(), &[], &[1; 3000]).await;
        }
        fs::remove_file(only_some_file(directory.path())).expect("it is there");
        noticed(&store, 1).await;
        let stats = store.stats();
        assert!(stats.files_removed > 30 && stats.files_unlinked == 1 && stats.keys >= 48, "{stats:?}");
    });
}

fn only_some_file(directory: &Path) -> PathBuf {
    files(directory).pop().expect("a file")
}

#[test]
fn files_of_an_earlier_version_and_of_nginx_are_removed_and_no_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let mut first = *b"MILLCACH\x01\0\0\0____________________________________________________";
    let checksum = crc32fast::hash(&first[..60]).to_le_bytes();
    first[60..].copy_from_slice(&checksum);
    let nginx = [&5u64.to_le_bytes()[..], &[7; 500]].concat();
    runtime().block_on(async {
        put(&store(&zone), "key", &Headers::new(), &[], b"body").await;
        let path = only_file(directory.path());
        for bytes in [[&first[..], &[1; 300]].concat(), nginx] {
            fs::write(&path, bytes).expect("written");
            let store = store(&zone);
            assert_eq!(found(&store, "key", &Headers::new()).await, None);
            assert_eq!((store.stats().corrupt, path.exists()), (0, false));
        }
    });
}

#[test]
fn a_file_of_another_key_is_a_miss_and_whoever_fills_it_takes_its_name_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        put(&store(&zone), "other", &Headers::new(), &[], b"other").await;
        let other = only_file(directory.path());
        let store = store(&zone);
        let path = file_of(&store, "key");
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::rename(other, &path).expect("renamed");
        assert_eq!(found(&store, "key", &Headers::new()).await, None);
        assert!(path.exists() && store.stats().corrupt == 0);
        put(&store, "key", &Headers::new(), &[], b"body").await;
        drop(store);
        assert_eq!(found(&super::store(&zone), "key", &Headers::new()).await, Some(b"body".to_vec()));
    });
}
