//! HTTP, and FastCGI, uwsgi and SCGI, as bytes and values: this crate turns the one into the other and nothing else.
//!
//! It owns the grammar of RFC 9110, 9111, 9112 and 9113 as far as the product needs it: heads, framing, chunked bodies,
//! frames and header blocks, dates, caching directives, conditions, ranges and targets. It never does I/O, never reads a
//! clock and knows no runtime, so every rule in it can be tested, fuzzed and counted in instructions on plain byte slices.
//!
//! Start at [`h1::head`] for what a connection reads first, at [`h2`] for what one of HTTP/2 does, at [`Fields`] for how
//! everybody looks at header fields.
//! The order of the modules below is the order in which they may use each other, lowest first.

pub mod span;
pub mod version;
pub mod method;
pub mod octets;
pub mod list;
pub mod field_id;
pub mod cgi_name;
pub mod client_address;
pub mod credential;
pub mod field;
pub mod packed;
pub mod fields;
pub mod unlisted;
pub mod connection;
pub mod headers;
pub mod date;
pub mod structured;
pub mod cache_control;
pub mod etag;
pub mod conditional;
pub mod range;
pub mod coding;
pub mod accept;
pub mod accept_encoding;
pub mod accept_language;
pub mod host;
pub mod target;
pub mod spelling;
pub mod masked;
pub mod reference;
pub mod other_protocol;
pub mod h1;
pub mod h2;
pub mod fastcgi;
pub mod uwsgi;
pub mod scgi;

pub use coding::Coding;
pub use field::Field;
pub use field_id::FieldId;
pub use fields::Fields;
pub use headers::Headers;
pub use method::Method;
pub use span::Span;
pub use version::Version;
