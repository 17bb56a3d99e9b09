//! The blocks that directives stand in.
//!
//! A set of them has room for more. Next: the rows of the features, which say where each directive may stand.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Context {
    Main,
    Events,
    Http,
    Server,
    Location,
    Upstream,
    AcmeIssuer,
    /// Where nginx allows rewriting directives.
    IfInServer,
    /// A location of its own without a path.
    IfInLocation,
    /// A location of its own without a path.
    LimitExcept,
    /// Blocks of free lines, for which no row is looked up.
    Types,
    Map,
    Geo,
    SplitClients,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contexts(u32);

pub const MAIN: Contexts = Contexts::only(Context::Main);
pub const EVENTS: Contexts = Contexts::only(Context::Events);
pub const HTTP: Contexts = Contexts::only(Context::Http);
pub const SERVER: Contexts = Contexts::only(Context::Server);
pub const LOCATION: Contexts = Contexts::only(Context::Location);
pub const UPSTREAM: Contexts = Contexts::only(Context::Upstream);
pub const ACME_ISSUER: Contexts = Contexts::only(Context::AcmeIssuer);
pub const HTTP_SERVER: Contexts = HTTP.or(SERVER);
pub const SERVER_LOCATION: Contexts = SERVER.or(LOCATION);
pub const HTTP_SERVER_LOCATION: Contexts = HTTP_SERVER.or(LOCATION);
pub const UP_TO_IF: Contexts = HTTP_SERVER_LOCATION.or(Contexts::only(Context::IfInLocation));
pub const UP_TO_EXCEPT: Contexts = HTTP_SERVER_LOCATION.or(Contexts::only(Context::LimitExcept));
pub const LOCATION_IF: Contexts = LOCATION.or(Contexts::only(Context::IfInLocation));
pub const EVERYWHERE: Contexts = MAIN
    .or(EVENTS)
    .or(UP_TO_IF)
    .or(UP_TO_EXCEPT)
    .or(UPSTREAM)
    .or(ACME_ISSUER)
    .or(Contexts::only(Context::IfInServer));

/// From the outermost.
const NAMES: [(Context, &str); 14] = [
    (Context::Main, "main"),
    (Context::Events, "events"),
    (Context::Http, "http"),
    (Context::Server, "server"),
    (Context::Location, "location"),
    (Context::Upstream, "upstream"),
    (Context::AcmeIssuer, "acme_issuer"),
    (Context::IfInServer, "if in server"),
    (Context::IfInLocation, "if in location"),
    (Context::LimitExcept, "limit_except"),
    (Context::Types, "types"),
    (Context::Map, "map"),
    (Context::Geo, "geo"),
    (Context::SplitClients, "split_clients"),
];

impl Contexts {
    pub const NONE: Contexts = Contexts(0);

    pub const fn only(context: Context) -> Contexts {
        Contexts(1 << context as u8)
    }

    pub const fn or(self, others: Contexts) -> Contexts {
        Contexts(self.0 | others.0)
    }

    pub const fn has(self, context: Context) -> bool {
        self.0 & 1 << context as u8 != 0
    }

    /// From the outermost.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(context, _)| self.has(*context)).map(|(_, name)| name)
    }
}
