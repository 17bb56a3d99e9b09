//! Listening on loopback ports that the kernel chooses, and on unix sockets in folders of their own.

use super::*;
use crate::connect::connect;
use millstream_conf::model::{ServerId, SocketKeepalive};
use millstream_conf::source::Span;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, IntoRawFd};
use std::path::Path;
use std::time::Duration;

fn on_runtime<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

fn listener(address: ListenAddress) -> Listener {
    Listener {
        address,
        span: Span::default(),
        ssl: false,
        proxy_protocol: false,
        http2: false,
        backlog: 511,
        reuseport: false,
        deferred: false,
        sndbuf: None,
        rcvbuf: None,
        so_keepalive: None,
        ipv6only: true,
        owner_only: false,
        optional: false,
        servers: vec![ServerId(0)],
        default_server: ServerId(0),
    }
}

fn tcp(address: &str) -> Listener {
    listener(ListenAddress::Tcp(address.parse().expect("an address")))
}

fn unix(path: &Path) -> Listener {
    listener(ListenAddress::Unix(path.to_path_buf()))
}

fn open_one(listener: Listener, sockets: usize) -> Arc<Listening> {
    open(&[listener], sockets, Inherited::none(), &[]).expect("free").listenings.remove(0)
}

#[test]
fn every_socket_of_an_address_shares_its_port_and_each_connection_is_accepted_once() {
    on_runtime(async {
        let listening = open_one(tcp("127.0.0.1:0"), 3);
        assert_eq!(listening.sockets(), 3);
        let acceptors: Vec<Acceptor> =
            (0..3).flat_map(|worker| listening.acceptor(worker, 3).expect("registered")).collect();
        assert_eq!(acceptors.len(), 3);
        for _ in 0..20 {
            let client = connect(&listening.local(), None).await.expect("it listens");
            let (stream, from) = poll_all(&acceptors).await;
            assert_eq!(from, client.local().expect("open"));
            assert_eq!(stream.peer(), from);
        }
    });
}

async fn poll_all(acceptors: &[Acceptor]) -> (crate::Stream, Address) {
    std::future::poll_fn(|context| {
        for acceptor in acceptors {
            if let std::task::Poll::Ready(accepted) = acceptor.poll_accept(context) {
                return std::task::Poll::Ready(accepted.expect("accepted"));
            }
        }
        std::task::Poll::Pending
    })
    .await
}

#[test]
fn sockets_are_spread_so_that_none_is_without_a_worker_nor_a_worker_without_one() {
    on_runtime(async {
        let listening = open_one(tcp("127.0.0.1:0"), 3);
        let counts = |workers: usize| -> Vec<usize> {
            (0..workers)
                .map(|worker| listening.acceptor(worker, workers).expect("registered").len())
                .collect()
        };
        assert_eq!(counts(1), [3]);
        assert_eq!(counts(2), [2, 1]);
        assert_eq!(counts(3), [1, 1, 1]);
        assert_eq!(counts(5), [1, 1, 1, 1, 1]);
    });
}

#[test]
fn a_port_in_use_by_others_is_an_error_even_where_they_share_it() {
    let other = open_one(tcp("127.0.0.1:0"), 1);
    let Address::Tcp(taken) = other.local() else { panic!("TCP was asked for") };
    let wanted = [tcp("127.0.0.1:0"), tcp(&taken.to_string())];
    let errors = open(&wanted, 2, Inherited::none(), &[]).expect_err("it is in use");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].index, 1);
    assert_eq!(
        errors[0].to_string(),
        format!("cannot listen on {taken}: another process listens there already")
    );
}

#[test]
fn a_port_that_a_connection_uses_is_not_taken_for_one_that_a_process_listens_at() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (theirs, _) = listener.accept().expect("it came");
    let taken = ours.local_addr().expect("connected");
    let told = || {
        let errors = open(&[tcp(&taken.to_string())], 1, Inherited::none(), &[]).expect_err("it is in use");
        errors[0].to_string()
    };
    let expected =
        format!("cannot listen on {taken}: no process listens there, but a connection uses this port");
    assert_eq!(told(), expected);
    // Whoever closes first keeps the port for a while.
    drop(ours);
    drop(theirs);
    assert_eq!(told(), expected);
}

#[test]
fn every_address_that_fails_is_told() {
    let wanted = [tcp("192.0.2.1:8080"), tcp("127.0.0.1:0"), unix(Path::new("/nowhere/at/all.sock"))];
    let errors = open(&wanted, 1, Inherited::none(), &[]).expect_err("two of three cannot be");
    let texts: Vec<String> = errors.iter().map(OpenError::to_string).collect();
    assert_eq!(texts[0], "cannot listen on 192.0.2.1:8080: this machine does not have this address");
    assert!(texts[1].starts_with("cannot listen on unix:/nowhere/at/all.sock: "), "{texts:?}");
}

#[test]
fn a_wildcard_and_an_address_of_the_same_port_stand_side_by_side() {
    on_runtime(async {
        let wildcard = open_one(tcp("0.0.0.0:0"), 2);
        let Address::Tcp(at) = wildcard.local() else { panic!("TCP was asked for") };
        let both = [tcp("0.0.0.0:0"), tcp(&format!("127.0.0.1:{}", at.port()))];
        let opened = open(&both, 2, Inherited::none(), &[wildcard]).expect("both are ours").listenings;
        let acceptor = opened[1].acceptor(0, 1).expect("registered");
        let _client = connect(&opened[1].local(), None).await.expect("it listens");
        poll_all(&acceptor).await;
    });
}

#[test]
fn a_kept_address_keeps_its_queue_over_a_reload() {
    on_runtime(async {
        let old = open_one(tcp("127.0.0.1:0"), 1);
        let client = connect(&old.local(), None).await.expect("it listens");
        let new = open(&[tcp("127.0.0.1:0")], 3, Inherited::none(), &[Arc::clone(&old)])
            .expect("kept")
            .listenings
            .remove(0);
        assert_eq!(new.local(), old.local());
        assert_eq!(new.sockets(), 3);
        drop(old);
        let acceptors: Vec<Acceptor> = new.acceptor(0, 1).expect("registered");
        let (_, from) = poll_all(&acceptors).await;
        assert_eq!(from, client.local().expect("open"));
        // Fewer workers: nothing is closed.
        let fewer =
            open(&[tcp("127.0.0.1:0")], 1, Inherited::none(), &[new]).expect("kept").listenings.remove(0);
        assert_eq!(fewer.sockets(), 3);
    });
}

#[test]
fn a_closed_address_refuses() {
    on_runtime(async {
        let listening = open_one(tcp("127.0.0.1:0"), 2);
        let address = listening.local();
        drop(listening);
        assert!(connect(&address, None).await.is_err());
    });
}

#[test]
fn options_reach_the_sockets_and_their_connections() {
    on_runtime(async {
        let mut wanted = tcp("127.0.0.1:0");
        wanted.deferred = true;
        wanted.sndbuf = Some(64 * 1024);
        wanted.rcvbuf = Some(32 * 1024);
        wanted.so_keepalive = Some(SocketKeepalive::Times {
            idle: Some(Duration::from_secs(77)),
            interval: Some(Duration::from_secs(7)),
            count: Some(3),
        });
        let listening = open_one(wanted, 1);
        let acceptors = listening.acceptor(0, 1).expect("registered");
        let mut client = connect(&listening.local(), None).await.expect("it listens");
        tokio::io::AsyncWriteExt::write_all(&mut client, b"x").await.expect("room");
        let (stream, _) = poll_all(&acceptors).await;
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.keepalive().expect("readable"));
        assert_eq!(socket.tcp_keepalive_time().expect("readable"), Duration::from_secs(77));
        assert_eq!(socket.tcp_keepalive_interval().expect("readable"), Duration::from_secs(7));
        assert_eq!(socket.tcp_keepalive_retries().expect("readable"), 3);
        // The kernel doubles what is asked for.
        assert_eq!(socket.send_buffer_size().expect("readable"), 128 * 1024);
        assert_eq!(socket.recv_buffer_size().expect("readable"), 64 * 1024);
        assert!(
            rustix::io::fcntl_getfd(stream.as_fd()).expect("readable").contains(rustix::io::FdFlags::CLOEXEC)
        );
    });
}

#[test]
fn version_six_sockets_are_of_version_six_only_unless_asked_otherwise() {
    on_runtime(async {
        for ipv6only in [true, false] {
            let mut wanted = tcp("[::]:0");
            wanted.ipv6only = ipv6only;
            // A machine without version six has nothing to show here.
            let Ok(Opened { listenings: opened, .. }) = open(&[wanted], 1, Inherited::none(), &[]) else {
                return;
            };
            let Address::Tcp(at) = opened[0].local() else { panic!("TCP was asked for") };
            let version_four = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], at.port())));
            assert_eq!(connect(&version_four, None).await.is_err(), ipv6only);
        }
    });
}

#[test]
fn a_unix_socket_is_for_everybody_replaces_a_stale_file_and_leaves_none() {
    use std::os::unix::fs::PermissionsExt;
    on_runtime(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("web.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a free path"));
        assert!(path.exists());
        let listening = open_one(unix(&path), 4);
        assert_eq!(listening.sockets(), 1);
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o666);
        let acceptors: Vec<Acceptor> =
            (0..2).flat_map(|worker| listening.acceptor(worker, 2).expect("registered")).collect();
        let _client = connect(&listening.local(), None).await.expect("it listens");
        let (_, from) = poll_all(&acceptors).await;
        assert_eq!(from, Address::Unix(None));
        drop((listening, acceptors));
        assert!(!path.exists());
    });
}

#[test]
fn a_live_unix_socket_and_a_plain_file_are_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.sock");
    let _first = open_one(unix(&path), 1);
    assert!(open(&[unix(&path)], 1, Inherited::none(), &[]).is_err());
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "mine").expect("written");
    assert!(open(&[unix(&file)], 1, Inherited::none(), &[]).is_err());
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "mine");
}

/// What exec does to the descriptors of a [`hand_over`]: duplicates without an owner in this process.
fn as_inherited(listenings: &[Arc<Listening>], text: &str) -> String {
    let mut handed = String::new();
    for item in text.split_terminator(';') {
        let (fd, address) = item.split_once(':').expect("fd:address");
        let fd: RawFd = fd.parse().expect("a number");
        let mut sockets = listenings.iter().flat_map(|listening| &listening.sockets);
        let socket = sockets.find(|socket| socket.as_raw_fd() == fd).expect("one of ours");
        let flags = rustix::io::fcntl_getfd(socket).expect("readable");
        assert!(!flags.contains(rustix::io::FdFlags::CLOEXEC), "it stays open over exec");
        handed.push_str(&format!("{}:{address};", socket.try_clone().expect("duplicated").into_raw_fd()));
    }
    handed
}

#[test]
fn sockets_handed_over_are_the_next_process_own_with_queue_and_file() {
    on_runtime(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("odd;name %.sock");
        let wanted = [tcp("127.0.0.1:0"), unix(&path)];
        let old = open(&wanted, 2, Inherited::none(), &[]).expect("free").listenings;
        let clients = [
            connect(&old[0].local(), None).await.expect("it listens"),
            connect(&old[1].local(), None).await.expect("it listens"),
        ];
        let text = as_inherited(&old, &hand_over(&old).expect("handed over"));
        let inherited = Inherited::from_text(&text);
        assert!(!inherited.is_empty());
        let addresses = [old[0].local(), old[1].local()];
        drop(old);
        assert!(path.exists());
        let new = open(&wanted, 2, inherited, &[]).expect("inherited").listenings;
        assert_eq!([new[0].local(), new[1].local()], addresses);
        assert_eq!([new[0].sockets(), new[1].sockets()], [2, 1]);
        for listening in &new {
            poll_all(&listening.acceptor(0, 1).expect("registered")).await;
        }
        drop((new, clients));
        assert!(!path.exists());
    });
}

#[test]
fn a_hand_over_can_be_taken_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.sock");
    let listening = open(&[unix(&path)], 1, Inherited::none(), &[]).expect("free").listenings;
    hand_over(&listening).expect("handed over");
    listening[0].take_back().expect("taken back");
    let flags = rustix::io::fcntl_getfd(&listening[0].sockets[0]).expect("readable");
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    drop(listening);
    assert!(!path.exists());
}

#[test]
fn text_that_names_no_listening_socket_gives_none() {
    let unnamed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let elsewhere = unnamed.try_clone().expect("duplicated").into_raw_fd();
    let texts = [
        String::new(),
        "0:127.0.0.1:80;1:127.0.0.1:80;2:127.0.0.1:80".to_owned(),
        "-1:127.0.0.1:80;99999999999:127.0.0.1:80;x:y".to_owned(),
        "1000000:127.0.0.1:80;1000001:unix:%;1000002:unix:%zz;;;:".to_owned(),
        format!("{elsewhere}:127.0.0.2:80"),
    ];
    for text in texts {
        assert!(Inherited::from_text(&text).is_empty(), "{text}");
    }
}

#[test]
fn a_socket_for_its_owner_alone_has_its_mode_from_the_moment_it_is_there() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made/on/the/way/control.sock");
    let mut wanted = unix(&path);
    wanted.owner_only = true;
    // What bind alone gives, before any mode is set by name.
    let bound = folder.path().join("bound.sock");
    let socket = Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).expect("a socket");
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("set");
    socket.bind(&socket2::SockAddr::unix(&bound).expect("short enough")).expect("free");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&bound), 0o600);
    let listening = open_one(wanted, 1);
    assert_eq!(mode(&path), 0o600);
    drop(listening);
    assert!(!path.exists());
}

#[test]
fn a_control_socket_that_cannot_be_is_done_without_unless_somebody_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("written");
    let mut wanted = unix(&file.join("below/control.sock"));
    wanted.owner_only = true;
    let opened = open(&[tcp("127.0.0.1:0"), wanted], 1, Inherited::none(), &[]).expect("the port can be");
    assert_eq!((opened.listenings.len(), opened.missing.len()), (1, 1));
    let mut taken = unix(&folder.path().join("taken.sock"));
    taken.owner_only = true;
    let held = open_one(taken.clone(), 1);
    assert!(open(&[taken], 1, Inherited::none(), &[]).is_err());
    drop(held);
}
