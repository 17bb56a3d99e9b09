//! The pool under a clock that is handed in, with socket pairs for peers.

use super::Pool;
use crate::dial::Dial;
use crate::exchange::Speaker;
use crate::exchange::connection::Connection;
use crate::exchange::connection::tests::{on_runtime, pair};
use crate::peer::Peer;
use millstream_conf::model::{KeepaliveSize, UpstreamKeepalive};
use millstream_net::address::Address;
use millstream_net::clock;
use millstream_wire::Method;
use millstream_wire::h1::head::ResponseHead;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

const LONG: Duration = Duration::from_secs(30);

fn keepalive(size: KeepaliveSize) -> UpstreamKeepalive {
    UpstreamKeepalive {
        size,
        requests: 1000,
        time: Duration::from_secs(3600),
        timeout: Duration::from_secs(60),
    }
}

fn peer(id: u64) -> Peer {
    Peer { id, address: Address::Unix(None), name: "unix:/api.sock".into() }
}

pub(crate) async fn used(id: u64) -> (Box<Connection>, UnixStream) {
    let (connection, theirs) = pair(id);
    again(Box::new(connection), theirs).await.expect("the exchange goes well")
}

async fn again(
    mut connection: Box<Connection>,
    mut theirs: UnixStream,
) -> Option<(Box<Connection>, UnixStream)> {
    connection.begin(Speaker::http1(false), Method::Get, true);
    connection.sent_whole();
    theirs.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.ok()?;
    connection.read_head(&mut ResponseHead::default(), 4096, LONG).await.ok()?;
    connection.read_body(LONG).await.ok()?;
    Some((connection, theirs))
}

#[test]
fn the_one_that_idled_least_is_taken_first_and_only_for_its_peer() {
    on_runtime(async {
        let pool = Pool::new(&keepalive(KeepaliveSize::Fixed(4)));
        let now = clock::now();
        let mut theirs = Vec::new();
        for index in [0, 0, 1] {
            let (connection, end) = used(index).await;
            theirs.push(end);
            pool.put(connection, now);
        }
        assert_eq!(pool.len(), 3);
        assert!(pool.take(&peer(7), &Dial::default(), 0, now).is_none());
        let taken = pool.take(&peer(0), &Dial::default(), 0, now).expect("two idle");
        assert!(taken.is_pooled() && taken.peer() == 0);
        assert_eq!((pool.len(), pool.busy()), (2, 1));
        drop(taken);
        assert_eq!(pool.busy(), 0);
    });
}

#[test]
fn a_full_pool_closes_the_one_that_idled_longest() {
    on_runtime(async {
        let pool = Pool::new(&keepalive(KeepaliveSize::Fixed(2)));
        let now = clock::now();
        let mut theirs = Vec::new();
        for index in 0..3 {
            let (connection, end) = used(index).await;
            theirs.push(end);
            pool.put(connection, now);
        }
        assert_eq!(pool.len(), 2);
        assert!(pool.take(&peer(0), &Dial::default(), 0, now).is_none());
        assert!(
            pool.take(&peer(1), &Dial::default(), 0, now).is_some()
                && pool.take(&peer(2), &Dial::default(), 0, now).is_some()
        );
        let none = Pool::new(&keepalive(KeepaliveSize::Fixed(0)));
        none.put(used(0).await.0, now);
        assert!(none.is_empty());
    });
}

#[test]
fn connections_end_after_their_requests_their_time_and_their_idle_time() {
    on_runtime(async {
        let now = clock::now();
        let conf = UpstreamKeepalive { requests: 2, ..keepalive(KeepaliveSize::Fixed(4)) };
        let pool = Pool::new(&conf);
        let (connection, theirs) = used(0).await;
        pool.put(connection, now);
        let connection = pool.take(&peer(0), &Dial::default(), 0, now).expect("one of two requests");
        let (connection, _theirs) = again(connection, theirs).await.expect("an exchange");
        pool.put(connection, now);
        assert!(pool.is_empty(), "two of two requests");

        let pool = Pool::new(&keepalive(KeepaliveSize::Fixed(4)));
        let (connection, _theirs) = used(0).await;
        pool.put(connection, now);
        assert!(
            pool.take(&peer(0), &Dial::default(), 0, now + Duration::from_secs(61)).is_none(),
            "idle for too long"
        );
        let (connection, _theirs) = used(0).await;
        pool.put(connection, now + Duration::from_secs(3601));
        assert!(pool.is_empty(), "older than keepalive_time");

        // One that grows too old while it idles serves one more request, as in nginx.
        let conf = UpstreamKeepalive { time: Duration::from_secs(30), ..keepalive(KeepaliveSize::Fixed(4)) };
        let pool = Pool::new(&conf);
        let (connection, theirs) = used(0).await;
        pool.put(connection, now);
        let later = now + Duration::from_secs(40);
        let connection =
            pool.take(&peer(0), &Dial::default(), 0, later).expect("it idled for less than its idle time");
        let (connection, _theirs) = again(connection, theirs).await.expect("an exchange");
        pool.put(connection, later);
        assert!(pool.is_empty(), "older than keepalive_time after one more request");
    });
}

#[test]
fn a_connection_that_the_upstream_closed_or_spoke_on_is_dropped_by_the_event() {
    on_runtime(async {
        let pool = Rc::new(Pool::new(&keepalive(KeepaliveSize::Fixed(4))));
        let watch = Pool::tend(Rc::downgrade(&pool));
        let script = async {
            tokio::task::yield_now().await;
            let (connection, closed) = used(0).await;
            pool.put(connection, clock::now());
            let (connection, mut junk) = used(1).await;
            pool.put(connection, clock::now());
            let (connection, _quiet) = used(2).await;
            pool.put(connection, clock::now());
            assert_eq!(pool.len(), 3);
            drop(closed);
            junk.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.expect("sent");
            while pool.len() > 1 {
                tokio::task::yield_now().await;
            }
            assert!(pool.take(&peer(2), &Dial::default(), 0, clock::now()).is_some());
            drop(pool);
        };
        // The watch ends by itself once the pool is gone.
        tokio::join!(watch, script);
    });
}

#[test]
fn without_a_watch_a_dead_connection_is_found_when_it_is_taken() {
    on_runtime(async {
        let pool = Pool::new(&keepalive(KeepaliveSize::Fixed(4)));
        let (connection, theirs) = used(0).await;
        pool.put(connection, clock::now());
        drop(theirs);
        // The runtime has to hear of the close once.
        while pool
            .take(&peer(0), &Dial::default(), 0, clock::now())
            .map(|connection| pool.put(connection, clock::now()))
            .is_some()
        {
            tokio::task::yield_now().await;
        }
        assert!(pool.is_empty());
    });
}

#[test]
fn auto_keeps_as_many_as_were_busy_at_once_within_the_last_minute() {
    on_runtime(async {
        let pool = Pool::new(&keepalive(KeepaliveSize::Auto));
        let start = clock::now();
        let leases: Vec<_> = (0..10).map(|_| pool.lease(start)).collect();
        drop(leases);
        assert_eq!(pool.size(start), 10);
        assert_eq!(pool.size(start + Duration::from_secs(61)), 10, "the minute before still counts");
        assert_eq!(pool.size(start + Duration::from_secs(122)), super::AUTO_LEAST);
        let many: Vec<_> = (0..3000).map(|_| pool.lease(start + Duration::from_secs(122))).collect();
        assert_eq!(pool.size(start + Duration::from_secs(122)), super::AUTO_MOST);
        drop(many);
    });
}
