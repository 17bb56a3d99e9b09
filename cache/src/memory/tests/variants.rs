//! A key's variants are bounded however they are stored, and the one that is used stays.

use super::*;
use crate::memory::slot::VARIANTS;
use crate::policy::Asker;
use crate::samples::miss;
use millstream_wire::Headers;

const VARY: [(&str, &str); 1] = [("Vary", "User-Agent")];

fn agent(name: &str) -> Headers {
    headers(&[("User-Agent", name)])
}

fn ask(front: &mut Front, name: &str) -> Lookup {
    front.lookup(b"key", agent(name).view(), &conf(), start())
}

fn store_variant(permit: FillPermit, name: &str) {
    let mut filling = begin(permit, &VARY, agent(name).view(), start());
    filling.push(Bytes::from_static(b"body"));
    ready(filling.finish());
}

fn stats_of(front: &Front) -> crate::store::StoreStats {
    front.store().stats()
}

#[test]
fn answers_stored_past_the_look_up_count_as_variants_too() {
    let mut front = Front::new(store(&zone(None)));
    store_variant(miss(ask(&mut front, "first")), "first");
    for number in 0..5 * VARIANTS {
        store_variant(front.beside(b"key", Asker::Anybody), &format!("invented {number}"));
        assert!(stats_of(&front).keys <= VARIANTS as u64, "{number}");
    }
    front.store().clone().invalidate(b"key");
    assert_eq!((stats_of(&front).keys, stats_of(&front).memory_bytes), (0, 0));
}

#[test]
fn the_variant_that_is_used_outlives_any_number_of_invented_ones() {
    for beside in [false, true] {
        let mut front = Front::new(store(&zone(None)));
        store_variant(miss(ask(&mut front, "browser")), "browser");
        for number in 0..10 * VARIANTS {
            let name = format!("invented {number}");
            let permit =
                if beside { front.beside(b"key", Asker::Anybody) } else { miss(ask(&mut front, &name)) };
            store_variant(permit, &name);
            if number % 60 == 0 {
                assert!(matches!(ask(&mut front, "browser"), Lookup::Fresh(_)), "{number} {beside}");
            }
        }
        assert_eq!(stats_of(&front).keys, VARIANTS as u64);
    }
}

#[test]
fn a_variant_that_is_being_filled_does_not_go_for_another() {
    let mut front = Front::new(store(&zone(None)));
    store_variant(miss(ask(&mut front, "first")), "first");
    let name = |number| format!("slow {number}");
    let mut permits: Vec<FillPermit> =
        (1..VARIANTS).map(|number| miss(ask(&mut front, &name(number)))).collect();
    permits.push(miss(ask(&mut front, &name(VARIANTS))));
    assert!(matches!(ask(&mut front, "one more"), Lookup::Scarce));
    store_variant(front.beside(b"key", Asker::Anybody), "beside all");
    assert_eq!(stats_of(&front).keys, VARIANTS as u64);
    permits.into_iter().enumerate().for_each(|(at, permit)| store_variant(permit, &name(at + 1)));
    assert!((1..=VARIANTS).all(|number| matches!(ask(&mut front, &name(number)), Lookup::Fresh(_))));
}
