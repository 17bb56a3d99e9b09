//! Why an answer is not stored: a table of causes, their names and what is said about them.
//!
//! The names are part of the API and of the metrics, so they only ever get more. Next: `judge`, which finds them.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $text:literal;)*) => {
        /// Why an answer is not stored.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason { $($(#[doc = $doc])* $variant,)* }

        impl Reason {
            /// Every reason; the position is the variant's number.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// One word, for metrics and the API.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            /// A sentence for people.
            pub fn text(self) -> &'static str {
                match self { $(Reason::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// The method is not among `proxy_cache_methods`, or the answer to a HEAD has no body to store.
    Method = "method", "answers to this method are not stored";
    /// A status that is no whole answer: 1xx, 206 where parts are not kept, 304.
    Status = "status", "an answer with this status is not stored";
    /// `proxy_no_cache`.
    NoCacheDirective = "proxy_no_cache", "proxy_no_cache holds";
    /// `X-Accel-Expires: 0`, or a moment that has passed.
    XAccelExpires = "x_accel_expires", "X-Accel-Expires gives it no time";
    /// no-store.
    NoStore = "no_store", "the answer says no-store";
    /// private, for the whole answer.
    Private = "private", "the answer is private: this cache is shared";
    /// no-cache, and nothing to validate it by or `proxy_cache_revalidate off`.
    NoCache = "no_cache", "the answer says no-cache and cannot be validated (an ETag or Last-Modified and proxy_cache_revalidate on would do)";
    /// The answer is no longer fresh when it arrives, and may not be used stale.
    Expired = "expired", "the answer is no longer fresh when it arrives";
    /// Nothing gives it a lifetime: no header, and no `proxy_cache_valid` for its status.
    NoLifetime = "no_lifetime", "nothing gives it a lifetime: no header, and no proxy_cache_valid for its status";
    /// The status is an error, and nothing gives it a lifetime.
    ErrorStatus = "error_status", "the status is an error, and nothing gives it a lifetime";
    /// It sets a cookie.
    SetCookie = "set_cookie", "the answer sets a cookie";
    /// `Vary: *`, or more names than are kept apart.
    Vary = "vary", "the answer varies by anything, or by more fields than are kept apart";
    /// The request carried credentials and RFC 9111 §3.5 does not allow to share the answer.
    Authorization = "authorization", "the request carried credentials, and nothing allows to share the answer";
    /// The request carried a credential, and `proxy_cache_credentials public` shares only what says that it is for all.
    Credentials = "credentials", "the request carried a credential, and the answer does not say that it is for everybody (public, s-maxage)";
    /// The request asked for another form of the page, and neither key nor Vary tells that form from others.
    Unnamed = "unnamed_field", "the request has a field by which such pages change, and neither key nor Vary names it";
    /// An event stream or its like, or one that asks not to be buffered.
    Streaming = "streaming", "the answer is a stream, of which nobody who comes later wants the beginning";
    /// must-understand, and a status whose caching rules are not known here.
    MustUnderstand = "must_understand", "the answer says must-understand, and its status is not known here";
    /// The key's text is longer than keys may be.
    KeyTooLong = "key_too_long", "the cache key is too long";
    /// The request has a body that the key does not name.
    RequestBody = "request_body", "the request has a body that the key does not name";
    /// The request says no-store and `proxy_cache_client_control` is on.
    ClientNoStore = "client_no_store", "the request says no-store and proxy_cache_client_control is on";
    /// The body is larger than the zone stores.
    TooLarge = "too_large", "the body is larger than this zone stores";
    /// `proxy_cache_fill_timeout`: the body was still arriving.
    StillArriving = "still_arriving", "the body was still arriving after proxy_cache_fill_timeout";
    /// The body broke off or was not as long as announced.
    Incomplete = "incomplete", "the body broke off";
    /// It has more tags than are kept of one answer.
    TooManyTags = "too_many_tags", "the answer has more tags than the 1,024 that are kept";
    /// It would have to go to the cache's directory, which could not be written.
    DiskError = "disk_error", "it belongs in the cache's directory, which cannot be written";
    /// A piece of a sliced answer with neither ETag nor Last-Modified: nobody could say which version it is of.
    NoValidator = "no_validator", "it is a piece with neither ETag nor Last-Modified, so nothing says which other pieces it fits";
}

impl Reason {
    /// That of a response with this status that nothing gives a lifetime.
    pub(crate) fn of(status: u16) -> Reason {
        if status >= 400 { Reason::ErrorStatus } else { Reason::NoLifetime }
    }

    /// Whether it is the request's doing alone, so that it says nothing about what others will be answered.
    pub(crate) fn is_of_request(self) -> bool {
        matches!(
            self,
            Reason::Method
                | Reason::NoCacheDirective
                | Reason::Authorization
                | Reason::Credentials
                | Reason::Unnamed
                | Reason::KeyTooLong
                | Reason::RequestBody
                | Reason::ClientNoStore
        )
    }
}
