//! Sessions that are learned, prolonged and forgotten, under a clock that only the test moves.

use super::{SessionKey, Sessions};
use millstream_conf::model::StickyLearn;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[allow(clippy::disallowed_methods, reason = "a start for a fake clock")]
fn start() -> Instant {
    Instant::now()
}

fn learning(zone: &str, most: usize) -> StickyLearn {
    let timeout = Duration::from_secs(10);
    StickyLearn { create: [].into(), zone: zone.into(), most, timeout, from_header: false }
}

fn learn(sessions: &Sessions, name: &str, creates: bool, server: &str, now: Instant) {
    sessions.learn(SessionKey::of(name.as_bytes()), creates, &server.into(), now);
}

fn server(sessions: &Sessions, name: &str, now: Instant) -> Option<String> {
    sessions.server_of(name.as_bytes(), now).map(|server| server.to_string())
}

#[test]
fn a_session_is_its_last_servers_and_goes_on_with_each_request() {
    let (sessions, now) = (Sessions::open(&learning("a", 9), None), start());
    let after = |seconds| now + Duration::from_secs(seconds);
    assert_eq!(server(&sessions, "one", now), None);
    learn(&sessions, "one", false, "a", now);
    assert_eq!(server(&sessions, "one", now), None, "what only goes on does not begin");
    learn(&sessions, "one", true, "a", now);
    assert_eq!(server(&sessions, "one", after(9)).as_deref(), Some("a"));
    learn(&sessions, "one", false, "b", after(9));
    assert_eq!(server(&sessions, "one", after(18)).as_deref(), Some("b"));
    assert_eq!(server(&sessions, "one", after(19)), None, "to look is no request");
    assert_eq!(server(&sessions, "ONE", after(9)), None);
}

#[test]
fn where_there_is_no_room_the_oldest_goes() {
    let (sessions, now) = (Sessions::open(&learning("a", 3), None), start());
    for (seconds, name) in ["one", "two", "three", "one", "four"].iter().enumerate() {
        learn(&sessions, name, true, "a", now + Duration::from_secs(seconds as u64));
    }
    let later = now + Duration::from_secs(5);
    let known = ["one", "two", "three", "four"].map(|name| server(&sessions, name, later).is_some());
    assert_eq!(known, [true, false, true, true]);
}

#[test]
fn a_zone_that_stays_as_it_was_keeps_its_sessions() {
    let (before, now) = (Sessions::open(&learning("a", 9), None), start());
    learn(&before, "one", true, "a", now);
    for (zone, most, known) in [("a", 9, true), ("b", 9, false), ("a", 8, false)] {
        let after = Sessions::open(&learning(zone, most), Some(&before));
        assert_eq!(server(&after, "one", now).is_some(), known, "{zone} {most}");
        assert_eq!(Arc::ptr_eq(&before, &after), known);
    }
}
