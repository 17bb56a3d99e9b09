//! The API and the dashboard as `server` sees them: a function that `app` sets once, because their crate is above this one.
//!
//! Nothing is decided here, not even who may use them. Next: `millstream-admin`'s `api`.

use crate::client::Client;
use crate::outcome::Outcome;
use crate::request::Request;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;

pub const EXPLANATION: &str = "the location serves the API";

pub type Answering<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

pub type ApiAnswerer = for<'a> fn(&'a mut Request, &'a mut Client) -> Answering<'a>;

static API: OnceLock<ApiAnswerer> = OnceLock::new();

/// For all workers of the process. Only the first call counts.
pub fn set(api: ApiAnswerer) {
    _ = API.set(api);
}

/// 404 before [`set`].
pub(super) async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    match API.get() {
        Some(api) => api(request, client).await,
        None => Outcome::Status(404),
    }
}
