//! Coded bodies go to the disk with the plain one, and go with it.

use super::*;
use millstream_wire::Coding;

/// From the disk if memory has nothing.
async fn handle(store: &Arc<Store>, request: &Headers) -> Option<Arc<Entry>> {
    let lookup = Front::new(store.clone()).lookup(b"key", request.view(), &conf(), start());
    let lookup = match lookup {
        Lookup::Disk(probe) => load(probe, request).await,
        other => other,
    };
    let Lookup::Fresh(hit) = lookup else { return None };
    Some(hit.entry.clone())
}

fn code(store: &Arc<Store>, entry: &Arc<Entry>, coding: Coding, body: &[u8]) {
    let permit = CodingPermit::claim(store, entry, coding).expect("nobody has made it");
    assert!(permit.set(Bytes::copy_from_slice(body)));
}

async fn tidied(store: &Arc<Store>) {
    store.maintain(start());
    settled(store).await;
}

fn codings(entry: &Entry) -> Vec<(Coding, Vec<u8>)> {
    entry.coded_bodies().map(|(coding, body)| (coding, body.to_vec())).collect()
}

#[test]
fn coded_bodies_are_there_after_a_restart_and_count() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let none = Headers::new();
    // One above the size of bodies that are lent, one below.
    let made = [(Coding::Br, vec![b'b'; 20_000]), (Coding::Gzip, b"gzip".to_vec())];
    runtime().block_on(async {
        let first = store(&zone);
        put(&first, "key", &none, &[("ETag", "\"a\"")], b"body").await;
        let before =
            (fs::metadata(only_file(directory.path())).expect("a file").len(), first.stats().disk_bytes);
        let entry = handle(&first, &none).await.expect("it is stored");
        made.iter().for_each(|(coding, body)| code(&first, &entry, *coding, body));
        tidied(&first).await;
        let after =
            (fs::metadata(only_file(directory.path())).expect("a file").len(), first.stats().disk_bytes);
        assert_eq!(after.0 - before.0, 20_004 + 2 * 5);
        assert!(after.1 > before.1 && !entry.marks.is_unwritten(), "{before:?} {after:?}");

        let restarted = store(&zone);
        let found = handle(&restarted, &none).await.expect("it is on the disk");
        assert_eq!(codings(&found), made);
        assert_eq!((found.body_in_memory(), found.head().etag()), (Some(&b"body"[..]), Some(&b"\"a\""[..])));
        assert!(CodingPermit::claim(&restarted, &found, Coding::Br).is_none() && !found.marks.is_unwritten());
        assert!(restarted.stats().memory_bytes >= found.cost() && found.cost() > 20_000);
        // One more joins them.
        code(&restarted, &found, Coding::Zstd, b"zstd");
        tidied(&restarted).await;
        let again = handle(&store(&zone), &none).await.expect("it is on the disk");
        assert_eq!(codings(&again).len(), 3);

        let path = only_file(directory.path());
        assert!(restarted.invalidate(b"key"));
        while path.exists() {
            blocking::run(std::thread::yield_now).await;
        }
        assert_eq!(restarted.stats().memory_bytes, 0);
        assert!(handle(&store(&zone), &none).await.is_none());
    });
}

#[test]
fn each_variant_has_coded_bodies_of_its_own_on_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let languages = ["de", "en"].map(|language| headers(&[("Accept-Language", language)]));
    runtime().block_on(async {
        let first = store(&zone);
        for (request, body) in languages.iter().zip([b"hallo", b"hello"]) {
            put(&first, "key", request, &[("Vary", "Accept-Language")], body).await;
            let entry = handle(&first, request).await.expect("it is stored");
            code(&first, &entry, Coding::Gzip, &body[1..]);
        }
        tidied(&first).await;
        assert_eq!(files(directory.path()).len(), 2);
        let restarted = store(&zone);
        for (request, body) in languages.iter().zip([b"hallo", b"hello"]) {
            let found = handle(&restarted, request).await.expect("it is on the disk");
            assert_eq!(codings(&found), [(Coding::Gzip, body[1..].to_vec())]);
            assert_eq!(found.body_in_memory(), Some(&body[..]));
        }
    });
}

#[test]
fn a_confirmed_answer_keeps_its_coded_bodies_here_and_on_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let none = Headers::new();
    runtime().block_on(async {
        let first = store(&zone);
        put(&first, "key", &none, &[("ETag", "\"a\"")], b"body").await;
        let entry = handle(&first, &none).await.expect("it is stored");
        code(&first, &entry, Coding::Br, b"br");
        let permit = Front::new(first.clone()).beside(b"key", crate::policy::Asker::Anybody);
        let lifetime = entry.lifetime();
        permit.refresh(&entry, headers(&[("ETag", "\"a\""), ("X-New", "1")]), lifetime, start());
        settled(&first).await;
        for store in [first, store(&zone)] {
            let found = handle(&store, &none).await.expect("it is stored");
            assert_eq!(codings(&found), [(Coding::Br, b"br".to_vec())]);
            assert!(found.head().fields().named(b"x-new").is_some());
        }
    });
}

#[test]
fn a_flipped_bit_in_a_coded_body_is_a_miss() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let none = Headers::new();
    runtime().block_on(async {
        let store = store(&zone);
        put(&store, "key", &none, &[], b"body").await;
        let entry = handle(&store, &none).await.expect("it is stored");
        code(&store, &entry, Coding::Gzip, &[7; 300]);
        tidied(&store).await;
        let (disk, key) = (store.tier.as_ref().expect("a disk").disk.clone(), Key::new(b"key", 1));
        let path = only_file(directory.path());
        let good = fs::read(&path).expect("the file");
        for bit in (good.len() - 305) * 8..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).expect("written");
            assert!(disk.read(&key::md5(b"key"), &key, 1 << 20, start()).is_none(), "bit {bit}");
            assert!(!path.exists(), "bit {bit}");
        }
        for length in good.len() - 306..good.len() {
            fs::write(&path, &good[..length]).expect("written");
            assert!(disk.read(&key::md5(b"key"), &key, 1 << 20, start()).is_none(), "cut at {length}");
        }
    });
}
