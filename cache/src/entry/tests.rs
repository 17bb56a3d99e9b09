//! What goes into an entry comes out again, and it is as small as it is meant to be.

use super::*;
use crate::body::FileBody;
use crate::samples::{head, start};
use crate::tags::Tag;
use std::path::Path;

fn entry(lines: &[(&str, &str)], body: Body) -> Arc<Entry> {
    let head = head(lines, None, 60, start());
    Arc::new(Entry::new(b"the key", None, (7, 8), head.view(), body))
}

fn memory(length: usize) -> Body {
    Body::Memory(Bytes::from(vec![3; length]).into())
}

#[test]
fn a_body_is_the_same_wherever_it_is_kept() {
    for length in [0, 1, SMALL_BODY, SMALL_BODY + 1] {
        let entry = entry(&[("ETag", "\"a\"")], memory(length));
        assert_eq!(entry.length(), length as u64);
        assert_eq!(entry.body_in_memory(), Some(&vec![3; length][..]));
        assert_eq!(entry.body().memory().map(|bytes| &bytes[..]), entry.body_in_memory());
        assert_eq!((entry.key(), entry.head().etag()), (&b"the key"[..], Some(&b"\"a\""[..])));
    }
    let file = FileBody::new(Arc::from(Path::new("/a")), 1, 5);
    let entry = entry(&[], Body::File(file));
    assert!(entry.body_in_memory().is_none() && entry.body_in_file().is_some() && entry.length() == 5);
}

#[test]
fn what_few_entries_have_is_kept_too() {
    let mut head = head(&[("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], None, 60, start());
    head.tags = Tags::from(vec![Tag::of(b"a")]);
    head.part = Some(Part { first: 1, last: 2, complete: None });
    let entry = Entry::new(b"k", None, (1, 1), head.view(), memory(2));
    assert_eq!((entry.head().tags, entry.head().part), (&head.tags, head.part));
    assert_eq!(entry.head().last_modified, Some(784_111_777));
    assert_eq!((entry.lifetime(), entry.age(start())), (head.lifetime, 0));
    for coding in Coding::ALL {
        assert!(
            entry.coded_body(coding).is_none() && entry.claim_coding(coding) && !entry.claim_coding(coding)
        );
        let cost = entry.cost();
        let added = entry.coded_cost(1);
        assert!(entry.keep_coded(coding, Bytes::from_static(b"z").into()));
        assert!(!entry.keep_coded(coding, Bytes::new().into()));
        assert_eq!(entry.coded_body(coding).map(|held| &held[..]), Some(&b"z"[..]));
        assert_eq!(entry.cost(), cost + added);
    }
}

#[test]
fn an_entry_takes_128_bytes_beside_its_block() {
    assert_eq!(counted::<Entry>(), 128);
}
