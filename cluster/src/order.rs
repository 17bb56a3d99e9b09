//! An order: one purge or invalidation as it travels to the other nodes, and its bytes.
//!
//! ```text
//! | version u8 | issuer 16 | number u64 | moment i64 | how u8 | awaited u8 | what u8 | its bytes |
//! ```
//! All numbers are little-endian. No bytes make the decoder panic, and what it returns is encoded to the same bytes. Next: `log`.

use std::fmt;

/// In bytes, encoded. What is longer cannot be named exactly and becomes wider.
pub(crate) const LONGEST: usize = 64 * 1024;
const VERSION: u8 = 1;

/// Who gave an order: random bits, made with a node's journal of one zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Issuer(pub(crate) [u8; 16]);

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an order is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    All,
    /// Every key whose text begins so.
    Prefix(Vec<u8>),
    Tag(Vec<u8>),
    /// A whole key, or its text alone.
    Key(Vec<u8>),
    /// A whole key that an unsafe request has changed.
    Changed {
        key: Vec<u8>,
        /// Whether it may be stored in slices too.
        has_pieces: bool,
    },
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Hard,
    Soft,
}

/// One purge or invalidation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub issuer: Issuer,
    /// From 1, without gaps for each issuer.
    pub number: u64,
    /// Milliseconds since 1970 by the issuer's clock: for people, never for decisions.
    pub at: i64,
    pub how: How,
    /// Whether someone waits until it is in force on every node.
    pub awaited: bool,
    pub what: What,
}

impl Order {
    /// As [`Order::decode`] reads it.
    pub fn encode(&self) -> Vec<u8> {
        let (what, bytes): (u8, &[u8]) = match &self.what {
            What::All => (0, &[]),
            What::Prefix(prefix) => (1, prefix),
            What::Tag(name) => (2, name),
            What::Key(key) => (3, key),
            What::Changed { key, has_pieces: false } => (4, key),
            What::Changed { key, has_pieces: true } => (5, key),
        };
        let mut out = Vec::with_capacity(36 + bytes.len());
        out.push(VERSION);
        out.extend_from_slice(&self.issuer.0);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&[u8::from(self.how == How::Soft), u8::from(self.awaited), what]);
        out.extend_from_slice(bytes);
        out
    }

    /// `None` unless it is exactly one order.
    pub fn decode(bytes: &[u8]) -> Option<Order> {
        if bytes.len() > LONGEST {
            return None;
        }
        let rest = bytes.strip_prefix(&[VERSION])?;
        let (issuer, rest) = rest.split_first_chunk::<16>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let ([how, awaited, what], rest) = rest.split_first_chunk::<3>()?;
        let how = match how {
            0 => How::Hard,
            1 => How::Soft,
            _ => return None,
        };
        let what = match what {
            0 if rest.is_empty() => What::All,
            1 => What::Prefix(rest.to_vec()),
            2 => What::Tag(rest.to_vec()),
            3 => What::Key(rest.to_vec()),
            4 => What::Changed { key: rest.to_vec(), has_pieces: false },
            5 => What::Changed { key: rest.to_vec(), has_pieces: true },
            _ => return None,
        };
        let number = u64::from_le_bytes(*number);
        let awaited = match awaited {
            0 => false,
            1 => true,
            _ => return None,
        };
        let at = i64::from_le_bytes(*at);
        (number > 0).then_some(Order { issuer: Issuer(*issuer), number, at, how, awaited, what })
    }

    /// What it costs to keep, in bytes.
    pub(crate) fn cost(&self) -> usize {
        size_of::<Order>()
            + match &self.what {
                What::All => 0,
                What::Prefix(bytes) | What::Tag(bytes) | What::Key(bytes) => bytes.len(),
                What::Changed { key, .. } => key.len(),
            }
    }
}

impl What {
    /// The same or, if it is too long to travel, everything.
    pub(crate) fn bounded(self) -> What {
        let length = match &self {
            What::All => 0,
            What::Prefix(bytes) | What::Tag(bytes) | What::Key(bytes) => bytes.len(),
            What::Changed { key, .. } => key.len(),
        };
        if length > LONGEST - 64 { What::All } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Vec<Order> {
        let whats = [
            What::All,
            What::Prefix(b"http://a/".to_vec()),
            What::Tag(b"book".to_vec()),
            What::Key(b"http://a/1\0\0\0\0".to_vec()),
            What::Changed { key: b"k".to_vec(), has_pieces: false },
            What::Changed { key: Vec::new(), has_pieces: true },
        ];
        let order = |(at, what): (usize, What)| Order {
            issuer: Issuer([at as u8; 16]),
            number: at as u64 + 1,
            at: -7,
            how: if at % 2 == 0 { How::Hard } else { How::Soft },
            awaited: at % 3 == 0,
            what,
        };
        whats.into_iter().enumerate().map(order).collect()
    }

    #[test]
    fn an_order_survives_its_bytes() {
        for order in orders() {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
    }

    #[test]
    fn whatever_is_decoded_is_encoded_to_the_same_bytes() {
        let mut random = fastrand::Rng::with_seed(7);
        for order in orders() {
            let whole = order.encode();
            for _ in 0..2_000 {
                let mut bytes = whole.clone();
                bytes.truncate(random.usize(..=whole.len()));
                for _ in 0..random.usize(..3) {
                    if let Some(byte) = random.choice(0..bytes.len()) {
                        bytes[byte] = random.u8(..);
                    }
                }
                if let Some(order) = Order::decode(&bytes) {
                    assert_eq!(order.encode(), bytes);
                }
            }
        }
    }

    #[test]
    fn what_is_too_long_to_travel_becomes_everything() {
        let long = What::Key(vec![b'x'; LONGEST]).bounded();
        assert_eq!(long, What::All);
        assert_eq!(What::Key(vec![b'x'; 9000]).bounded(), What::Key(vec![b'x'; 9000]));
    }
}
