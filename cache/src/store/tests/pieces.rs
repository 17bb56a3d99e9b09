//! Changes of what is stored in pieces: a rule where there may be one, and nothing where there is none.

use super::*;
use crate::fill::Fill;
use crate::store::{Changed, Sliced};
use crate::tags::Tags;

const WHOLE: &[u8] = b"thing";
const OTHER: &[u8] = b"other";

async fn begin_piece(store: &Arc<Store>, whole: &Sliced, key: &str) -> Fill {
    let mut front = Front::new(store.clone());
    let permit = match front.lookup(key.as_bytes(), Fields::default(), &conf(), start()) {
        Lookup::Disk(probe) => miss(load(probe, &Headers::new()).await),
        other => miss(other),
    };
    let mut head = head(&[], None, 60, start());
    head.tags = Tags::default().of_piece(whole.tag()).expect("few");
    permit.begin(head, Fields::default(), start())
}

async fn put_piece(store: &Arc<Store>, whole: &[u8], key: &str) {
    let mut fill = begin_piece(store, &Sliced::of(store, whole.to_vec()), key).await;
    fill.push(Bytes::from_static(b"piece"));
    assert!(fill.finish().await.is_some());
    settled(store).await;
}

/// Whether an unsafe request left a rule.
async fn change(store: &Arc<Store>, key: &[u8]) -> bool {
    let before = store.memory.purges.generation();
    if let Some(gone) = store.invalidate_after(Changed { key, has_pieces: true }, None) {
        gone.await;
    }
    store.memory.purges.generation() > before
}

async fn has(store: &Arc<Store>, key: &str) -> bool {
    found(store, key, &Headers::new()).await.is_some()
}

/// Waits until the files that existed at the start are known.
async fn surveyed(store: &Arc<Store>) {
    Sliced::of(store, Vec::new());
    for other in 0u64.. {
        if !change(store, &other.to_le_bytes()).await {
            return;
        }
        // Where it has to wait for others to go, it looks whenever it does something.
        store.tier.iter().for_each(|tier| tier.disk.wake());
        blocking::run(std::thread::yield_now).await;
    }
}

fn journals(directory: &Path) -> [u64; 2] {
    [".millstream-purges", ".millstream-pieces"]
        .map(|name| fs::metadata(directory.join(name)).map_or(0, |found| found.len()))
}

#[test]
fn a_change_leaves_a_rule_only_where_a_piece_is_stored_or_on_its_way() {
    runtime().block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        for zone in [zone(None), zone(Some(directory.path()))] {
            let store = store(&zone);
            surveyed(&store).await;
            put(&store, "thing", &Headers::new(), &[], b"whole").await;
            put_piece(&store, OTHER, "other 0").await;
            assert!(!change(&store, WHOLE).await, "it is stored whole alone");
            assert!(!has(&store, "thing").await);

            let asked = Sliced::of(&store, WHOLE.to_vec());
            assert!(change(&store, WHOLE).await, "it is asked for");
            let fill = begin_piece(&store, &asked, "thing 0").await;
            drop(asked);
            assert!(change(&store, WHOLE).await, "it is on its way");
            assert!(fill.finish().await.is_none_or(|entry| !store.memory.spares(&entry)));
            assert!(!has(&store, "thing 0").await);

            put_piece(&store, WHOLE, "thing 0").await;
            put_piece(&store, WHOLE, "thing 1").await;
            assert!(change(&store, WHOLE).await);
            assert_eq!([has(&store, "thing 0").await, has(&store, "thing 1").await], [false; 2]);
            assert!(has(&store, "other 0").await);
            assert!(!change(&store, WHOLE).await, "nobody has asked for it since");
            put_piece(&store, WHOLE, "thing 1").await;
            assert!(change(&store, WHOLE).await && !has(&store, "thing 1").await);
            assert!(Sliced::of(&store, b"asked for and not stored".to_vec()).key().len() > 5);
            assert!(!change(&store, b"asked for and not stored").await);
        }
        let [purges, pieces] = journals(directory.path());
        assert!(purges == 0 && pieces > 0, "{purges} {pieces}");
    });
}

#[test]
fn after_a_restart_what_has_pieces_is_known_once_the_files_were_read() {
    runtime().block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        let zone = zone(Some(directory.path()));
        let first = store(&zone);
        put(&first, "plain", &Headers::new(), &[], b"plain").await;
        put_piece(&first, WHOLE, "thing 0").await;
        put_piece(&first, OTHER, "other 0").await;
        put_piece(&first, b"third", "third 0").await;
        drop(first);

        let restarted = store(&zone);
        assert!(change(&restarted, b"third").await, "whether all are known yet or not");
        surveyed(&restarted).await;
        let before = journals(directory.path());
        for number in 0..100 {
            assert!(!change(&restarted, format!("nothing {number}").as_bytes()).await);
        }
        assert_eq!(journals(directory.path()), before);
        assert!(change(&restarted, WHOLE).await);

        for store in [restarted, store(&zone)] {
            let kept =
                [has(&store, "plain").await, has(&store, "thing 0").await, has(&store, "other 0").await];
            assert_eq!(kept, [true, false, true]);
        }
    });
}

#[test]
fn pieces_that_another_process_stores_before_it_ends_are_known_too() {
    runtime().block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        let zone = zone(Some(directory.path()));
        let (old, new) = (store(&zone), store(&zone));
        listed(&new).await;
        put_piece(&old, WHOLE, "thing 0").await;
        assert!(change(&new, b"nothing").await, "as long as there are two");
        drop(old);
        surveyed(&new).await;
        assert!(change(&new, WHOLE).await);
        assert!(!has(&store(&zone), "thing 0").await);
    });
}
