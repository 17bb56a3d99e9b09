//! The table of header fields that some part of the product treats specially.
//!
//! A field that is in the table is recognised once, while its head is parsed; from then on everybody compares one
//! byte. To treat a new field specially, add its line: the names, the lookup and its perfect hash follow. What a
//! field means is not here but with whoever acts on it.

macro_rules! fields {
    ($($variant:ident = $name:literal,)*) => {
        /// A header field that the product knows by name, or [`FieldId::Other`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum FieldId {
            /// Not in the table; its name is in the head.
            #[default]
            Other,
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        const NAMES: &[(&str, FieldId)] = &[$(($name, FieldId::$variant),)*];

        impl FieldId {
            /// As the RFCs write it; empty for [`FieldId::Other`].
            pub const fn name(self) -> &'static str {
                match self {
                    FieldId::Other => "",
                    $(FieldId::$variant => $name,)*
                }
            }
        }
    };
}

fields! {
    Accept = "Accept",
    AcceptEncoding = "Accept-Encoding",
    AcceptLanguage = "Accept-Language",
    AcceptRanges = "Accept-Ranges",
    Age = "Age",
    Allow = "Allow",
    AltSvc = "Alt-Svc",
    Authorization = "Authorization",
    CacheControl = "Cache-Control",
    CacheStatus = "Cache-Status",
    CacheTag = "Cache-Tag",
    CdnCacheControl = "CDN-Cache-Control",
    Connection = "Connection",
    ContentDisposition = "Content-Disposition",
    ContentEncoding = "Content-Encoding",
    ContentLanguage = "Content-Language",
    ContentLength = "Content-Length",
    ContentLocation = "Content-Location",
    ContentRange = "Content-Range",
    ContentSecurityPolicy = "Content-Security-Policy",
    ContentType = "Content-Type",
    Cookie = "Cookie",
    Date = "Date",
    ETag = "ETag",
    Expect = "Expect",
    Expires = "Expires",
    Forwarded = "Forwarded",
    Host = "Host",
    Http2Settings = "HTTP2-Settings",
    IfMatch = "If-Match",
    IfModifiedSince = "If-Modified-Since",
    IfNoneMatch = "If-None-Match",
    IfRange = "If-Range",
    IfUnmodifiedSince = "If-Unmodified-Since",
    KeepAlive = "Keep-Alive",
    LastModified = "Last-Modified",
    Link = "Link",
    Location = "Location",
    MaxForwards = "Max-Forwards",
    Origin = "Origin",
    Pragma = "Pragma",
    Priority = "Priority",
    ProxyAuthenticate = "Proxy-Authenticate",
    ProxyAuthorization = "Proxy-Authorization",
    ProxyConnection = "Proxy-Connection",
    Range = "Range",
    Referer = "Referer",
    Refresh = "Refresh",
    RetryAfter = "Retry-After",
    Server = "Server",
    SetCookie = "Set-Cookie",
    Status = "Status",
    StrictTransportSecurity = "Strict-Transport-Security",
    SurrogateControl = "Surrogate-Control",
    SurrogateKey = "Surrogate-Key",
    Te = "TE",
    Trailer = "Trailer",
    TransferEncoding = "Transfer-Encoding",
    Upgrade = "Upgrade",
    UserAgent = "User-Agent",
    Vary = "Vary",
    Via = "Via",
    Warning = "Warning",
    WwwAuthenticate = "WWW-Authenticate",
    XAccelBuffering = "X-Accel-Buffering",
    XAccelCharset = "X-Accel-Charset",
    XAccelExpires = "X-Accel-Expires",
    XAccelLimitRate = "X-Accel-Limit-Rate",
    XAccelRedirect = "X-Accel-Redirect",
    XCache = "X-Cache",
    XForwardedFor = "X-Forwarded-For",
    XForwardedHost = "X-Forwarded-Host",
    XForwardedProto = "X-Forwarded-Proto",
    XPad = "X-Pad",
    XPoweredBy = "X-Powered-By",
    XRealIp = "X-Real-IP",
    XRequestId = "X-Request-ID",
}

/// Slots of the perfect hash; a power of two.
const SLOTS: usize = 1024;

/// In bytes.
pub(crate) const LONGEST: usize = {
    let mut longest = 0;
    let mut index = 0;
    while index < NAMES.len() {
        if NAMES[index].0.len() > longest {
            longest = NAMES[index].0.len();
        }
        index += 1;
    }
    longest
};

/// The length and three bytes, which together tell all names of the table apart.
#[inline]
const fn fingerprint(name: &[u8]) -> u32 {
    let length = name.len();
    (length as u32) << 24
        | ((name[0] | 0x20) as u32) << 16
        | ((name[length / 2] | 0x20) as u32) << 8
        | (name[length - 1] | 0x20) as u32
}

#[inline]
const fn slot(name: &[u8], multiplier: u32) -> usize {
    (fingerprint(name).wrapping_mul(multiplier) >> (32 - SLOTS.trailing_zeros())) as usize
}

/// Gives every name of the table a slot of its own; found by the compiler.
const MULTIPLIER: u32 = {
    let mut multiplier: u32 = 0x9e37_79b1;
    let mut tries = 0;
    'search: loop {
        assert!(tries < 2000, "two names share a fingerprint, or the table outgrew its slots");
        tries += 1;
        multiplier = multiplier.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f) | 1;
        let mut used = [false; SLOTS];
        let mut index = 0;
        while index < NAMES.len() {
            let at = slot(NAMES[index].0.as_bytes(), multiplier);
            if used[at] {
                continue 'search;
            }
            used[at] = true;
            index += 1;
        }
        break;
    }
    multiplier
};

/// Slot → one more than the index into [`NAMES`]; zero = empty.
static TABLE: [u8; SLOTS] = {
    let mut table = [0u8; SLOTS];
    let mut index = 0;
    while index < NAMES.len() {
        table[slot(NAMES[index].0.as_bytes(), MULTIPLIER)] = index as u8 + 1;
        index += 1;
    }
    table
};

/// A name in the form it is compared in: lower case, eight bytes at a time.
struct Known {
    length: usize,
    id: FieldId,
    /// The name from its start, zero-padded to whole words.
    words: [u64; LONGEST / 8],
    /// The last eight bytes, if the name has as many.
    tail: u64,
}

const KNOWN: [Known; NAMES.len()] = {
    let mut known =
        [const { Known { length: 0, id: FieldId::Other, words: [0; LONGEST / 8], tail: 0 } }; NAMES.len()];
    let mut index = 0;
    while index < NAMES.len() {
        let (name, id) = NAMES[index];
        let name = name.as_bytes();
        known[index].length = name.len();
        known[index].id = id;
        let mut at = 0;
        while at < name.len() {
            let byte = (name[at] | 0x20) as u64;
            if at / 8 < name.len() / 8 || name.len() < 8 {
                known[index].words[at / 8] |= byte << (at % 8 * 8);
            }
            if at + 8 >= name.len() {
                known[index].tail |= byte << ((at + 8 - name.len()) * 8);
            }
            at += 1;
        }
        index += 1;
    }
    known
};

static LOOKUP: [Known; NAMES.len()] = KNOWN;

impl Known {
    #[inline]
    fn is(&self, name: &[u8]) -> bool {
        if name.len() != self.length {
            return false;
        }
        if name.len() < 8 {
            return is_same(short_word(name), self.words[0]);
        }
        let mut at = 0;
        while at + 8 <= name.len() {
            if !is_same(word(name, at), self.words[at / 8]) {
                return false;
            }
            at += 8;
        }
        is_same(word(name, name.len() - 8), self.tail)
    }
}

/// Whether eight bytes equal those of a known name in any case. Only in a letter, which has the bit 0x40
/// here, the bit 0x20 tells upper from lower case.
#[inline]
fn is_same(bytes: u64, known: u64) -> bool {
    bytes | (known & 0x4040_4040_4040_4040) >> 1 == known
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |eight| u64::from_le_bytes(eight.try_into().expect("eight bytes")))
}

/// One to seven bytes, zero-padded.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    if length >= 4 {
        let half = |at: usize| {
            bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes(four.try_into().expect("four bytes")))
        };
        // The halves overlap in equal bytes.
        u64::from(half(0)) | u64::from(half(length - 4)) << ((length - 4) * 8)
    } else {
        let byte = |at: usize| u64::from(bytes[at]) << (at * 8);
        byte(0) | byte(length / 2) | byte(length - 1)
    }
}

impl FieldId {
    /// In any case.
    #[inline]
    pub fn of(name: &[u8]) -> FieldId {
        if name.is_empty() || name.len() > LONGEST {
            return FieldId::Other;
        }
        match TABLE[slot(name, MULTIPLIER)] {
            0 => FieldId::Other,
            index => {
                let known = &LOOKUP[index as usize - 1];
                if known.is(name) { known.id } else { FieldId::Other }
            }
        }
    }

    /// Valid for [`FieldId::from_number`] in this process only.
    #[inline]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// [`FieldId::Other`] for an unknown number.
    #[inline]
    pub fn from_number(number: u8) -> FieldId {
        match number {
            0 => FieldId::Other,
            number => NAMES.get(number as usize - 1).map_or(FieldId::Other, |&(_, id)| id),
        }
    }

    /// In the table's order.
    pub fn all() -> impl Iterator<Item = FieldId> {
        NAMES.iter().map(|&(_, id)| id)
    }

    /// Whether a response may contain it only once (RFC 9110 §5.3), and nginx passes on the first of several.
    pub const fn is_said_once(self) -> bool {
        matches!(
            self,
            FieldId::ContentType
                | FieldId::Date
                | FieldId::ETag
                | FieldId::Expires
                | FieldId::LastModified
                | FieldId::Location
                | FieldId::Refresh
                | FieldId::Server
        )
    }

    /// Whether the field belongs to one connection and is never passed on, whatever `Connection` lists (RFC
    /// 9110 §7.6.1). `Trailer` is not here: whether it is passed on depends on what happens to the trailers.
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            FieldId::Connection
                | FieldId::KeepAlive
                | FieldId::ProxyConnection
                | FieldId::Te
                | FieldId::TransferEncoding
                | FieldId::Upgrade
                | FieldId::Http2Settings
        )
    }

    /// Whether the field may be passed on as a trailer: it must not frame, route, authenticate, condition or
    /// describe the content (RFC 9110 §6.5.1), which leaves only a few.
    pub const fn is_allowed_in_trailer(self) -> bool {
        matches!(self, FieldId::Other | FieldId::ETag | FieldId::CacheStatus | FieldId::Warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_nothing_else_is() {
        for id in FieldId::all() {
            assert_eq!(FieldId::of(id.name().as_bytes()), id);
            assert_eq!(FieldId::of(id.name().to_ascii_lowercase().as_bytes()), id);
            assert_eq!(FieldId::of(id.name().to_ascii_uppercase().as_bytes()), id);
            let mut longer = id.name().to_owned();
            longer.push('x');
            assert_eq!(FieldId::of(longer.as_bytes()), FieldId::Other);
            assert_eq!(FieldId::of(id.name().replace('-', "_").as_bytes()) == id, !id.name().contains('-'));
        }
        assert_eq!(FieldId::of(b""), FieldId::Other);
        assert_eq!(FieldId::of(b"X-Case"), FieldId::Other);
    }
}
