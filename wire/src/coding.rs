//! Content codings (RFC 9110 §8.4.1): the forms that an answer can be given in beside its plain one.
//!
//! Names are those of the IANA registry. Next: `accept_encoding`, which of them a client takes.

/// A coding that the product makes and keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// Brotli, RFC 7932.
    Br,
    /// Zstandard, RFC 8878.
    Zstd,
}

impl Coding {
    /// Each at the index of its number.
    pub const ALL: [Coding; 3] = [Coding::Gzip, Coding::Br, Coding::Zstd];

    pub const fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Br => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// Below 8. It is stored in files, so a number is never reused.
    pub const fn number(self) -> u8 {
        self as u8
    }

    pub fn numbered(number: u8) -> Option<Coding> {
        Coding::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coding_is_found_by_its_number() {
        for (at, coding) in Coding::ALL.into_iter().enumerate() {
            assert_eq!((usize::from(coding.number()), Coding::numbered(coding.number())), (at, Some(coding)));
        }
        assert_eq!(Coding::numbered(Coding::ALL.len() as u8), None);
    }
}
