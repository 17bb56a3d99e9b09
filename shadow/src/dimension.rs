//! By what the requests of a route differ: client, certificate, each cookie, request field and argument by its name.
//!
//! A route has at most [`MOST`] dimensions; the values of more are one dimension of each sort. A name gets its own when it
//! is seen for the second time, so that random names do not use them up. Of values, only hashes are kept.
//! Before: `request`; next: `pairs`.

use crate::distinct::Distinct;
use crate::hash::Key;
use crate::names;
use crate::network::Network;
use crate::request::{Request, arguments, cookies};
use millstream_wire::accept_encoding::{self, AcceptEncoding};
use std::collections::HashMap;

pub(crate) const MOST: usize = 48;

/// Longer names share the dimension of the rest.
const LONGEST_NAME: usize = 64;

/// Of the first so many values, nearly all are different if the dimension is unique to each request.
const TRIAL: u32 = 256;

/// More values than this are too many for a key.
pub(crate) const MOST_VALUES: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    Address,
    Certificate,
    Field,
    Cookie,
    Argument,
    OtherFields,
    /// Cookies of other names, and what else of other names may let its client in.
    OtherCredentials,
    OtherArguments,
    /// Whether a request is one of its client's first ones.
    Visits,
}

/// What a dimension may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Names a client: a response that differs by it is not shared.
    Identity,
    /// Few values, each of several clients: may be part of the key.
    Selector,
    /// Cannot be part of a key.
    Unfit,
}

pub(crate) struct Dimension {
    pub(crate) sort: Sort,
    pub(crate) name: Box<[u8]>,
    /// Requests that had it.
    pub(crate) present: u32,
    values: Distinct<8>,
    /// What its name suggests.
    pub(crate) names_client: bool,
    pub(crate) is_address: bool,
    /// Whether it is a field by which the API may respond, and no credential.
    pub(crate) may_matter: bool,
    /// Whether nearly all of the first values were different.
    unique: Option<bool>,
}

impl Dimension {
    pub(crate) fn distinct(&self) -> u32 {
        self.values.count()
    }

    /// Whether its value differs in each request, as that of a request id does: then responses cannot be compared by it.
    pub(crate) fn is_unique(&self) -> bool {
        let is_so = |present: u32| present >= 24 && self.distinct() * 10 >= present * 9;
        match self.sort {
            Sort::Address | Sort::Certificate => false,
            _ => self.unique.unwrap_or_else(|| is_so(self.present)),
        }
    }

    /// `clients`: how many different clients the route has.
    pub(crate) fn role(&self, clients: u32) -> Role {
        let is_of_few = || {
            let distinct = self.distinct();
            distinct > MOST_VALUES || (distinct >= 5 && distinct * 2 > clients)
        };
        match self.sort {
            Sort::Address | Sort::Certificate => Role::Identity,
            Sort::Field if self.is_address => Role::Identity,
            Sort::Field | Sort::Cookie if self.names_client => Role::Identity,
            Sort::Cookie if is_of_few() => Role::Identity,
            Sort::Field if is_of_few() => Role::Unfit,
            Sort::Field | Sort::Cookie | Sort::Argument => Role::Selector,
            Sort::OtherCredentials => Role::Identity,
            Sort::OtherFields | Sort::OtherArguments | Sort::Visits => Role::Unfit,
        }
    }

    /// Whether a request that has it may get what others do not: each cookie, a certificate, and what its name suggests.
    pub(crate) fn is_credential(&self) -> bool {
        match self.sort {
            Sort::Certificate | Sort::Cookie | Sort::OtherCredentials => true,
            Sort::Field => self.names_client && !self.is_address,
            Sort::Argument => names::is_credential_argument(&self.name),
            Sort::Address | Sort::OtherFields | Sort::OtherArguments | Sort::Visits => false,
        }
    }

    /// Whether the credential may be one client's own: by its name or its many values, unless it is known to count visits.
    pub(crate) fn is_personal(&self, clients: u32) -> bool {
        self.sort == Sort::Certificate || self.role(clients) == Role::Identity && !self.is_of_analytics()
    }

    /// Whether it is a cookie that counts visits.
    pub(crate) fn is_of_analytics(&self) -> bool {
        self.sort == Sort::Cookie && names::is_of_analytics(&self.name)
    }

    /// Whether a configuration can tell it from others by its name.
    pub(crate) fn has_name(&self) -> bool {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        match self.sort {
            Sort::Cookie => self.name.iter().all(is_plain),
            _ => self.has_variable(),
        }
    }

    /// Whether a variable of nginx can hold it.
    pub(crate) fn has_variable(&self) -> bool {
        let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
        match self.sort {
            Sort::Field => self.name.iter().all(|byte| is_plain(byte) || *byte == b'-'),
            Sort::Cookie => self.name.iter().all(|byte| is_plain(byte) || byte.is_ascii_uppercase()),
            Sort::Certificate | Sort::Address => true,
            _ => false,
        }
    }

    /// As reports name it.
    pub(crate) fn label(&self) -> String {
        let name = String::from_utf8_lossy(&self.name);
        match self.sort {
            Sort::Address => "address".to_owned(),
            Sort::Certificate => "certificate".to_owned(),
            Sort::Field => format!("header {name}"),
            Sort::Cookie => format!("cookie {name}"),
            Sort::Argument => format!("query {name}"),
            Sort::OtherFields => "other headers".to_owned(),
            Sort::OtherCredentials => "other credentials".to_owned(),
            Sort::OtherArguments => "other arguments".to_owned(),
            Sort::Visits => "first visits".to_owned(),
        }
    }

    /// Of two that explain differences equally well, the lower one is the reason.
    pub(crate) fn rank(&self) -> u32 {
        match self.sort {
            Sort::Argument => 0,
            Sort::Field if *self.name == *b"authorization" => 1,
            Sort::Field if self.is_address => 7,
            Sort::Field if self.names_client => 2,
            Sort::Certificate => 3,
            Sort::Cookie if self.names_client => 4,
            Sort::Cookie => 5,
            Sort::Address => 6,
            Sort::Field if self.name.starts_with(b"accept") => 8,
            Sort::Field => 9,
            Sort::OtherCredentials | Sort::OtherFields | Sort::OtherArguments | Sort::Visits => 10,
        }
    }
}

/// The dimensions of one route.
pub(crate) struct Dimensions {
    pub(crate) list: Vec<Dimension>,
    numbers: HashMap<u64, u8>,
    once: Box<[u16; ONCE]>,
    /// Names of arguments by the prefix that campaigns use, up to [`MOST`] in all.
    campaigns: Vec<(usize, u64)>,
    pub(crate) requests: u32,
    /// Those that are credentials, as bits.
    pub(crate) credentials: u64,
    /// What all addresses have in common.
    pub(crate) network: Network,
}

const ADDRESS: usize = 0;
/// Slots for names that were seen once.
const ONCE: usize = 512;

const FIRST_OF_THE_REST: usize = 2;
const VISITS: usize = 5;

impl Dimensions {
    pub(crate) fn new() -> Dimensions {
        let sorts = [
            Sort::Address,
            Sort::Certificate,
            Sort::OtherFields,
            Sort::OtherCredentials,
            Sort::OtherArguments,
            Sort::Visits,
        ];
        let mut dimensions = Dimensions {
            list: Vec::with_capacity(8),
            numbers: HashMap::new(),
            once: Box::new([0; ONCE]),
            campaigns: Vec::new(),
            requests: 0,
            credentials: 0,
            network: Network::default(),
        };
        sorts.into_iter().for_each(|sort| dimensions.push(sort, b""));
        dimensions
    }

    fn push(&mut self, sort: Sort, name: &[u8]) {
        self.list.push(Dimension {
            sort,
            name: name.into(),
            present: 0,
            values: Distinct::new(),
            names_client: names::is_credential(name),
            is_address: sort == Sort::Field && names::is_address(name),
            may_matter: sort == Sort::Field && names::may_matter(name) && !names::is_of_the_client(name),
            unique: None,
        });
        let number = self.list.len() - 1;
        self.credentials |= u64::from(self.list[number].is_credential()) << number;
    }

    /// Those that are arguments of the URL, as bits.
    pub(crate) fn arguments(&self) -> u64 {
        self.mask(|dimension| matches!(dimension.sort, Sort::Argument | Sort::OtherArguments))
    }

    /// The values of a request that has the same URL and nothing else by which requests differ.
    pub(crate) fn of_url(&self, mut values: Box<[u32]>) -> Box<[u32]> {
        let arguments = self.arguments();
        let others = values.iter_mut().enumerate().filter(|(number, _)| arguments & 1 << number == 0);
        others.for_each(|(_, value)| *value = 0);
        values
    }

    /// Hashes of the request's values, one for each dimension; zero is absent.
    pub(crate) fn read<'f>(
        &mut self,
        key: &Key,
        request: &Request<'_>,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Box<[u32]> {
        self.requests = self.requests.saturating_add(1);
        let mut values = [0_u32; MOST];
        self.network.add(request.address());
        values[ADDRESS] = key.value(&request.address());
        values[ADDRESS + 1] = request.certificate.map_or(0, |digest| key.value(digest));
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"cookie") {
                for (name, value) in cookies(value).filter(|(_, value)| !value.is_empty()) {
                    self.add(key, &mut values, Sort::Cookie, name, value);
                }
            } else if !names::is_of_the_message(name) && !value.is_empty() {
                self.add(key, &mut values, Sort::Field, name, as_asked(name, value));
            }
        }
        for (name, value) in arguments(request.query) {
            self.note_campaign(key, name);
            self.add(key, &mut values, Sort::Argument, name, value);
        }
        for (dimension, value) in self.list.iter_mut().zip(values).filter(|(_, value)| *value != 0) {
            dimension.present = dimension.present.saturating_add(1);
            dimension.values.add(key.pair(9, u64::from(value)));
            if dimension.present == TRIAL {
                dimension.unique = Some(dimension.distinct() * 10 >= TRIAL * 9);
            }
        }
        values[..self.list.len()].into()
    }

    /// Notes in the values of a request whether it is one of the first ones of its client.
    pub(crate) fn note_visit(values: &mut [u32], is_early: bool) {
        if let Some(value) = values.get_mut(VISITS) {
            *value = u32::from(is_early);
        }
    }

    fn note_campaign(&mut self, key: &Key, name: &[u8]) {
        let Some(prefix) = names::campaign_prefix(name) else { return };
        let name = (prefix, key.bytes(name));
        if self.campaigns.len() < MOST && !self.campaigns.contains(&name) {
            self.campaigns.push(name);
        }
    }

    /// How many different names with a prefix of campaigns there were. `None`: too many to know.
    pub(crate) fn with_campaign_prefix(&self, prefix: usize) -> Option<usize> {
        let count = self.campaigns.iter().filter(|(of, _)| *of == prefix).count();
        (self.campaigns.len() < MOST).then_some(count)
    }

    fn add(&mut self, key: &Key, values: &mut [u32; MOST], sort: Sort, name: &[u8], value: &[u8]) {
        let mut lower = [0_u8; LONGEST_NAME];
        let number = lower.get_mut(..name.len()).and_then(|lower| {
            lower.copy_from_slice(name);
            if sort == Sort::Field {
                lower.make_ascii_lowercase();
            }
            self.number(key, sort, lower)
        });
        let may_let_in = match sort {
            Sort::Field => names::is_credential(name) && !names::is_address(name),
            Sort::Argument => names::is_credential_argument(name),
            _ => true,
        };
        let sort = if may_let_in { Sort::Cookie } else { sort };
        let rest = FIRST_OF_THE_REST + sort as usize - Sort::Field as usize;
        let (at, value) = match number {
            Some(at) => (at, key.value(value)),
            None => (rest, key.join(key.bytes(name), value) as u32),
        };
        // Repeated fields and cookies count together, in their order.
        values[at] = if values[at] == 0 {
            value.max(1)
        } else {
            (key.pair(values[at].into(), value.into()) as u32).max(1)
        };
    }

    fn number(&mut self, key: &Key, sort: Sort, name: &[u8]) -> Option<usize> {
        let hash = key.join(sort as u64, name);
        if let Some(number) = self.numbers.get(&hash) {
            return Some(usize::from(*number));
        }
        // Names that share a slot do not do so for long.
        let era = u64::from(self.requests / 64);
        let (slot, print) = ((key.pair(hash, era) % ONCE as u64) as usize, (hash >> 48) as u16 | 1);
        if self.once[slot] != print || self.list.len() == MOST {
            self.once[slot] = print;
            return None;
        }
        self.push(sort, name);
        self.numbers.insert(hash, (self.list.len() - 1) as u8);
        Some(self.list.len() - 1)
    }

    /// Dimensions in which requests are not compared: those that are unique to each, and those of other names as long as each
    /// name that is seen twice gets its own.
    pub(crate) fn incomparable(&self) -> u64 {
        let is_full = self.list.len() == MOST;
        self.mask(|dimension| {
            let is_of_others =
                matches!(dimension.sort, Sort::OtherFields | Sort::OtherCredentials | Sort::OtherArguments);
            // An argument that is unique is still part of the URL.
            dimension.is_unique() && dimension.sort != Sort::Argument || is_of_others && !is_full
        })
    }

    /// As [`Dimensions::incomparable`], for requests that are to be identical: a session that came once is not one of another client.
    pub(crate) fn without_identity(&self) -> u64 {
        self.incomparable() & !self.credentials & !self.mask(|dimension| dimension.is_address)
    }

    /// The dimension of a request field or cookie.
    pub(crate) fn field(&self, key: &Key, name: &[u8]) -> Option<usize> {
        self.numbers.get(&key.join(Sort::Field as u64, name)).map(|number| usize::from(*number))
    }

    /// The dimension of a cookie.
    pub(crate) fn cookie(&self, key: &Key, name: &[u8]) -> Option<usize> {
        self.numbers.get(&key.join(Sort::Cookie as u64, name)).map(|number| usize::from(*number))
    }

    /// The dimension of an argument.
    pub(crate) fn argument(&self, key: &Key, name: &[u8]) -> Option<usize> {
        self.numbers.get(&key.join(Sort::Argument as u64, name)).map(|number| usize::from(*number))
    }

    /// A set of dimensions as bits.
    pub(crate) fn mask(&self, is_in: impl Fn(&Dimension) -> bool) -> u64 {
        let bits = self.list.iter().enumerate().filter(|(_, dimension)| is_in(dimension));
        bits.fold(0, |mask, (number, _)| mask | 1 << number)
    }

    pub(crate) fn bytes(&self) -> usize {
        let names: usize = self.list.iter().map(|dimension| dimension.name.len()).sum();
        size_of::<Dimensions>()
            + 2 * ONCE
            + names
            + self.list.capacity() * (size_of::<Dimension>() + 64)
            + self.numbers.capacity() * 24
            + self.campaigns.capacity() * 16
    }
}

/// What a cache asks the API by: of Accept-Encoding, the class of clients that share responses.
fn as_asked<'f>(name: &[u8], value: &'f [u8]) -> &'f [u8] {
    if !name.eq_ignore_ascii_case(b"accept-encoding") {
        return value;
    }
    accept_encoding::class(std::iter::once(value)).and_then(AcceptEncoding::class_field).unwrap_or(value)
}

/// The dimensions in which two requests differ.
pub(crate) fn difference(one: &[u32], other: &[u32]) -> u64 {
    let longest = one.len().max(other.len());
    let value = |of: &[u32], at: usize| of.get(at).copied().unwrap_or(0);
    (0..longest).filter(|at| value(one, *at) != value(other, *at)).fold(0, |mask, at| mask | 1 << at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request;

    #[test]
    fn random_names_do_not_use_up_the_dimensions() {
        let (key, mut dimensions) = (Key::from_seed(1), Dimensions::new());
        for number in 0..10_000 {
            let (name, cookie) = (format!("x-{number}"), format!("session=a{}; c{number}=1", number % 7));
            let fields = [(name.as_bytes(), &b"1"[..]), (b"Cookie", cookie.as_bytes())];
            let values = dimensions.read(&key, &request(Some("q=1"), 1), fields.into_iter());
            assert!(values.len() <= MOST);
        }
        let names: Vec<String> = dimensions.list[VISITS + 1..].iter().map(Dimension::label).collect();
        assert!(names.contains(&"cookie session".to_owned()) && names.contains(&"query q".to_owned()));
        assert!(names.len() < 10, "{names:?}");
    }

    #[test]
    fn a_session_and_a_cookie_of_many_values_are_personal_and_those_of_analytics_and_of_few_are_not() {
        let (key, mut dimensions) = (Key::from_seed(1), Dimensions::new());
        for client in (0..40).cycle().take(120) {
            let cookie = format!("session=1; _ga=g{client}; own=o{client}; theme=t{}", client % 2);
            let fields = std::iter::once((&b"cookie"[..], cookie.as_bytes()));
            dimensions.read(&key, &request(None, 1), fields);
        }
        let personal = dimensions.list.iter().filter(|of| of.sort == Sort::Cookie && of.is_personal(40));
        assert_eq!(personal.map(Dimension::label).collect::<Vec<_>>(), ["cookie session", "cookie own"]);
    }

    #[test]
    fn an_id_of_each_request_is_unique_and_a_session_is_not() {
        let (key, mut dimensions) = (Key::from_seed(1), Dimensions::new());
        for number in 0..400 {
            let (id, cookie) = (format!("id-{number}"), format!("session=a{}", number % 40));
            let fields = [(&b"x-request-id"[..], id.as_bytes()), (b"Cookie", cookie.as_bytes())];
            dimensions.read(&key, &request(Some("q=1"), 1), fields.into_iter());
        }
        let find = |label: &str| {
            let found = dimensions.list.iter().find(|dimension| dimension.label() == label);
            found.map(Dimension::is_unique)
        };
        assert_eq!(find("header x-request-id"), Some(true));
        assert_eq!(find("cookie session"), Some(false));
        assert_eq!(find("address"), Some(false));
    }
}
