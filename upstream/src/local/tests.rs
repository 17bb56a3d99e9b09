//! What a worker keeps when the peers of a group change.

use super::LocalGroup;
use crate::dial::Dial;
use crate::exchange::connection::tests::on_runtime;
use crate::group::fixture::{group, server};
use crate::pool::tests::used;
use millstream_conf::model::BalanceMethod;
use millstream_net::clock;

#[test]
fn connections_of_peers_that_stay_outlive_a_version_and_the_others_are_closed() {
    on_runtime(async {
        let group = group(BalanceMethod::RoundRobin, vec![server(1), server(2)]);
        let local = LocalGroup::new(group.clone());
        let ids: Vec<u64> = local.version().iter().map(|peer| peer.id).collect();
        let mut theirs = Vec::new();
        for id in &ids {
            let (connection, end) = used(*id).await;
            local.pool().put(connection, clock::now());
            theirs.push(end);
        }
        group.publish(|servers| {
            servers.remove(0);
        });
        assert_eq!(local.pool().len(), 2, "nobody has looked yet");
        local.look();
        let version = local.version();
        let [stays] = version.iter().collect::<Vec<_>>()[..] else { panic!("one stays") };
        assert_eq!((stays.id, local.pool().len()), (ids[1], 1));
        assert!(local.pool().take(stays, &Dial::default(), 0, clock::now()).is_some());
    });
}
