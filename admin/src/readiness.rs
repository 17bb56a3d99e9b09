//! `/healthz` and `/readyz`: whether the process is there, and whether it should be sent requests.
//!
//! An upstream that fails is no reason to be sent none: what is stored is answered all the same. Before the first check of a
//! `mandatory` upstream has passed, and while the process stops, it should be sent none.

use millstream_net::clock;
use millstream_server::client::Client;
use millstream_server::content::fixed;
use millstream_server::outcome::Outcome;
use millstream_server::request::Request;
use millstream_server::worker::Stage;
use millstream_upstream::PeerState;
use millstream_wire::Headers;

pub(crate) async fn alive(request: &mut Request, client: &mut Client) -> Outcome {
    text(request, client, 200, "alive\n").await
}

pub(crate) async fn ready(request: &mut Request, client: &mut Client) -> Outcome {
    if request.worker.stage() != Stage::Running {
        return text(request, client, 503, "not ready: the process is shutting down\n").await;
    }
    let now = clock::now();
    let is_waiting = |state| matches!(state, PeerState::Checking | PeerState::Down);
    let unchecked = request.generation.shared.groups.iter().find(|group| {
        let states: Vec<PeerState> = group.in_force().accounts(now).map(|account| account.state).collect();
        states.contains(&PeerState::Checking) && states.iter().all(|state| is_waiting(*state))
    });
    match unchecked.map(|group| group.name().to_owned()) {
        None => text(request, client, 200, "ready\n").await,
        Some(name) => {
            let why = format!(
                "not ready: upstream \"{name}\" is waiting for the first health check of its servers\n"
            );
            text(request, client, 503, &why).await
        }
    }
}

async fn text(request: &mut Request, client: &mut Client, status: u16, text: &str) -> Outcome {
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"text/plain; charset=utf-8");
    headers.push(b"X-Content-Type-Options", b"nosniff");
    headers.push(b"Cache-Control", b"no-store");
    fixed::whole(request, client, status, &headers, text.as_bytes()).await
}
