//! What one URL of a random API is: for whom it makes its answers, what it says of caching, how it sends them, what breaks.

/// What a response is personal by: the request field that the API uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Cookie,
    Authorization,
    ApiKey,
    /// Not a known name, but one that contains "session".
    Session,
    /// A field that no list of credentials can know.
    Tenant,
    Origin,
    Language,
    Host,
    Address,
    /// The same, as a CDN forwards it in a field of its own.
    Behind,
    User,
    /// In a field whose name does not show it.
    Certificate,
}

pub type Weights = &'static [(usize, By)];

impl By {
    pub fn field(self) -> &'static str {
        match self {
            By::Cookie => "Cookie",
            By::Authorization => "Authorization",
            By::ApiKey => "X-Api-Key",
            By::Session => "X-Session-Id",
            By::Tenant => "X-Tenant",
            By::Origin => "Origin",
            By::Language => "Accept-Language",
            By::Host => "Host",
            By::Address => "X-Real-IP",
            By::Behind => "Fly-Client-IP",
            By::User => "X-Forwarded-User",
            By::Certificate => "X-Level",
        }
    }

    pub fn is_sent(self) -> bool {
        !matches!(self, By::Host | By::Address | By::Certificate)
    }

    pub fn value(self, side: usize) -> &'static str {
        let values = match self {
            By::Cookie => ["session=alice", "session=bob"],
            By::Authorization => ["Bearer alice", "Bearer bob"],
            By::ApiKey | By::Session | By::Tenant | By::User => ["alice", "bob"],
            By::Origin => ["https://alice.example", "https://bob.example"],
            By::Language => ["de", "fr"],
            By::Host => ["alice.example", "bob.example"],
            By::Address => ["127.0.0.7", "127.0.0.8"],
            By::Behind => ["192.0.2.7", "192.0.2.8"],
            By::Certificate => ["CN=alice.example", "CN=bob.example"],
        };
        values[side % 2]
    }
}

/// What may be stored is fresh for a second, or for longer than any history takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    Silent,
    MaxAge,
    Long,
    SharedMaxAge,
    Public,
    NoStore,
    Private,
    SetsCookie,
}

impl Caching {
    pub const ALL: [(usize, Caching); 8] = [
        (4, Caching::Silent),
        (4, Caching::MaxAge),
        (3, Caching::Long),
        (1, Caching::SharedMaxAge),
        (1, Caching::Public),
        (1, Caching::NoStore),
        (1, Caching::Private),
        (1, Caching::SetsCookie),
    ];

    pub fn cache_control(self) -> Option<&'static str> {
        match self {
            Caching::Silent => None,
            Caching::MaxAge | Caching::SetsCookie => Some("max-age=1"),
            Caching::Long => Some("max-age=600"),
            Caching::SharedMaxAge => Some("s-maxage=1"),
            Caching::Public => Some("public, max-age=1"),
            Caching::NoStore => Some("no-store"),
            Caching::Private => Some("private, max-age=1"),
        }
    }

    pub fn forbids(self) -> bool {
        matches!(self, Caching::NoStore | Caching::Private | Caching::SetsCookie)
    }

    pub fn is_for_all(self) -> bool {
        matches!(self, Caching::SharedMaxAge | Caching::Public)
    }
}

/// Numbers are bytes of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Whole(usize),
    Chunked(usize),
    Closing(usize),
    Events,
    Stalls(usize),
    Mute,
}

impl Delivery {
    pub const ALL: [(usize, Delivery); 9] = [
        (6, Delivery::Whole(900)),
        (2, Delivery::Whole(40_000)),
        (1, Delivery::Whole(400_000)),
        (3, Delivery::Chunked(5_000)),
        (1, Delivery::Chunked(300_000)),
        (1, Delivery::Closing(3_000)),
        (2, Delivery::Events),
        (1, Delivery::Stalls(8_000)),
        (1, Delivery::Mute),
    ];

    /// Clients have to leave before its end.
    pub fn is_endless(self) -> bool {
        matches!(self, Delivery::Events | Delivery::Stalls(_) | Delivery::Mute)
    }

    pub fn length(self) -> usize {
        match self {
            Delivery::Whole(length)
            | Delivery::Chunked(length)
            | Delivery::Closing(length)
            | Delivery::Stalls(length) => length,
            Delivery::Events | Delivery::Mute => 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Fails,
    Cuts,
    Refuses,
    Slow,
}

impl Trouble {
    pub const ALL: [Trouble; 4] = [Trouble::Fails, Trouble::Cuts, Trouble::Refuses, Trouble::Slow];
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resource {
    pub by: Option<By>,
    pub varies: bool,
    pub caching: Caching,
    pub delivery: Delivery,
    pub trouble: Trouble,
    /// Responses have an ETag, and the API confirms its latest one.
    pub tagged: bool,
}

/// Every line names the response, so that mixing shows anywhere.
pub fn content(id: usize, length: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(length + 40);
    let mut line = 0;
    while body.len() < length {
        body.extend_from_slice(format!("made {id:07} line {line:06}\n").as_bytes());
        line += 1;
    }
    body.truncate(length);
    body
}

pub fn event(id: usize, number: usize) -> Vec<u8> {
    format!("data: made {id:07} event {number:06}\n\n").into_bytes()
}
