//! Kinds of endpoint, each with its truth.

use super::{START, skewed};
use fastrand::Rng;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

macro_rules! kinds {
    ($($kind:ident)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $($kind),* }
        pub const ALL: &[Kind] = &[$(Kind::$kind),*];
    };
}

kinds! {
    PublicById Noisy PersonalByCookie PersonalByBearer PersonalByKey PersonalByTenant PersonalByAddress
    PersonalByCertificate CsrfForm NonceInJson AbByCookie Language CurrencyCookie Campaign InvalidatedByPost
    ChangesFast ChangesSometimes ChangesRarely RandomOrder RareLeak Streaming Erroring
    PublicForAnonymous Compressed MobileOrDesktop EchoedOrigin OwnPath Pages ChangingEtag WithHead Conditional
    RareRequests OneClient SetsCookie Private OwnLifetime Sorted MembersOnly OneAdmin StaffAndOwner SomePrivate
    Views RandomQuote Toggles VaryLanguage Uuids Articles ApiVersion Clock RarePersonal Greeting MembersArea
    Ranked Styles SameBody Encoded EncodedSecret Handles MembersDotted StaffOrders KeyedCatalog OwnTicket OwnRequestor
    OwnViews EditedInLanguages ForbiddenForMembers RoleCookie ThroughProxy ByForwarded Negotiated Fragment
    MethodOverride Cart FirstVisitCookie SoftError Rollout RolloutByAddress OneCustomer Tenants MeAmongIds GraphQl
    PublicWithBearer UnnamedKey PremiumItems Drafts RankedAndShuffled Jsonp RepeatedArgument Referrals FirstVisit Quota
    LastSeen LaterPersonal CurrencyOfLanguage LateTenant LateRegion LateXml LateOrigin LateLanguage LateAjax RareXml
    MembersToken MembersInLanguages
    SeveralReasons SeveralAndAddress OwnCurrency Feed MembersForm
}

/// So many kinds at random.
pub fn drawn(seed: u64, number: usize) -> Vec<Kind> {
    let mut kinds = ALL.to_vec();
    Rng::with_seed(seed ^ 0x1717).shuffle(&mut kinds);
    kinds.truncate(number);
    kinds
}

/// The value of a credential that nobody was given.
const FORGED: &str = "forged";

/// Clients below this number, if they have a session, may see the orders of others.
const STAFF: usize = 10;

/// Clients that come only after it was watched, some of which send what no one sent before.
const LATE: std::ops::Range<usize> = 40..80;

/// Currencies that one client each has for its own.
const OWN_CURRENCIES: [&str; 6] = ["CHF", "JPY", "SEK", "NOK", "PLN", "CZK"];

/// Items from here on are pages of the client's own.
const OWN: usize = 1_000;

impl Kind {
    /// Whether clients are known by their addresses alone.
    fn is_by_address(self) -> bool {
        matches!(self, Kind::OwnTicket | Kind::OwnRequestor | Kind::OwnViews | Kind::RolloutByAddress)
    }

    /// Whether a client has logged in, if it has a session at all.
    fn has_logged_in(self, client: usize) -> bool {
        match self {
            Kind::MembersToken => client % 4 == 1,
            Kind::MembersInLanguages => matches!(client % 8, 0 | 1 | 4),
            _ if self.has_few_sessions() => client % 8 == 1,
            _ => true,
        }
    }

    /// Whether one client in eight has a session, and three of four no cookies but those of preferences.
    fn has_few_sessions(self) -> bool {
        matches!(self, Kind::SeveralReasons | Kind::SeveralAndAddress | Kind::MembersForm)
    }

    /// Whether a proxy in front passes on the addresses of clients in a field.
    fn is_forwarded(self) -> bool {
        matches!(self, Kind::ThroughProxy | Kind::ByForwarded)
    }
}

pub struct Client {
    pub number: usize,
    pub address: IpAddr,
    session: Option<String>,
    token: String,
    api_key: String,
    tenant: usize,
    certificate: Option<String>,
    language: &'static str,
    currency: Option<&'static str>,
    ab: &'static str,
    agent: usize,
    encoding: &'static str,
    origin: &'static str,
    analytics: String,
}

impl Client {
    /// One client in eight has no cookies, of which every other one has those of preferences.
    fn is_bare(number: usize) -> bool {
        number % 8 == 3
    }

    pub fn new(number: usize, rng: &mut Rng) -> Client {
        let word = |rng: &mut Rng| format!("{:016x}", rng.u64(..));
        // Two clients in ten share an address with another one.
        let host = if number % 10 == 9 { number - 1 } else { number };
        Client {
            number,
            address: IpAddr::V4(Ipv4Addr::new(10, 1, (host / 200) as u8, (host % 200) as u8 + 1)),
            session: (number % 4 != 3).then(|| format!("{number}-{}", word(rng))),
            token: word(rng),
            api_key: word(rng),
            tenant: number % 4,
            certificate: (number.is_multiple_of(2)).then(|| word(rng)),
            language: ["de", "en-US,en;q=0.9", "fr"][rng.usize(..3)],
            currency: [None, None, Some("EUR"), Some("USD")][rng.usize(..4)],
            ab: ["a", "b"][rng.usize(..2)],
            agent: rng.usize(..8),
            encoding: ["gzip, br", "identity"][usize::from(rng.u8(..4) == 0)],
            origin: ["https://a.example", "https://b.example", ""][rng.usize(..3)],
            analytics: format!("GA1.{}.{}", rng.u32(..), rng.u32(..)),
        }
    }
}

#[derive(Clone)]
pub struct Asked {
    pub client: usize,
    pub method: &'static str,
    pub path: String,
    pub query: Option<String>,
    pub fields: Vec<(&'static str, String)>,
    pub address: IpAddr,
    pub certificate: Option<String>,
    item: usize,
}

impl Asked {
    /// The same client asks for what another one asked for.
    pub fn for_that_of(mut self, other: &Asked) -> Asked {
        self.path.clone_from(&other.path);
        self.query.clone_from(&other.query);
        self.item = other.item;
        self
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(of, _)| *of == name).map(|(_, value)| value.as_str())
    }

    /// The session, unless it is forged.
    fn session(&self) -> Option<&str> {
        let session = self.cookie("session").or_else(|| self.cookie("connect.sid"));
        session.filter(|session| !session.contains(FORGED))
    }

    pub fn argument(&self, name: &str) -> Option<&str> {
        self.query.as_deref()?.split('&').find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }

    fn has_key(&self) -> bool {
        let key = self.argument("api_key").or_else(|| self.argument("k"));
        key.is_some_and(|key| key != FORGED)
    }

    pub fn host(&self) -> &str {
        self.field("host").unwrap_or("api.example.com")
    }

    /// The number of the client whose session it has.
    fn member(&self) -> Option<usize> {
        self.session()?.split('-').next()?.parse().ok()
    }

    /// The same request with forged credentials, or without any.
    pub fn with_credentials(mut self, forged: bool) -> Asked {
        let lets_in = |name: &str| matches!(name, "session" | "connect.sid" | "api_key" | "k");
        let change = |pair: &str| -> Option<String> {
            let name = pair.split('=').next().unwrap_or_default();
            match (lets_in(name), forged) {
                (false, _) => Some(pair.to_owned()),
                (true, true) => Some(format!("{name}={FORGED}")),
                (true, false) => None,
            }
        };
        let changed =
            |text: &str, sign: &str| text.split(sign).filter_map(change).collect::<Vec<_>>().join(sign);
        self.query = self.query.as_deref().map(|query| changed(query, "&"));
        for (name, value) in &mut self.fields {
            match *name {
                "cookie" => *value = changed(value, "; "),
                "authorization" | "x-api-key" | "x-tenant" => *value = FORGED.to_owned(),
                _ => {}
            }
        }
        self.fields.retain(|(_, value)| !value.is_empty() && (forged || value != FORGED));
        if let Some(certificate) = &mut self.certificate {
            *certificate = FORGED.to_owned();
        }
        self.certificate = self.certificate.filter(|_| forged);
        self
    }

    fn takes_gzip(&self) -> bool {
        self.field("accept-encoding").is_some_and(|of| of.contains("gzip"))
    }

    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.field("cookie")?.split("; ").find_map(|cookie| cookie.strip_prefix(name)?.strip_prefix('='))
    }
}

pub struct Reply {
    pub status: u16,
    pub fields: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub class: u64,
    pub version: u64,
    pub is_storable: bool,
}

pub struct Endpoint {
    pub kind: Kind,
    pub number: usize,
    /// Requests compared with others.
    pub weight: f64,
    items: usize,
    /// Seconds between changes of one item.
    period: u64,
    versions: HashMap<usize, u64>,
    counter: u64,
    /// Whether nobody reads its bodies any more.
    pub is_silent: bool,
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Endpoint {
    pub fn new(kind: Kind, number: usize, rng: &mut Rng) -> Endpoint {
        let items = match kind {
            Kind::CsrfForm
            | Kind::AbByCookie
            | Kind::RareLeak
            | Kind::PersonalByCookie
            | Kind::Greeting
            | Kind::OneClient => 1,
            Kind::SomePrivate => 25,
            Kind::Articles | Kind::Handles | Kind::MembersForm => 70,
            Kind::PremiumItems => 12,
            _ => rng.usize(6..30),
        };
        let period = match kind {
            Kind::ChangesFast => [3, 7, 20][rng.usize(..3)],
            Kind::ChangesSometimes => [2_000, 4_000, 9_000][rng.usize(..3)],
            Kind::ChangesRarely => [20_000, 60_000, 200_000][rng.usize(..3)],
            Kind::Toggles => 7,
            _ => 10_000_000,
        };
        let weight = match kind {
            Kind::RareRequests => 0.002,
            Kind::OneClient => 0.3,
            // Most of its requests have a session.
            Kind::ForbiddenForMembers => 4.0,
            _ => 0.8 + 0.4 * rng.f64(),
        };
        Endpoint {
            kind,
            number,
            weight,
            items,
            period,
            versions: HashMap::new(),
            counter: 0,
            is_silent: false,
        }
    }

    pub fn ask(&mut self, client: &Client, rng: &mut Rng) -> Asked {
        let item = match self.kind {
            Kind::OwnPath => client.number,
            Kind::StaffAndOwner if client.number > 1 => client.number,
            Kind::StaffAndOwner => rng.usize(2..40),
            // Eight of staff have a session, who see the orders of all; a client sees its own one.
            Kind::StaffOrders if client.number >= STAFF => client.number,
            Kind::StaffOrders => rng.usize(STAFF..STAFF + 10),
            // Pages of the client's own, that no one asked for while it was watched.
            Kind::Handles if (40..50).contains(&client.number) && rng.u8(..5) == 0 => OWN + rng.usize(..3),
            Kind::MeAmongIds | Kind::Drafts if client.session.is_some() && rng.u8(..6) == 0 => {
                OWN + client.number
            }
            // Who has no session is led to no page of members.
            Kind::PremiumItems if client.session.is_none() => skewed(rng, self.items / 2),
            _ => skewed(rng, self.items),
        };
        let base = format!("{:?}", self.kind).to_ascii_lowercase();
        let path = match self.kind {
            Kind::PersonalByCookie | Kind::CsrfForm | Kind::AbByCookie | Kind::RareLeak | Kind::Greeting => {
                format!("/{base}")
            }
            Kind::Campaign | Kind::Pages | Kind::Sorted | Kind::Styles | Kind::KeyedCatalog => {
                format!("/{base}")
            }
            Kind::UnnamedKey | Kind::GraphQl | Kind::Jsonp | Kind::RepeatedArgument | Kind::Referrals => {
                format!("/{base}")
            }
            Kind::MeAmongIds if item >= OWN => format!("/{base}/me"),
            Kind::Uuids => format!("/{base}/6ba7b810-9dad-11d1-80b4-{:012x}", item * 977),
            Kind::Articles => format!("/{base}/{}", article(item)),
            Kind::Handles if item >= OWN => format!("/{base}/{}", ["me", "drafts", "my-page"][item - OWN]),
            Kind::Handles => format!("/{base}/{}", article(item).replace("-story", "")),
            Kind::OneClient => format!("/{base}/status"),
            _ => format!("/{base}/{}", item + 100),
        };
        let query = match self.kind {
            Kind::Campaign => {
                let mut query = format!("q=word{item}");
                if rng.u8(..3) > 0 {
                    query += &format!(
                        "&utm_source={}&utm_campaign=c{}",
                        ["mail", "ads", "x"][rng.usize(..3)],
                        rng.u8(..5)
                    );
                }
                if rng.u8(..3) == 0 {
                    query += &format!("&gclid={:x}", rng.u64(..));
                }
                Some(query)
            }
            Kind::KeyedCatalog => Some(format!("page={item}&api_key={}", client.api_key)),
            Kind::UnnamedKey => Some(format!("page={item}&k={}", client.api_key)),
            Kind::GraphQl => Some(match item {
                3 => "query={me{name}}".to_owned(),
                _ => format!("query={{item(id:$id){{name}}}}&variables={{%22id%22:{item}}}"),
            }),
            Kind::Jsonp => Some(format!("of={}&callback=cb{}", item / 2, item % 2)),
            Kind::RepeatedArgument => {
                let (one, other) = (item / 2, item / 2 + 1);
                let (one, other) = if item % 2 == 0 { (one, other) } else { (other, one) };
                Some(format!("tag=t{one}&tag=t{other}"))
            }
            Kind::Referrals if rng.bool() => Some(format!("of={item}&ref=r{}", rng.u8(..7))),
            Kind::Referrals => Some(format!("of={item}")),
            Kind::Styles => Some(format!("of={item}&style=s{}", rng.u8(..200))),
            Kind::Pages => Some(format!("page={}&per=20", item + 1)),
            Kind::Sorted => Some(format!("of={}&sort={}", item / 2, ["asc", "desc"][item % 2])),
            _ => None,
        };
        let mut cookies = Vec::new();
        let is_plain = self.kind.has_few_sessions() && client.number % 4 != 1;
        if !Client::is_bare(client.number) && !is_plain {
            cookies.push(format!("_ga={}", client.analytics));
        }
        if client.number % 16 != 3 {
            cookies.extend((!is_plain).then(|| format!("ab={}", client.ab)));
            let own = (self.kind == Kind::OwnCurrency && client.number % 8 == 7)
                .then(|| OWN_CURRENCIES[client.number / 8 % OWN_CURRENCIES.len()]);
            cookies.extend(own.or(client.currency).map(|currency| format!("currency={currency}")));
        }
        if self.kind == Kind::RoleCookie && client.session.is_some() {
            cookies.push(format!("role={}", ["user", "editor", "admin"][client.number / 4 % 3]));
        }
        let name = if self.kind == Kind::MembersDotted { "connect.sid" } else { "session" };
        let session = client.session.as_ref().filter(|_| self.kind.has_logged_in(client.number));
        cookies.extend(session.map(|session| format!("{name}={session}")));
        let agent = format!(
            "Mozilla/5.0 ({}) Agent/{}",
            if client.agent.is_multiple_of(3) { "iPhone; Mobile" } else { "X11; Linux" },
            client.agent
        );
        let mut fields = vec![
            ("user-agent", agent),
            ("accept", "*/*".to_owned()),
            ("accept-language", client.language.to_owned()),
            ("accept-encoding", client.encoding.to_owned()),
            ("x-request-id", format!("{:x}", rng.u64(..))),
            ("traceparent", format!("00-{:032x}-{:016x}-01", rng.u128(..), rng.u64(..))),
        ];
        if !cookies.is_empty() && !self.kind.is_by_address() {
            fields.push(("cookie", cookies.join("; ")));
        }
        if !client.origin.is_empty() {
            fields.push(("origin", client.origin.to_owned()));
        }
        let is_late = LATE.contains(&client.number);
        match self.kind {
            Kind::PersonalByBearer => fields.push(("authorization", format!("Bearer {}", client.token))),
            Kind::PersonalByKey => fields.push(("x-api-key", client.api_key.clone())),
            Kind::PersonalByTenant => fields.push(("x-tenant", format!("t{}", client.tenant))),
            Kind::ApiVersion if !client.number.is_multiple_of(3) => {
                fields.push(("x-api-version", format!("{}", client.number % 3)));
            }
            Kind::Conditional if client.number.is_multiple_of(2) => {
                fields.push(("if-none-match", "\"e\"".to_owned()))
            }
            Kind::PublicWithBearer if client.session.is_some() => {
                fields.push(("authorization", format!("Bearer {}", client.token)));
            }
            Kind::LateTenant if is_late => fields.push(("x-tenant", format!("t{}", client.tenant))),
            Kind::LateRegion if is_late => fields.push(("x-region", "asia".to_owned())),
            Kind::LateXml if is_late => fields[1].1 = "application/xml".to_owned(),
            Kind::RareXml if is_late || client.number == 39 => fields[1].1 = "application/xml".to_owned(),
            Kind::LateLanguage if is_late => fields[2].1 = "ja".to_owned(),
            Kind::LateOrigin if is_late => {
                fields.retain(|(name, _)| *name != "origin");
                fields.push(("origin", "https://c.example".to_owned()));
            }
            Kind::LateAjax if !is_late => fields.push(("x-requested-with", "XMLHttpRequest".to_owned())),
            Kind::Tenants => fields.push(("host", format!("t{}.example.com", client.number / 8 % 2))),
            Kind::Fragment if rng.u8(..3) == 0 => {
                fields.push(("x-requested-with", "XMLHttpRequest".to_owned()));
            }
            Kind::MethodOverride if rng.u16(..300) == 0 => {
                fields.push(("x-http-method-override", "DELETE".to_owned()));
            }
            Kind::Negotiated if client.number.is_multiple_of(3) => {
                fields[1].1 = "text/html,application/xhtml+xml".to_owned();
            }
            _ if self.kind.is_forwarded() => fields.push(("x-forwarded-for", client.address.to_string())),
            _ => {}
        }
        let method = match self.kind {
            Kind::Cart if rng.u16(..200) == 0 => "POST",
            Kind::InvalidatedByPost | Kind::EditedInLanguages if rng.u16(..150) == 0 => "POST",
            Kind::WithHead if rng.u8(..3) == 0 => "HEAD",
            _ => "GET",
        };
        let certificate = client.certificate.clone().filter(|_| self.kind == Kind::PersonalByCertificate);
        Asked {
            client: client.number,
            method,
            path,
            query,
            fields,
            address: match self.kind {
                Kind::OwnTicket => IpAddr::V4(Ipv4Addr::new(10, 2, rng.u8(..4), rng.u8(..))),
                _ if self.kind.is_forwarded() => IpAddr::V4(Ipv4Addr::new(10, 3, 0, rng.u8(1..3))),
                _ => client.address,
            },
            certificate,
            item,
        }
    }

    /// On what the response to a request depends, besides time.
    pub fn class(&self, asked: &Asked) -> u64 {
        let session = asked.session();
        let item = (self.number, asked.item);
        match self.kind {
            Kind::PersonalByCookie | Kind::PublicForAnonymous | Kind::RarePersonal | Kind::Greeting => {
                match session {
                    Some(session) if self.kind != Kind::RarePersonal || asked.client % 10 == 2 => {
                        hash((item, session))
                    }
                    _ => hash(item),
                }
            }
            Kind::MembersOnly | Kind::MembersArea | Kind::MembersDotted => hash((item, session.is_some())),
            Kind::StaffOrders => {
                hash((item, asked.member().is_some_and(|number| number < STAFF || number == asked.item)))
            }
            Kind::Drafts | Kind::MeAmongIds if asked.item >= OWN => {
                let is_owner = asked.member().is_some_and(|number| number + OWN == asked.item);
                let who = if self.kind == Kind::MeAmongIds { asked.member() } else { None };
                hash((item.0, if self.kind == Kind::MeAmongIds { 0 } else { item.1 }, is_owner, who))
            }
            Kind::PremiumItems => hash((item, asked.item >= self.items / 2 && session.is_some())),
            Kind::RoleCookie => hash((item, asked.cookie("role"))),
            Kind::ByForwarded => hash((item, asked.field("x-forwarded-for"))),
            Kind::Negotiated => hash((item, asked.field("accept"))),
            Kind::Fragment | Kind::LateAjax => hash((item, asked.field("x-requested-with"))),
            Kind::LateTenant => hash((item, asked.field("x-tenant"))),
            Kind::LateRegion => hash((item, asked.field("x-region"))),
            Kind::LateXml | Kind::RareXml => hash((item, asked.field("accept"))),
            Kind::LateLanguage => hash((item, asked.field("accept-language") == Some("ja"))),
            Kind::LateOrigin => hash((item, asked.field("origin") == Some("https://c.example"))),
            Kind::MethodOverride => hash((item, asked.field("x-http-method-override"))),
            Kind::Cart => {
                let filled = session.filter(|session| self.versions.contains_key(&(hash(session) as usize)));
                hash((item, filled))
            }
            Kind::Rollout => hash((item, asked.member().is_some_and(|member| member % 10 == 4))),
            Kind::RolloutByAddress => hash((item, hash(asked.address).is_multiple_of(10))),
            Kind::OneCustomer => hash((item, asked.member() == Some(38))),
            Kind::Tenants => hash((item, asked.host())),
            Kind::GraphQl if asked.item == 3 => hash((item, session)),
            Kind::RankedAndShuffled | Kind::LastSeen => hash((item, session)),
            Kind::FirstVisit => {
                let visits = self.versions.get(&(hash(asked.client) as usize));
                hash((item, visits.is_none_or(|visits| *visits < 3)))
            }
            Kind::LaterPersonal if self.counter > 10_000 => hash((item, session)),
            Kind::CurrencyOfLanguage => match asked.cookie("currency") {
                Some(chosen) => hash((item, chosen)),
                None => hash((item, asked.field("accept-language"))),
            },
            Kind::KeyedCatalog | Kind::UnnamedKey => hash((item, asked.has_key())),
            Kind::OwnTicket | Kind::OwnRequestor | Kind::OwnViews => hash((item, asked.address)),
            Kind::ForbiddenForMembers => hash((item, session)),
            Kind::OneAdmin => hash((item, asked.client == 5 && session.is_some())),
            Kind::Ranked => hash((item, session)),
            Kind::Styles => hash((item, asked.query.as_deref().is_some_and(|query| query.ends_with("=s13")))),
            Kind::SameBody => hash((item, asked.client.is_multiple_of(3))),
            Kind::Encoded => hash((item, asked.takes_gzip())),
            Kind::Handles if asked.item >= OWN => hash((item, asked.client)),
            Kind::PersonalByBearer => hash((item, asked.field("authorization"))),
            Kind::PersonalByKey => hash((item, asked.field("x-api-key"))),
            Kind::PersonalByTenant => hash((item, asked.field("x-tenant"))),
            Kind::PersonalByAddress => hash((item, asked.address)),
            Kind::PersonalByCertificate => hash((item, &asked.certificate)),
            Kind::AbByCookie => hash((item, asked.cookie("ab"))),
            Kind::MembersInLanguages => hash((item, session, asked.field("accept-language"))),
            Kind::Language | Kind::VaryLanguage | Kind::EditedInLanguages => {
                hash((item, asked.field("accept-language")))
            }
            Kind::CurrencyCookie | Kind::OwnCurrency => hash((item, asked.cookie("currency"))),
            Kind::SeveralReasons | Kind::SeveralAndAddress => {
                let place = self.kind == Kind::SeveralAndAddress && hash(asked.address).is_multiple_of(5);
                hash((item, session, asked.field("accept-language"), asked.cookie("currency"), place))
            }
            Kind::Compressed => hash((item, asked.field("accept-encoding"))),
            Kind::MobileOrDesktop => {
                hash((item, asked.field("user-agent").is_some_and(|agent| agent.contains("Mobile"))))
            }
            Kind::EchoedOrigin => hash((item, asked.field("origin"))),
            Kind::ApiVersion => hash((item, asked.field("x-api-version"))),
            Kind::OwnPath => hash((item, asked.client == asked.item)),
            Kind::StaffAndOwner => hash((item, asked.client <= 1 || asked.client == asked.item)),
            Kind::SomePrivate => hash((item, asked.item % 25 == 3 && asked.client % 5 == 1)),
            _ => hash(item),
        }
    }

    /// Whether a cache may serve some of its responses to several clients at all.
    pub fn is_shareable(&self) -> bool {
        !matches!(
            self.kind,
            Kind::PersonalByCookie
                | Kind::PersonalByBearer
                | Kind::PersonalByKey
                | Kind::PersonalByTenant
                | Kind::PersonalByAddress
                | Kind::PersonalByCertificate
                | Kind::CsrfForm
                | Kind::NonceInJson
                | Kind::RareLeak
                | Kind::Streaming
                | Kind::OwnPath
                | Kind::SetsCookie
                | Kind::Private
                | Kind::OneAdmin
                | Kind::StaffAndOwner
                | Kind::SomePrivate
                | Kind::RandomQuote
                | Kind::Clock
                | Kind::RarePersonal
                | Kind::Toggles
                | Kind::OneClient
                | Kind::RareRequests
                | Kind::MembersOnly
                | Kind::Greeting
                | Kind::PublicForAnonymous
                | Kind::Views
                | Kind::MembersArea
                | Kind::MembersDotted
                | Kind::StaffOrders
                | Kind::KeyedCatalog
                | Kind::OwnTicket
                | Kind::OwnRequestor
                | Kind::OwnViews
                // Too few clients have no session.
                | Kind::ForbiddenForMembers
                | Kind::Ranked
                | Kind::SameBody
                | Kind::EncodedSecret
                | Kind::RoleCookie
                | Kind::ByForwarded
                | Kind::MethodOverride
                | Kind::Cart
                | Kind::FirstVisitCookie
                | Kind::SoftError
                | Kind::Rollout
                | Kind::RolloutByAddress
                | Kind::OneCustomer
                | Kind::GraphQl
                | Kind::UnnamedKey
                | Kind::PremiumItems
                | Kind::Drafts
                | Kind::RankedAndShuffled
                | Kind::FirstVisit
                | Kind::Quota
                | Kind::LastSeen
                | Kind::LaterPersonal
                // In each language, too few clients have no session.
                | Kind::MembersInLanguages
                | Kind::SeveralAndAddress
                // A cache has to know which of 200 values is the one.
                | Kind::Styles
        )
    }

    pub fn respond(&mut self, asked: &Asked, now: u64, rng: &mut Rng) -> Reply {
        self.counter += 1;
        let (mut class, item) = (self.class(asked), asked.item);
        let mut version = (now - START + (hash(item) % 1_000_000) * 1_000) / (self.period * 1_000);
        let is_json = !matches!(
            self.kind,
            Kind::CsrfForm
                | Kind::AbByCookie
                | Kind::MobileOrDesktop
                | Kind::Greeting
                | Kind::Jsonp
                | Kind::Feed
                | Kind::MembersForm
        );
        let content_type = match self.kind {
            _ if is_json => "application/json",
            Kind::Jsonp => "application/javascript",
            Kind::Feed => "application/rss+xml",
            _ => "text/html; charset=utf-8",
        };
        let mut fields = vec![
            ("date", millstream_wire_date(now)),
            ("content-type", content_type.to_owned()),
            ("x-request-id", format!("{:016x}", rng.u64(..))),
        ];
        let (mut status, mut is_storable) = (200, asked.method == "GET");
        let mut more = String::new();
        let noise = format!("{:016x}", rng.u64(..));
        match self.kind {
            Kind::Noisy | Kind::Encoded => {
                more = format!(
                    ",\"generated_at\":\"{}\",\"request_id\":\"{noise}\",\"took\":{}.{}",
                    iso(now),
                    rng.u8(1..9),
                    rng.u16(..)
                );
            }
            Kind::NonceInJson | Kind::EncodedSecret => {
                more = format!(",\"nonce\":\"{noise}{:x}\"", rng.u32(..));
                class = hash((class, self.counter));
            }
            Kind::MembersToken if asked.session().is_some() => {
                more = format!(",\"csrf_token\":\"{noise}{:x}\"", rng.u32(..));
                class = hash((class, self.counter));
            }
            Kind::InvalidatedByPost | Kind::EditedInLanguages => {
                let current = self.versions.entry(item).or_default();
                if asked.method == "POST" {
                    *current += 1;
                }
                version = *current;
            }
            Kind::RareLeak if rng.u8(..50) == 0 => {
                more = format!(",\"last_viewer\":\"client {}\"", asked.client);
                class = hash((class, self.counter));
            }
            Kind::CsrfForm => class = hash((class, self.counter)),
            Kind::MembersForm if asked.session().is_some() => class = hash((class, self.counter)),
            Kind::Streaming => fields[1].1 = "text/event-stream".to_owned(),
            Kind::Erroring if rng.u8(..10) == 0 => status = 500,
            Kind::EchoedOrigin => {
                if let Some(origin) = asked.field("origin") {
                    fields.push(("access-control-allow-origin", origin.to_owned()));
                }
            }
            Kind::OwnPath if asked.client != item => status = 403,
            Kind::SameBody if asked.client.is_multiple_of(3) => status = 403,
            Kind::StaffAndOwner if asked.client > 1 && asked.client != item => status = 403,
            Kind::SomePrivate if item % 25 == 3 && asked.client % 5 != 1 => status = 404,
            Kind::MembersOnly | Kind::MembersArea | Kind::MembersDotted | Kind::PersonalByCookie
                if asked.session().is_none() =>
            {
                status = 401
            }
            Kind::StaffOrders if class == hash(((self.number, item), false)) => status = 403,
            Kind::KeyedCatalog | Kind::UnnamedKey if !asked.has_key() => status = 401,
            Kind::PremiumItems if item >= self.items / 2 && asked.session().is_none() => status = 403,
            Kind::Drafts if item >= OWN && asked.member() != Some(item - OWN) => status = 404,
            Kind::Cart if asked.method == "POST" => {
                if let Some(session) = asked.session() {
                    self.versions.insert(hash(session) as usize, 1);
                }
            }
            Kind::FirstVisitCookie if asked.field("cookie").is_none() => {
                fields.push(("set-cookie", format!("session={noise}")));
                is_storable = false;
                class = hash((class, self.counter));
            }
            Kind::SoftError if rng.u8(..200) == 0 => class = hash((class, "overloaded")),
            Kind::FirstVisit => *self.versions.entry(hash(asked.client) as usize).or_default() += 1,
            Kind::Quota => {
                let used = self.versions.entry(hash(asked.client) as usize).or_default();
                *used += 1;
                more = format!(",\"remaining\":{}", 100_000 - *used);
                class = hash((class, asked.client, *used));
            }
            Kind::LastSeen => {
                let last =
                    self.versions.insert(hash((asked.client, "seen")) as usize, now).unwrap_or(now - 60_000);
                more = format!(",\"last_seen\":\"{}\"", iso(last));
                class = hash((class, last));
            }
            Kind::OwnTicket => more = format!(",\"requestId\":\"of-{}\"", hash(asked.address)),
            Kind::OwnRequestor => fields.push(("x-requestor", format!("of {}", asked.address))),
            Kind::OwnViews => {
                let count = self.versions.entry(hash((item, asked.address)) as usize).or_default();
                *count += 1;
                more = format!(",\"views\":{count}");
                class = hash((class, *count));
            }
            Kind::ForbiddenForMembers if asked.session().is_some() => {
                fields.push(("cache-control", "no-cache, must-revalidate, max-age=0".to_owned()));
                is_storable = false;
            }
            Kind::ChangingEtag => fields.push(("etag", format!("\"{noise}\""))),
            Kind::Conditional => {
                fields.push(("etag", "\"e\"".to_owned()));
                if asked.field("if-none-match").is_some() && rng.bool() {
                    status = 304;
                }
            }
            Kind::SetsCookie => {
                fields.push(("set-cookie", format!("seen={noise}")));
                class = hash((class, self.counter));
            }
            Kind::Private => fields.push(("cache-control", "private, max-age=60".to_owned())),
            Kind::OwnLifetime => fields.push(("cache-control", "max-age=30".to_owned())),
            Kind::Views => more = format!(",\"views\":{}", self.counter),
            Kind::RandomQuote => {
                version = rng.u64(..1_000);
            }
            Kind::Toggles => version %= 2,
            Kind::VaryLanguage => fields.push(("vary", "Accept-Language".to_owned())),
            Kind::Clock => more = format!(",\"now\":{}", now / 1_000),
            _ => {}
        }
        if matches!(self.kind, Kind::Clock) {
            version = now / 1_000;
        }
        is_storable &= status == 200;
        if self.is_silent {
            return Reply { status, fields, body: Vec::new(), class, version, is_storable };
        }
        let name = format!("{class:x}.{version}");
        let body = match self.kind {
            _ if status == 304 || asked.method == "HEAD" => String::new(),
            _ if status != 200 && self.kind != Kind::SameBody => format!("{{\"error\":{status}}}"),
            Kind::CsrfForm => format!(
                "<form><input type=\"hidden\" name=\"csrf_token\" value=\"{noise}\"><p>Welcome to {item}</p></form>"
            ),
            Kind::Feed => format!(
                "<rss><channel><lastBuildDate>{}</lastBuildDate><title>About {name}</title></channel></rss>",
                rfc2822(now)
            ),
            Kind::MembersForm if asked.session().is_some() => format!(
                "<h1>Page {item}.{version}</h1><form><input type=\"hidden\" name=\"csrfmiddlewaretoken\" value=\"{noise}Xy7\"></form>"
            ),
            Kind::RandomOrder => {
                let mut list: Vec<String> =
                    (0..8).map(|number| format!("\"e{}\"", hash((&name, number)) % 1_000)).collect();
                rng.shuffle(&mut list);
                format!("{{\"list\":[{}]}}", list.join(","))
            }
            Kind::RankedAndShuffled => {
                let mut list: Vec<u64> = (0..8).map(|number| hash((item, number)) % 1_000).collect();
                list.sort_by_key(|of| hash((of, class)));
                let for_you = format!("{list:?}");
                rng.shuffle(&mut list);
                format!("{{\"item\":{item},\"for_you\":{for_you},\"tags\":{list:?}}}")
            }
            Kind::Jsonp => format!("cb{}({{\"item\":{}}})", item % 2, item / 2),
            Kind::Quota | Kind::LastSeen => format!("{{\"item\":{item},\"version\":{version}{more}}}"),
            Kind::Ranked => {
                let mut list: Vec<u64> = (0..8).map(|number| hash((item, version, number)) % 1_000).collect();
                list.sort_by_key(|of| hash((of, class)));
                format!("{{\"list\":{list:?}}}")
            }
            Kind::Sorted => {
                let mut list: Vec<u64> = (0..8).map(|number| hash((item / 2, number)) % 1_000).collect();
                list.sort_unstable();
                if item % 2 == 1 {
                    list.reverse();
                }
                format!("{{\"list\":{list:?}}}")
            }
            _ if !is_json => {
                format!("<html><body><h1>Page {name}</h1><p>Some words of text</p></body></html>")
            }
            Kind::RareLeak => format!("{{\"feed\":\"text of {item}\",\"version\":{version}{more}}}"),
            Kind::NonceInJson | Kind::EncodedSecret | Kind::SetsCookie | Kind::SameBody => {
                format!("{{\"item\":{item},\"version\":{version}{more}}}")
            }
            Kind::OwnTicket | Kind::OwnRequestor | Kind::OwnViews => {
                format!("{{\"item\":{item},\"version\":{version}{more}}}")
            }
            Kind::EchoedOrigin => format!("{{\"item\":{item},\"version\":{version}}}"),
            _ => format!("{{\"item\":{item},\"text\":\"about {name}\",\"list\":[1,2,3]{more}}}"),
        };
        let is_coded = matches!(self.kind, Kind::Compressed | Kind::Encoded | Kind::EncodedSecret);
        let body = if is_coded && !body.is_empty() && asked.takes_gzip() {
            fields.push(("content-encoding", "gzip".to_owned()));
            gzip(&body)
        } else {
            body.into_bytes()
        };
        Reply { status, fields, body, class, version, is_storable }
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default()
}

fn article(item: usize) -> String {
    let (one, other) = (item / 10, item % 10);
    const WORDS: [&str; 10] = ["how", "why", "when", "old", "new", "red", "blue", "big", "small", "good"];
    format!("{}-{}-story", WORDS[one % 10], WORDS[other])
}

fn millstream_wire_date(now: u64) -> String {
    String::from_utf8_lossy(&millstream_wire::date::format_http((now / 1_000) as i64)).into_owned()
}

/// As `Tue, 14 Nov 2023 23:13:20 +0100`.
fn rfc2822(now: u64) -> String {
    millstream_wire_date(now + 3_600_000).replace("GMT", "+0100")
}

fn iso(now: u64) -> String {
    let of = millstream_wire::date::format_iso8601((now / 1_000) as i64, 0);
    format!("{}.{:03}Z", String::from_utf8_lossy(&of[..19]), now % 1_000)
}
