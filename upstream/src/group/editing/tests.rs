//! Edits of a group: who stays who, what the state file holds, and that a failed edit changes nothing.

use super::{Edit, NotEdited, ServerChange};
use crate::account::PeerState;
use crate::group::Server;
use crate::group::fixture::{group, now, server, upstream};
use crate::peers::Version;
use crate::{Ask, Group};
use millstream_conf::model::{BalanceMethod, UpstreamServer};
use millstream_net::address::Address;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn added(port: u16) -> Edit {
    let conf = server(port);
    let addresses = Address::of_peer(&conf.address).into_iter().collect();
    Edit::Add(Server::of(&conf, addresses, &[]))
}

/// The names of the peers with their ids, primary servers first.
fn told(group: &Group) -> Vec<(u64, String)> {
    group.in_force().iter().map(|peer| (peer.id, peer.name.to_string())).collect()
}

fn named(told: &[(u64, &str)]) -> Vec<(u64, String)> {
    told.iter().map(|(id, name)| (*id, (*name).to_owned())).collect()
}

#[test]
fn who_stays_keeps_its_number_and_no_number_comes_twice() {
    let group = group(
        BalanceMethod::RoundRobin,
        vec![server(1), UpstreamServer { backup: true, ..server(9) }, server(2)],
    );
    assert_eq!(told(&group), named(&[(1, "127.0.0.1:1"), (2, "127.0.0.1:2"), (3, "127.0.0.1:9")]));
    assert_eq!(group.edit(&added(3)).expect("room"), [4]);
    assert!(group.edit(&Edit::Remove(2)).expect("it is there").is_empty());
    assert_eq!(told(&group), named(&[(1, "127.0.0.1:1"), (4, "127.0.0.1:3"), (3, "127.0.0.1:9")]));
    assert!(matches!(group.edit(&Edit::Remove(2)), Err(NotEdited::NoServer)));
    assert_eq!(group.edit(&added(2)).expect("room"), [5], "the same address later is another server");
    let heavier = ServerChange { weight: Some(7), ..ServerChange::default() };
    assert_eq!(group.edit(&Edit::Change(3, heavier)).expect("the backup"), [3]);
    let weights: Vec<_> = group.in_force().accounts(now()).map(|a| (a.id, a.parameters.weight)).collect();
    assert_eq!(weights, [(1, 1), (4, 1), (5, 1), (3, 7)]);
    for id in [1, 3, 4, 5] {
        group.edit(&Edit::Remove(id)).expect("it is there");
    }
    assert_eq!(told(&group), []);
}

#[test]
fn one_that_drains_says_so_whatever_else_keeps_requests_from_it() {
    let group = group(BalanceMethod::RoundRobin, vec![server(1), server(2)]);
    let version = Version::of(group.in_force());
    let ask = Ask { key: b"", session: None, tried: &mut version.tried(0), now: now() };
    let failing = version.choose(ask).expect("live");
    let id = failing.peer().id;
    assert!(failing.failed(now()));
    let change = ServerChange { drain: Some(true), ..ServerChange::default() };
    group.edit(&Edit::Change(id, change)).expect("it is there");
    let told = group.in_force().accounts(now()).find(|account| account.id == id).expect("it is there");
    assert_eq!((told.state, told.parameters.drain), (PeerState::Unavail, true));
}

#[test]
fn of_servers_with_one_address_each_keeps_its_number() {
    let backup = |port| match added(port) {
        Edit::Add(server) => Edit::Add(Server { backup: true, ..server }),
        edit => edit,
    };
    let group = group(BalanceMethod::RoundRobin, vec![server(1), server(1)]);
    let ids = || {
        group.in_force().accounts(now()).map(|a| (a.id, a.backup, a.parameters.weight)).collect::<Vec<_>>()
    };
    assert_eq!(group.edit(&backup(1)).expect("room"), [3]);
    assert_eq!(group.edit(&added(1)).expect("room"), [4], "it is not the backup");
    let heavier = ServerChange { weight: Some(7), ..ServerChange::default() };
    assert_eq!(group.edit(&Edit::Change(2, heavier)).expect("it is there"), [2]);
    assert_eq!(ids(), [(1, false, 1), (2, false, 7), (4, false, 1), (3, true, 1)]);
    assert!(group.edit(&Edit::Remove(1)).expect("it is there").is_empty());
    assert_eq!(ids(), [(2, false, 7), (4, false, 1), (3, true, 1)]);
    assert!(group.edit(&Edit::Remove(4)).expect("it is there").is_empty());
    assert_eq!(ids(), [(2, false, 7), (3, true, 1)]);
}

#[test]
fn a_server_is_down_or_it_drains_and_comes_back() {
    let group = group(BalanceMethod::RoundRobin, vec![server(1), server(2)]);
    let state = |change: ServerChange| {
        group.edit(&Edit::Change(1, change)).expect("it is there");
        group.in_force().accounts(now()).next().map(|account| account.state)
    };
    let change = ServerChange::default;
    assert_eq!(state(ServerChange { drain: Some(true), ..change() }), Some(PeerState::Draining));
    assert_eq!(state(ServerChange { down: Some(true), ..change() }), Some(PeerState::Down));
    assert_eq!(state(ServerChange { down: Some(false), ..change() }), Some(PeerState::Up));
    assert_eq!(state(ServerChange { down: Some(true), ..change() }), Some(PeerState::Down));
    assert_eq!(state(ServerChange { drain: Some(true), ..change() }), Some(PeerState::Draining));
}

fn kept(path: &Path, servers: Vec<UpstreamServer>) -> Arc<Group> {
    let mut conf = upstream(BalanceMethod::RoundRobin, servers);
    conf.state = Some(path.to_path_buf());
    let addresses: Vec<Vec<Address>> =
        conf.servers.iter().map(|server| Address::of_peer(&server.address).into_iter().collect()).collect();
    Group::open(&conf, &addresses, None)
}

#[test]
fn an_edit_is_in_the_state_file_when_it_is_in_force() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("api.conf");
    let group = kept(&path, vec![server(1)]);
    let read = || fs::read_to_string(&path).expect("it is there");
    group.edit(&added(2)).expect("room");
    assert_eq!(read(), "server 127.0.0.1:1;\nserver 127.0.0.1:2;\n");
    let change = ServerChange {
        weight: Some(5),
        max_fails: Some(0),
        fail_timeout: Some(Duration::from_millis(1500)),
        max_conns: Some(9),
        slow_start: Some(Duration::from_secs(30)),
        route: Some("b".into()),
        drain: Some(true),
        ..ServerChange::default()
    };
    group.edit(&Edit::Change(2, change)).expect("it is there");
    let all = "server 127.0.0.1:2 weight=5 max_conns=9 max_fails=0 fail_timeout=1500ms slow_start=30s route=b drain;\n";
    assert_eq!(read(), format!("server 127.0.0.1:1;\n{all}"));
    group.edit(&Edit::Remove(1)).expect("it is there");
    assert_eq!(read(), all);
    assert_eq!(fs::read_dir(folder.path()).expect("a directory").count(), 1, "no temporary file stays");
}

#[test]
fn what_cannot_be_written_is_not_put_in_force() {
    let folder = tempfile::tempdir().expect("a directory");
    let group = kept(&folder.path().join("missing/api.conf"), vec![server(1)]);
    assert!(matches!(group.edit(&added(2)), Err(NotEdited::Unwritten(_))));
    assert_eq!(told(&group), named(&[(1, "127.0.0.1:1")]));
}

#[test]
fn editors_do_not_lose_each_others_servers() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("api.conf");
    let group = kept(&path, vec![server(1)]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let group = &group;
            scope.spawn(move || {
                for port in 0..10 {
                    group.edit(&added(100 + thread * 10 + port)).expect("room");
                }
            });
        }
    });
    assert_eq!(told(&group).len(), 41);
    assert_eq!(fs::read_to_string(&path).expect("it is there").lines().count(), 41);
}

#[test]
fn an_edit_that_a_reload_did_not_read_is_in_the_group_that_it_puts_in_force() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("api.conf");
    let before = kept(&path, vec![server(1)]);
    let edits = before.edits();
    // Read now; it comes in force once there is another server, and the first one drains.
    let after = kept(&path, vec![server(1)]);
    before.edit(&added(2)).expect("room");
    let drains = ServerChange { drain: Some(true), ..ServerChange::default() };
    before.edit(&Edit::Change(1, drains)).expect("it is there");
    after.succeed(&before, edits);
    assert_eq!(told(&after), named(&[(1, "127.0.0.1:1"), (2, "127.0.0.1:2")]));
    // Whoever has still the old one edits the new one.
    before.edit(&added(3)).expect("room");
    before.edit(&Edit::Remove(2)).expect("it is there");
    assert_eq!(told(&after), named(&[(1, "127.0.0.1:1"), (3, "127.0.0.1:3")]));
    assert_eq!(told(before.latest()), told(&after));
    let kept = fs::read_to_string(&path).expect("it is there");
    assert_eq!(kept, "server 127.0.0.1:1 drain;\nserver 127.0.0.1:3;\n");
}

#[test]
fn what_people_wrote_into_the_state_file_holds_where_no_edit_came_in_between() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("api.conf");
    let before = kept(&path, vec![server(1)]);
    before.edit(&added(2)).expect("room");
    let after = kept(&path, vec![server(7), server(2)]);
    after.succeed(&before, before.edits());
    assert_eq!(told(&after), named(&[(1, "127.0.0.1:7"), (2, "127.0.0.1:2")]));
    // A number of the old group is its server's, whichever number that has now.
    before.edit(&Edit::Remove(2)).expect("it is there");
    assert_eq!(told(&after), named(&[(1, "127.0.0.1:7")]));
    assert!(matches!(before.edit(&Edit::Remove(1)), Err(NotEdited::NoServer)));
}
