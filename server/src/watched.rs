//! What is observed of a request in a location with `shadow on`, and of its response as it passes.
//!
//! Only requests of clients are; most of them are not sampled, which `millstream-shadow` decides. Before: `shadow_zone`; next:
//! `exchange`, which tells of each response.

use crate::client_certificate;
use crate::forwarded;
use crate::request::Request;
use crate::shadow_zone::ShadowZone;
use millstream_net::{Address, clock};
use millstream_shadow::{Ending, Sampled};
use millstream_upstream::Part;
use millstream_wire::Fields;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// A sampled request until its response has ended, which is when it is dropped.
pub struct Watched {
    zone: Arc<ShadowZone>,
    /// `None` once it is told.
    sampled: Option<Box<Sampled>>,
    ending: Ending,
    /// Whether no client asked.
    is_probe: bool,
}

impl Watched {
    /// The same request without credentials, if it is to be sent ([`ShadowZone::probe`]).
    pub fn take_probe(&mut self) -> Option<Watched> {
        let sampled = self.sampled.as_mut()?.take_probe()?;
        Some(Watched { zone: self.zone.clone(), sampled: Some(sampled), ending: Ending::Cut, is_probe: true })
    }

    /// The final head of the response.
    pub fn head(&mut self, status: u16, fields: Fields<'_>) {
        // What follows 101 is no response.
        let Some(sampled) = self.sampled.as_mut().filter(|_| status != 101) else {
            return self.sampled = None;
        };
        sampled.response(status, fields.pairs(), clock::unix_milliseconds());
        if sampled.is_stream() && !self.is_probe {
            // Its end may never come.
            if let Some(sampled) = self.sampled.take() {
                self.zone.observe(|shadow| shadow.streams(*sampled, clock::unix_milliseconds()));
            }
            return;
        }
        // Only a 200 is compared by its body, which may be put aside for a page otherwise.
        self.ending = if status == 200 { Ending::Cut } else { Ending::Whole };
    }

    pub fn part(&mut self, part: &Part<'_>) {
        match part {
            Part::Data(piece) => _ = self.sampled.as_mut().map(|sampled| sampled.piece(piece)),
            Part::End => self.ending = Ending::Whole,
            Part::Empty => {}
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Some(sampled) = self.sampled.take() else { return };
        let (ending, now) = (self.ending, clock::unix_milliseconds());
        self.zone.observe(|shadow| match self.is_probe {
            true => shadow.probed(*sampled, ending, now),
            false => shadow.ended(*sampled, ending, now),
        });
    }
}

/// A client's request is about to be passed on. `None`: it is not observed.
pub fn watch(request: &Request) -> Option<Box<Watched>> {
    if !request.location().settings.shadow || request.descent.wanted.is_some() {
        return None;
    }
    let (zone, location) = request.generation.shared.zones.shadows.of_location(request.route.location)?;
    let head = &request.received.head;
    let observed = millstream_shadow::Request {
        location,
        method: request.method_text(),
        is_tls: request.connection.tls.is_some(),
        host: &request.route.host,
        path: head.path.of(&request.received.bytes),
        query: head.query.map(|query| query.of(&request.received.bytes)),
        client: client(request),
        certificate: client_certificate::shown(request),
    };
    let sampled =
        zone.observe(|shadow| shadow.sent(&observed, request.fields().pairs(), clock::unix_milliseconds()))??;
    let ending = Ending::Cut;
    Some(Box::new(Watched { zone: zone.clone(), sampled: Some(sampled), ending, is_probe: false }))
}

/// As a trusted proxy tells it.
fn client(request: &Request) -> IpAddr {
    match (forwarded::client(request), request.client()) {
        (Some(address), _) => address.ip(),
        (None, Address::Tcp(address)) => address.ip(),
        (None, Address::Unix(_)) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}
