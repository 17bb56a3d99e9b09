//! Why an answer is not stored: a table of causes, their names and what is said about them.
//!
//! The names are part of the API and of the metrics, so they only ever get more. Next: `judge`, which finds them.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $text:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason { $($(#[doc = $doc])* $variant,)* }

        impl Reason {
            /// The index is the variant's number.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// For metrics and the API.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            pub fn text(self) -> &'static str {
                match self { $(Reason::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// The method is not among `proxy_cache_methods`, or the response to a HEAD has no body to store.
    Method = "method", "responses to this method are not stored";
    /// 1xx, 304, or 206 if parts are not kept.
    Status = "status", "a response with this status is not stored";
    NoCacheDirective = "proxy_no_cache", "proxy_no_cache applies";
    XAccelExpires = "x_accel_expires", "X-Accel-Expires sets no lifetime";
    NoStore = "no_store", "the response has no-store";
    Private = "private", "the response is private, and this cache is shared";
    /// no-cache, and no validator, `proxy_cache_revalidate off` or nothing that keeps users apart.
    NoCache = "no_cache", "the response has no-cache (storing it requires an ETag or Last-Modified, \
        proxy_cache_revalidate on, and proxy_cache_credentials public or a public response)";
    Expired = "expired", "the response is already stale when it arrives";
    NoLifetime = "no_lifetime", "the response has no lifetime: no caching header, and no proxy_cache_valid for its status";
    ErrorStatus = "error_status", "the status is an error, and the response has no lifetime";
    SetCookie = "set_cookie", "the response sets a cookie";
    /// `Vary: *`, or more names than are kept apart.
    Vary = "vary", "the response has Vary: *, or Vary lists too many fields";
    /// The request carried credentials and RFC 9111 §3.5 does not allow the response to be shared.
    Authorization = "authorization", "the request carried credentials, and nothing allows the response to be shared";
    /// The request carried a credential, and `proxy_cache_credentials public` shares only public responses.
    Credentials = "credentials", "the request carried a credential, and the response has neither public nor s-maxage";
    /// The request asked for another form of the page, and neither key nor Vary distinguishes it.
    Unnamed = "unnamed_field", "the request has a field that selects another form of the page, and neither the key nor Vary names it";
    /// An event stream or the like, or one that asks not to be buffered.
    Streaming = "streaming", "the response is a stream, whose beginning is of no use to later clients";
    /// must-understand, and a status whose caching rules are not known here.
    MustUnderstand = "must_understand", "the response has must-understand, and its status is unknown";
    KeyTooLong = "key_too_long", "the cache key is too long";
    RequestBody = "request_body", "the request has a body that the key does not name";
    /// The request says no-store and `proxy_cache_client_control` is on.
    ClientNoStore = "client_no_store", "the request has no-store, and proxy_cache_client_control is on";
    TooLarge = "too_large", "the body is too large for this zone";
    StillArriving = "still_arriving", "the body was still arriving after proxy_cache_fill_timeout";
    Incomplete = "incomplete", "the body ended prematurely";
    TooManyTags = "too_many_tags", "the response has more than 1,024 tags";
    /// It would have to go to the cache's directory, which is not writable.
    DiskError = "disk_error", "the cache directory is not writable";
    /// A slice with neither ETag nor Last-Modified: its version cannot be determined.
    NoValidator = "no_validator", "a slice without ETag and Last-Modified cannot be matched with other slices";
}

impl Reason {
    /// For a status without any lifetime.
    pub(crate) fn of(status: u16) -> Reason {
        if status >= 400 { Reason::ErrorStatus } else { Reason::NoLifetime }
    }

    /// Whether a response with this status, which is not stored for this reason, says that what is stored is no longer so:
    /// then it must not stand in for a later error either.
    pub fn replaces(self, status: u16) -> bool {
        use Reason::{ErrorStatus, Expired, NoCache, NoLifetime, NoStore, Private, SetCookie, XAccelExpires};
        // These statuses say nothing about the resource.
        status < 500
            && !matches!(status, 408 | 421 | 425 | 429)
            && matches!(
                self,
                ErrorStatus | Expired | NoCache | NoLifetime | NoStore | Private | SetCookie | XAccelExpires
            )
    }

    /// Whether only the request is the cause, so that it says nothing about responses to others.
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
