//! Variables of what `proxy_cache_vary unlisted` leaves out, as far as the configuration reads them.
//!
//! `unlisted` leaves out fields that seldom mean anything to an API, and does not look at the connection. But where the configuration
//! reads one, in a condition, to choose a resource or in what it sends, the response may depend on it. So the cache
//! compares each such variable: for `if ($bot)` with a `map` of User-Agent the value of `$bot`, which many programs share.
//! Next: `generation`, which has them; `caching/noted`, which reads them.

use crate::variable_name;
use millstream_conf::model::{Http, LocationId, Making, Pass, Regex, ServerName, Settings, Variable, made};
use millstream_conf::variables::{Builtin, Source};
use millstream_wire::unlisted::leaves_out;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Debug)]
pub struct LeftOut {
    variables: Box<[ReadVariable]>,
    /// One per `Http::locations`.
    blocks: Box<[LocationReads]>,
    /// Whether blocks that share a zone differ in what they do.
    differ: bool,
}

#[derive(Debug)]
pub struct ReadVariable {
    /// Of its note: `=` and the variable's name. No field's name begins so (RFC 9110 §5.1).
    pub note: Box<[u8]>,
    pub variable: Variable,
}

/// What a location contributes by itself.
#[derive(Debug)]
struct LocationReads {
    /// By their places, sorted.
    reads: Box<[usize]>,
    /// Of what it decides and sends, as written: two servers may set the same variable to other constants.
    digest: u64,
}

impl ReadVariable {
    /// Whether the request keeps what is read, for later reads ([`Remembered`](crate::remembered::Remembered)).
    pub fn is_remembered(&self) -> bool {
        match &self.variable {
            Variable::Builtin(builtin) => builtin.stays(),
            variable => matches!(variable, Variable::Made(_)),
        }
    }
}

impl LeftOut {
    pub fn read_by(http: &Http) -> LeftOut {
        let mut reader = Reader::of(http);
        let of_locations = http.locations.iter().map(|location| reader.block(&location.settings));
        let mut blocks: Box<[LocationReads]> = of_locations.collect();
        // A location has the same script as its `if` blocks.
        for (at, location) in http.locations.iter().enumerate() {
            let faces = location.faces.iter().flat_map(|face| blocks[face.0 as usize].reads.iter());
            let reads: BTreeSet<usize> = faces.chain(&blocks[at].reads).copied().collect();
            blocks[at].reads = reads.into_iter().collect();
        }
        let zones = http.request_zones.iter().map(|of| &of.zone);
        let zones = zones.chain(http.connection_zones.iter().map(|of| &of.zone));
        zones.for_each(|zone| _ = reader.add(zone.key.variables()));
        let digest = |id: LocationId| blocks[id.0 as usize].digest;
        let cached = http
            .locations
            .iter()
            .zip(&blocks)
            .filter_map(|(location, block)| Some((location.settings.cache()?.zone, block.digest)));
        let (mut of_zones, mut differ) = (HashMap::new(), false);
        for (zone, digest) in cached {
            differ |= *of_zones.entry(zone).or_insert(digest) != digest;
        }
        let mut of_servers = http.servers.iter().map(|server| digest(server.own));
        let first = of_servers.next();
        differ |= of_servers.any(|digest| Some(digest) != first);
        LeftOut { variables: reader.variables.into(), differ, blocks }
    }

    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && !self.differ
    }

    /// Those that may have decided about a request of the location, or that it sends. Behind a redirect, or as a part of another
    /// request, any location may have decided.
    pub fn variables(
        &self,
        own: LocationId,
        location: LocationId,
        is_redirected: bool,
    ) -> impl Iterator<Item = &ReadVariable> + Clone {
        let (own, direct) = (self.reads(own), self.reads(location));
        let of_server = own.iter().filter(|at| direct.binary_search(at).is_err());
        let these = direct.iter().chain(of_server).copied().filter(move |_| !is_redirected);
        let all = (0..self.variables.len()).filter(move |_| is_redirected);
        these.chain(all).map(|at| &self.variables[at])
    }

    fn reads(&self, location: LocationId) -> &[usize] {
        self.blocks.get(location.0 as usize).map(|block| &*block.reads).unwrap_or_default()
    }

    /// What tells the blocks apart by which a request is handled; `None` if all do the same.
    pub fn block(&self, own: LocationId, location: LocationId) -> Option<[u8; 16]> {
        let digest = |id: LocationId| self.blocks.get(id.0 as usize).map_or(0, |block| block.digest);
        self.differ.then(|| (u128::from(digest(own)) << 64 | u128::from(digest(location))).to_be_bytes())
    }
}

const PROTOCOL: Variable = Variable::Builtin(Builtin::ServerProtocol);

struct Reader<'h> {
    http: &'h Http,
    variables: Vec<ReadVariable>,
    /// Those that groups of server names set, and whether any has groups.
    host_slots: BTreeSet<u16>,
    hosts_have_groups: bool,
}

impl<'h> Reader<'h> {
    fn of(http: &'h Http) -> Reader<'h> {
        let names = http.servers.iter().flat_map(|server| &server.names);
        let expressions: Vec<&Regex> = names
            .filter_map(|name| if let ServerName::Regex(regex) = name { Some(regex) } else { None })
            .collect();
        Reader {
            http,
            variables: Vec::new(),
            host_slots: expressions.iter().flat_map(|regex| &regex.slots).map(|(slot, _)| *slot).collect(),
            hosts_have_groups: expressions.iter().any(|regex| has_groups(regex)),
        }
    }

    fn block(&mut self, settings: &Settings) -> LocationReads {
        let templates = settings.templates_before_storing();
        let reads_captures = settings.reads_captures();
        let mut reads = self.add(templates.iter().flat_map(|template| template.variables()));
        for variable in templates.iter().flat_map(|template| template.variables()) {
            // What groups have captured says more than the value that was looked up.
            for part in made::made_of(&self.http.made, variable) {
                let Variable::Made(id) = part else { continue };
                if let Some(Making::Map(map)) =
                    made::find(&self.http.made, *id).and_then(|made| made.making.as_ref())
                    && map
                        .expressions
                        .iter()
                        .any(|(regex, _)| !regex.slots.is_empty() || reads_captures && has_groups(regex))
                {
                    reads.extend(self.add(map.source.variables()));
                }
            }
            let is_of_host = matches!(variable, Variable::Slot(slot) if self.host_slots.contains(slot));
            if is_of_host || reads_captures && self.hosts_have_groups {
                reads.extend(self.add(std::iter::once(&Variable::Builtin(Builtin::Host))));
            }
        }
        let mut digest = DefaultHasher::new();
        templates.iter().for_each(|template| template.source.hash(&mut digest));
        let set = settings.pass().map(Pass::set_headers).unwrap_or_default();
        set.iter().for_each(|field| field.name.hash(&mut digest));
        LocationReads { reads: reads.into_iter().collect(), digest: digest.finish() }
    }

    /// The places of those that are left out.
    fn add<'v>(&mut self, variables: impl Iterator<Item = &'v Variable>) -> BTreeSet<usize> {
        let http = self.http;
        let mut places = BTreeSet::new();
        for variable in variables {
            // What else it has is in the key, or the operator leaves it out.
            let variable = match variable {
                Variable::Builtin(Builtin::Request) => &PROTOCOL,
                other => other,
            };
            let parts = made::made_of(&http.made, variable);
            let left_out = parts.iter().filter(|part| is_left_out(part));
            // A value that is new each time tells nothing but that; what it is made of does.
            match parts.iter().any(|part| part.source() == Source::Once) {
                true => places.extend(left_out.map(|part| self.place(part))),
                false => places.extend(left_out.take(1).map(|_| self.place(variable))),
            }
        }
        places
    }

    fn place(&mut self, variable: &Variable) -> usize {
        let known = self.variables.iter().position(|known| known.variable == *variable);
        known.unwrap_or_else(|| {
            let note = variable_name::written(variable, self.http).replacen('$', "=", 1);
            self.variables.push(ReadVariable { note: note.into_bytes().into(), variable: variable.clone() });
            self.variables.len() - 1
        })
    }
}

/// Besides the whole match.
fn has_groups(regex: &Regex) -> bool {
    regex.groups() > 1
}

fn is_left_out(variable: &Variable) -> bool {
    match (variable, variable.source()) {
        (Variable::RequestHeader(name), Source::Field) => leaves_out(name.as_bytes()),
        (_, source) => matches!(source, Source::Connection | Source::Field),
    }
}
