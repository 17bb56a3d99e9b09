//! What a line of the error log says beside its message: the connection, and the parts of a request that are known.
//!
//! Values as they are, unescaped and unmasked: how they are written is `error_line`'s matter. Whoever knows them makes them only once somebody wants
//! the line.

/// What a log line is about. The default is the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub connection: Option<u64>,
    pub client: Option<String>,
    pub server: Option<String>,
    pub request: Option<String>,
    pub subrequest: Option<String>,
    pub upstream: Option<String>,
    pub host: Option<String>,
    pub referrer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) name: &'static str,
    pub(crate) is_quoted: bool,
    pub(crate) value: &'a str,
}

impl About {
    pub fn connection(number: u64) -> About {
        About { connection: Some(number), ..About::default() }
    }

    pub fn client(address: impl ToString) -> About {
        About { client: Some(address.to_string()), ..About::default() }
    }

    /// In nginx's order.
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
