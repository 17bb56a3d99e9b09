//! What a line of the error log says beside its message: the connection, and the parts of a request that are known.
//!
//! Values as they are, unescaped and unmasked: how they are written is `error_line`'s matter. Whoever knows them makes them only once somebody wants
//! the line.

/// Of what a line tells. The default is of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct About {
    /// The number of the connection.
    pub connection: Option<u64>,
    pub client: Option<String>,
    pub server: Option<String>,
    pub request: Option<String>,
    pub subrequest: Option<String>,
    pub upstream: Option<String>,
    pub host: Option<String>,
    pub referrer: Option<String>,
}

/// A part as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// nginx's word for it.
    pub(crate) name: &'static str,
    /// Whether nginx writes it in quotes.
    pub(crate) is_quoted: bool,
    /// It.
    pub(crate) value: &'a str,
}

impl About {
    /// A connection of which no request is known.
    pub fn connection(number: u64) -> About {
        About { connection: Some(number), ..About::default() }
    }

    /// A client of which no request is known.
    pub fn client(address: impl ToString) -> About {
        About { client: Some(address.to_string()), ..About::default() }
    }

    /// What is known, in nginx's order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        [
            ("client", false, &self.client),
            ("server", false, &self.server),
            ("request", true, &self.request),
            ("subrequest", true, &self.subrequest),
            ("upstream", true, &self.upstream),
            ("host", true, &self.host),
            ("referrer", true, &self.referrer),
        ]
        .into_iter()
        .filter_map(|(name, is_quoted, value)| Some(Part { name, is_quoted, value: value.as_deref()? }))
    }
}
