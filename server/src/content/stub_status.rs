//! `stub_status`: the counts of connections as a page, in nginx's form, which monitors read.

use super::fixed;
use crate::client::Client;
use crate::outcome::Outcome;
use crate::request::Request;
use crate::variables::Connections;
use millstream_wire::{Headers, Method};

pub const EXPLANATION: &str = "the location serves the status page (stub_status)";

pub async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Outcome::Status(405);
    }
    let Connections { accepted, requests, active, reading, writing, waiting } = Connections::of(request);
    // Whoever is accepted here is handled.
    let page = format!(
        "Active connections: {active} \nserver accepts handled requests\n {accepted} {accepted} {requests} \n\
         Reading: {reading} Writing: {writing} Waiting: {waiting} \n"
    );
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"text/plain");
    fixed::whole(request, client, 200, &headers, page.as_bytes()).await
}
