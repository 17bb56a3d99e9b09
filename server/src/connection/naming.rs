//! What the name of a certificate comes to where variables are in it, before there is a request.
//!
//! As in nginx an empty request stands in for one: it knows its connection, the name that the client asks for, and what is made of these. Next:
//! `h1`, which opens connections.

use crate::generation::Generation;
use crate::request::{ConnectionFacts, Request};
use crate::variables;
use crate::worker::Worker;
use millstream_conf::model::Template;
use millstream_net::stream::TlsInfo;
use millstream_net::{Address, clock};
use std::cell::Cell;
use std::rc::Rc;

pub(super) struct Naming<'a> {
    pub(super) worker: &'a Rc<Worker>,
    pub(super) generation: &'a Rc<Generation>,
    pub(super) listener: usize,
    pub(super) remote: &'a Address,
}

impl Naming<'_> {
    pub(super) fn say(&self, text: &Template, name: Option<&str>) -> Vec<u8> {
        let facts = ConnectionFacts {
            tls: Some(Box::new(TlsInfo::imagined(name.map(Into::into)))),
            requests: Cell::new(0),
            ..ConnectionFacts::plain(self.remote.clone(), Address::Unix(None), self.listener)
        };
        let (worker, generation) = (self.worker.clone(), self.generation.clone());
        let mut request = Request::new(worker, generation, Rc::new(facts), clock::now());
        let hosts = &self.generation.shared.hosts[self.listener];
        let found = hosts.find(name.unwrap_or_default().as_bytes());
        let default = self.generation.http().listeners[self.listener].default_server;
        request.route.server = found.map_or(default, |(server, _)| server);
        request.route.location = self.generation.http().server(request.route.server).own;
        variables::value(text, &request)
    }
}
