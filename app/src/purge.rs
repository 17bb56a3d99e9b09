//! `millstream purge`: asks a running process to purge, and says what it did.

use crate::cli::{NodesAwaited, Purge};
use crate::control;
use millstream_admin::purging::{Many, PurgeBody};
use millstream_conf::load::Options;
use millstream_net::terminal;
use millstream_server::content::purge::nodes::{NodeOutcome, WaitFor};
use millstream_server::content::purge::{Done, PurgeReport};
use std::process::ExitCode;

/// The exit status of a purge that not all nodes have applied yet.
const PENDING: u8 = 2;

pub fn run(options: &Options, purge: &Purge) -> ExitCode {
    let (told, exit) = match carry_out(options, purge) {
        Ok(report) => {
            let exit = match () {
                () if report.found_nothing() => ExitCode::FAILURE,
                () if report.is_pending() => ExitCode::from(PENDING),
                () => ExitCode::SUCCESS,
            };
            (Ok(terminal::fitting(&told(&report), &std::io::stdout()).into_owned()), exit)
        }
        Err(why) => (Err(why), ExitCode::FAILURE),
    };
    let printed = control::print(told);
    if printed == ExitCode::SUCCESS { exit } else { printed }
}

fn carry_out(options: &Options, purge: &Purge) -> Result<PurgeReport, String> {
    let body = body(purge)?;
    let api = control::find(
        options,
        &purge.reach,
        purge.urls.first().or(purge.prefix.first()).map(String::as_str),
    )?;
    let path = match &purge.zone {
        Some(zone) if zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) => {
            format!("/caches/{zone}/purge")
        }
        Some(zone) => return Err(format!("invalid name of a cache zone: \"{zone}\"")),
        None => "/purge".to_owned(),
    };
    let body = serde_json::to_string(&body).map_err(|error| error.to_string())?;
    let answer = control::ask(&api, purge.reach.token.as_deref(), &path, Some(&body))?;
    serde_json::from_slice(&answer).map_err(|error| format!("invalid response: {error}"))
}

fn body(purge: &Purge) -> Result<PurgeBody, String> {
    let many = |texts: &[String]| Many::Several(texts.to_vec());
    let named = [&purge.urls, &purge.prefix, &purge.tag, &purge.key].iter().any(|texts| !texts.is_empty());
    if !named && !purge.all {
        return Err("specify a URL, --prefix URL, --tag TAG, or --zone NAME --all".to_owned());
    }
    if (purge.all || !purge.key.is_empty()) && purge.zone.is_none() {
        return Err("--all and --key need --zone NAME".to_owned());
    }
    Ok(PurgeBody {
        url: many(&purge.urls),
        prefix: many(&purge.prefix),
        key: many(&purge.key),
        key_prefix: Many::default(),
        tags: many(&purge.tag),
        all: purge.all,
        soft: purge.soft,
        wait: match purge.wait {
            NodesAwaited::All => WaitFor::All,
            NodesAwaited::Here => WaitFor::Here,
        },
    })
}

/// One line each. A URL has several keys; if none had entries, one of them is listed.
fn told(report: &PurgeReport) -> String {
    let did = if report.soft { "marked stale" } else { "purged" };
    let notes: String = report.notes.iter().map(|note| format!("{note}\n")).collect();
    let was_there = |done: &Done| done.in_memory != Some(false) || done.on_disk != Some(false);
    if let Some(first) = report.purged.first().filter(|_| report.found_nothing()) {
        return format!("no responses stored in zone {} under {}\n{notes}", first.zone, first.text);
    }
    let purged: String = report
        .purged
        .iter()
        .filter(|done| was_there(done))
        .map(|done| match done.by.as_str() {
            "all" => format!("{did} everything in zone {}\n", done.zone),
            "prefix" => format!("{did} in zone {}: keys with prefix {}\n", done.zone, done.text),
            "tag" => format!("{did} in zone {}: responses with tag {}\n", done.zone, done.text),
            _ => format!("{did} in zone {}: {}\n", done.zone, done.text),
        })
        .collect();
    let absent = match report.purged.first() {
        Some(first) if purged.is_empty() => {
            format!("no responses stored on this node in zone {} under {}\n", first.zone, first.text)
        }
        _ => String::new(),
    };
    let has = |state: &str| report.nodes.iter().any(|node| node.state == state);
    let different_keys = match has("different_keys") {
        true => {
            "a node with different keys may still serve these responses: purge there too, or use the same proxy_cache_key, proxy_cache_tag and \
            proxy_pass on every node\n"
        }
        false => "",
    };
    let pending = match report.is_pending() && (has("waiting") || different_keys.is_empty()) {
        true => "pending: the other nodes will apply the purge once they can be reached\n",
        false => "",
    };
    purged + &absent + &nodes(&report.nodes) + different_keys + pending + &notes
}

/// Empty without a cluster.
fn nodes(nodes: &[NodeOutcome]) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    let name = |node: &NodeOutcome| match node.seconds {
        Some(seconds) => format!("{} ({seconds} s)", node.node),
        None => node.node.clone(),
    };
    let groups = [
        ("in_force", "applied on"),
        ("waiting", "not confirmed yet on"),
        ("cut_off", "cut off:"),
        ("different_keys", "different keys:"),
    ];
    let group = |(state, title): (&str, &str)| {
        let names: Vec<_> = nodes.iter().filter(|node| node.state == state).map(name).collect();
        (!names.is_empty()).then(|| format!("{title} {}", names.join(", ")))
    };
    groups.into_iter().filter_map(group).collect::<Vec<_>>().join("; ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_listed_by_what_became_of_the_purge_there() {
        let of = |states: &[(&str, Option<u64>)]| {
            let outcome = |(at, (state, seconds)): (usize, &(&str, Option<u64>))| NodeOutcome {
                node: format!("n{at}"),
                state: (*state).to_owned(),
                seconds: *seconds,
            };
            nodes(&states.iter().enumerate().map(outcome).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[("in_force", None), ("in_force", None)]), "applied on n0, n1\n");
        assert_eq!(
            of(&[("in_force", None), ("cut_off", Some(12)), ("waiting", None), ("different_keys", None)]),
            "applied on n0; not confirmed yet on n2; cut off: n1 (12 s); different keys: n3\n"
        );
    }
}
