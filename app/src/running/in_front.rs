//! The start of a process in front of an API that flags describe, without a file: `serve` and `shadow`.
//!
//! Before: `start`; `serve_url`, which makes the configuration.

use super::complain;
use super::start::start;
use crate::account::with_default_user;
use crate::cli::{Caching, Front};
use crate::{opener, serve_url};
use millstream_conf::load::Loaded;
use millstream_conf::model::Level;
use millstream_net::listener::OpenError;
use millstream_net::{Address, privileges};
use millstream_origin::DemoOptions;
use millstream_server::generation::Shared;
use std::process::ExitCode;

/// In front of an API; `caching`: `None` only observes; `may_end`: whether it also ends without a signal from outside. `ready` is
/// called in the process that serves, once it listens.
pub fn in_front(
    front: &Front,
    caching: Option<&Caching>,
    may_end: bool,
    ready: impl FnOnce(&Shared),
) -> ExitCode {
    opener::prepare();
    let mut urls = front.urls.clone();
    let mut bound = None;
    if urls.is_empty() {
        match millstream_origin::bind() {
            Ok(demo) => {
                urls.push(format!("http://{}", demo.address));
                bound = Some(demo);
            }
            Err(error) => return complain(&format!("cannot start the demo API: {error}")),
        }
    }
    let socket = serve_url::sockets::own(&serve_url::address_of(front));
    if let Err(why) = &socket {
        eprintln!(
            "millstream: [warn] no control socket: {why}; millstream purge, explain and top cannot find this process. \
             Set XDG_RUNTIME_DIR to a directory that belongs to this user"
        );
    }
    let socket = socket.ok();
    let changes = privileges::may_change_user();
    let loaded = match serve_url::configuration(front, caching, &urls, socket.as_deref()) {
        Ok(loaded) => with_default_user(loaded, changes),
        Err(message) => return complain(&message),
    };
    let itself = loaded.configuration.as_ref().and_then(|found| serve_url::api::is_itself(front, found));
    if let Some(message) = serve_url::refusal(front, caching, &loaded).or(itself) {
        return complain(&message);
    }
    let flags = (front.clone(), caching.cloned(), urls.clone());
    let again = move || {
        let (front, caching, urls) = &flags;
        match serve_url::configuration(front, caching.as_ref(), urls, socket.as_deref()) {
            Ok(loaded) => with_default_user(loaded, changes),
            Err(_) => Loaded::default(),
        }
    };
    let dashboard =
        loaded.configuration.as_ref().and_then(|found| found.http.dashboard.as_ref()).map(Address::from);
    let hint = |errors: &[OpenError]| serve_url::given::hint(front, dashboard.as_ref(), errors);
    let simulated = bound.is_some();
    let mut demo = None;
    let code = start(Box::new(again), loaded, hint, may_end, |shared, listenings| {
        // It has threads, which come after the change of the user; who connects before waits for it.
        match bound.map(|bound| bound.start(&DemoOptions::default())).transpose() {
            Ok(started) => demo = started,
            Err(error) => {
                shared.logs.main.write(Level::Emerg, format_args!("cannot start the demo API: {error}"));
            }
        }
        serve_url::greeting::greet(shared, listenings, (front, caching), &urls, simulated);
        serve_url::api::look(shared, &urls);
        ready(shared);
    });
    drop(demo);
    code
}
