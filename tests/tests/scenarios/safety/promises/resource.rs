//! What one URL of a random API is: for whom it makes its answers, what it says of caching, how it sends them, what breaks.

/// What an answer is personal by: the request field that the API looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Cookie,
    Authorization,
    ApiKey,
    /// No name that anybody knows, but one with "session" in it.
    Session,
    /// A field that no list of credentials can know.
    Tenant,
    /// Echoed in Access-Control-Allow-Origin.
    Origin,
    Language,
    Host,
    /// The client's address, as the API is told it.
    Address,
    /// The same, as a CDN in front tells it in a field of its own.
    Behind,
    /// Who has logged in at a proxy in front, as that tells it.
    User,
    /// The client's certificate, which the API is told of in a field whose name does not show it.
    Certificate,
}

/// By which of these a random API answers, each as often as its weight says.
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

    /// Whether a client writes the field itself; the others are written for it.
    pub fn is_sent(self) -> bool {
        !matches!(self, By::Host | By::Address | By::Certificate)
    }

    /// Of each of the two sides that people are on.
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

/// What the API says of caching. What may be stored is fresh for a second, or for longer than any history takes.
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

    /// It is for one request alone.
    pub fn forbids(self) -> bool {
        matches!(self, Caching::NoStore | Caching::Private | Caching::SetsCookie)
    }

    /// It says itself that it is for everybody, credentials or not.
    pub fn is_for_all(self) -> bool {
        matches!(self, Caching::SharedMaxAge | Caching::Public)
    }
}

/// How an answer comes. Numbers are bytes of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// With its length.
    Whole(usize),
    /// In chunks, with pauses.
    Chunked(usize),
    /// Until the connection ends.
    Closing(usize),
    /// An event stream without an end.
    Events,
    /// With its length, but half of it never comes.
    Stalls(usize),
    /// Not even a head comes.
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

    /// Who asks for it has to leave before its end.
    pub fn is_endless(self) -> bool {
        matches!(self, Delivery::Events | Delivery::Stalls(_) | Delivery::Mute)
    }

    /// Bytes of a whole body.
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

/// What the API does instead of answering while it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Fails,
    /// Half of the body, then the end of the connection.
    Cuts,
    Refuses,
    Slow,
}

impl Trouble {
    pub const ALL: [Trouble; 4] = [Trouble::Fails, Trouble::Cuts, Trouble::Refuses, Trouble::Slow];
}

/// One URL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resource {
    pub by: Option<By>,
    /// Vary names the field.
    pub varies: bool,
    pub caching: Caching,
    pub delivery: Delivery,
    pub trouble: Trouble,
    /// Answers have an ETag, and the API confirms its last one.
    pub tagged: bool,
}

/// The body of the answer with a number: every line says whose it is, so what is mixed shows wherever it is.
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

/// One event of a stream.
pub fn event(id: usize, number: usize) -> Vec<u8> {
    format!("data: made {id:07} event {number:06}\n\n").into_bytes()
}
