//! The blocks that directives stand in.
//!
//! A set of them has room for more. Next: the rows of the features, which say where each directive may stand.

/// A block that directives stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u8)]
pub enum Context {
    /// The file itself.
    Main,
    Events,
    Http,
    /// `server` in `http`.
    Server,
    Location,
    Upstream,
    /// `acme_issuer` in `http`.
    AcmeIssuer,
    /// `if` in a server, where nginx lets stand what rewrites.
    IfInServer,
    /// `if` in a location, which is a location of its own without a path.
    IfInLocation,
    /// `limit_except` in a location, which is such a one too.
    LimitExcept,
    /// Blocks of free lines, which no row is asked about.
    Types,
    Map,
    Geo,
    SplitClients,
}

/// A set of contexts, one bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contexts(u32);

/// Only the file itself.
pub const MAIN: Contexts = Contexts::only(Context::Main);
/// Only `events`.
pub const EVENTS: Contexts = Contexts::only(Context::Events);
/// Only `http`.
pub const HTTP: Contexts = Contexts::only(Context::Http);
/// Only `server`.
pub const SERVER: Contexts = Contexts::only(Context::Server);
/// Only `location`.
pub const LOCATION: Contexts = Contexts::only(Context::Location);
/// Only `upstream`.
pub const UPSTREAM: Contexts = Contexts::only(Context::Upstream);
/// Only `acme_issuer`.
pub const ACME_ISSUER: Contexts = Contexts::only(Context::AcmeIssuer);
/// `http` and `server`.
pub const HTTP_SERVER: Contexts = HTTP.or(SERVER);
/// `server` and `location`.
pub const SERVER_LOCATION: Contexts = SERVER.or(LOCATION);
/// `http`, `server` and `location`.
pub const HTTP_SERVER_LOCATION: Contexts = HTTP_SERVER.or(LOCATION);
/// The same, and an `if` in a location.
pub const UP_TO_IF: Contexts = HTTP_SERVER_LOCATION.or(Contexts::only(Context::IfInLocation));
/// The same without it, and a `limit_except`.
pub const UP_TO_EXCEPT: Contexts = HTTP_SERVER_LOCATION.or(Contexts::only(Context::LimitExcept));
/// `location` and an `if` in it.
pub const LOCATION_IF: Contexts = LOCATION.or(Contexts::only(Context::IfInLocation));
/// Every context whose blocks hold directives.
pub const EVERYWHERE: Contexts = MAIN
    .or(EVENTS)
    .or(UP_TO_IF)
    .or(UP_TO_EXCEPT)
    .or(UPSTREAM)
    .or(ACME_ISSUER)
    .or(Contexts::only(Context::IfInServer));

/// Every context with its name, from the outermost.
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
    /// None.
    pub const NONE: Contexts = Contexts(0);

    /// One context.
    pub const fn only(context: Context) -> Contexts {
        Contexts(1 << context as u8)
    }

    /// These and others.
    pub const fn or(self, others: Contexts) -> Contexts {
        Contexts(self.0 | others.0)
    }

    /// Whether a context is among them.
    pub const fn has(self, context: Context) -> bool {
        self.0 & 1 << context as u8 != 0
    }

    /// Their names, in order from the outermost.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(context, _)| self.has(*context)).map(|(_, name)| name)
    }
}
