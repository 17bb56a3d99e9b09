//! Writes heads and chunks. What goes out is written anew from values, never copied from what came in.
//!
//! Names and values are written as given: they were checked when they were parsed or configured. The caller ends
//! the head with an empty line.

macro_rules! reasons {
    ($($status:literal $reason:literal,)*) => {
        /// The registered reason phrase, or an empty one.
        pub fn reason(status: u16) -> &'static str {
            match status {
                $($status => $reason,)*
                _ => "",
            }
        }

        fn known_status_line(status: u16) -> Option<&'static str> {
            Some(match status {
                $($status => concat!("HTTP/1.1 ", stringify!($status), " ", $reason, "\r\n"),)*
                _ => return None,
            })
        }
    };
}

reasons! {
    100 "Continue",
    101 "Switching Protocols",
    102 "Processing",
    103 "Early Hints",
    200 "OK",
    201 "Created",
    202 "Accepted",
    203 "Non-Authoritative Information",
    204 "No Content",
    205 "Reset Content",
    206 "Partial Content",
    207 "Multi-Status",
    208 "Already Reported",
    226 "IM Used",
    300 "Multiple Choices",
    301 "Moved Permanently",
    302 "Moved Temporarily",
    303 "See Other",
    304 "Not Modified",
    305 "Use Proxy",
    307 "Temporary Redirect",
    308 "Permanent Redirect",
    400 "Bad Request",
    401 "Unauthorized",
    402 "Payment Required",
    403 "Forbidden",
    404 "Not Found",
    405 "Not Allowed",
    406 "Not Acceptable",
    407 "Proxy Authentication Required",
    408 "Request Time-out",
    409 "Conflict",
    410 "Gone",
    411 "Length Required",
    412 "Precondition Failed",
    413 "Request Entity Too Large",
    414 "Request-URI Too Large",
    415 "Unsupported Media Type",
    416 "Requested Range Not Satisfiable",
    417 "Expectation Failed",
    418 "I'm a teapot",
    421 "Misdirected Request",
    422 "Unprocessable Content",
    423 "Locked",
    424 "Failed Dependency",
    425 "Too Early",
    426 "Upgrade Required",
    428 "Precondition Required",
    429 "Too Many Requests",
    431 "Request Header Fields Too Large",
    451 "Unavailable For Legal Reasons",
    500 "Internal Server Error",
    501 "Not Implemented",
    502 "Bad Gateway",
    503 "Service Temporarily Unavailable",
    504 "Gateway Time-out",
    505 "HTTP Version Not Supported",
    506 "Variant Also Negotiates",
    507 "Insufficient Storage",
    508 "Loop Detected",
    510 "Not Extended",
    511 "Network Authentication Required",
}

/// Ends a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// `HTTP/1.1 200 OK` with its line end. Reason phrases are nginx's.
#[inline]
pub fn status_line(out: &mut Vec<u8>, status: u16) {
    match known_status_line(status) {
        Some(line) => out.extend_from_slice(line.as_bytes()),
        None => status_line_with_reason(out, status, b""),
    }
}

/// With a reason phrase of its own, such as the upstream's.
pub fn status_line_with_reason(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// `target` must be valid and in the form to be sent.
pub fn request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8], version: crate::Version) {
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.push(b' ');
    out.extend_from_slice(version.as_str().as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[inline]
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[inline]
pub fn number_field(out: &mut Vec<u8>, name: &[u8], value: u64) {
    field(out, name, itoa::Buffer::new().format(value).as_bytes());
}

/// The line before a chunk; CR LF follows the data. A length of zero would end the body: the caller must not
/// pass it.
#[inline]
pub fn chunk_head(out: &mut Vec<u8>, length: usize) {
    debug_assert!(length > 0, "a chunk of zero bytes ends the body");
    let mut digits = [0u8; 16];
    let mut at = digits.len();
    let mut rest = length;
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[rest & 15];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
