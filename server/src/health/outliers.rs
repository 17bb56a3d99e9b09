//! The watch over the outliers of a group at work: when it looks, and what the error log is told.
//!
//! It shares the thread of health checks; workers only count. Before: `millstream-upstream`'s `watch`, which decides.

use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_net::timer::Deadline;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::log_error;
use millstream_upstream::{Group, OutlierNews, OutlierWatch};
use std::sync::Arc;

pub(super) async fn watch(group: Arc<Group>, log: ErrorLogs) {
    let Some(outliers) = group.outliers() else { return };
    let mut watch = OutlierWatch::new(outliers, &group.in_force(), clock::now());
    let mut due = Deadline::new();
    loop {
        let peers = group.in_force();
        for news in watch.look(&peers, clock::now()) {
            tell(&news, group.name(), &log);
        }
        due.set(watch.next(&peers));
        drop(peers);
        tokio::select! {
            () = outliers.woken() => {}
            () = due.passed() => {}
        }
    }
}

fn tell(news: &OutlierNews, group: &str, log: &ErrorLogs) {
    match news {
        OutlierNews::Ejected { peer, why, time } => log_error!(
            log,
            Level::Warn,
            "peer {peer} in upstream \"{group}\" is ejected for {} s: {why}",
            time.as_secs_f64()
        ),
        OutlierNews::Returned { peer } => {
            log_error!(log, Level::Notice, "peer {peer} in upstream \"{group}\" is no longer ejected");
        }
    }
}
