//! What can go wrong with a request: one table, out of which the counters, their names and their meanings come.

use serde::{Deserialize, Serialize};

/// The table: field, name in a report, meaning, [`Failure`].
macro_rules! kinds {
    ($($(#[$about:meta])* $field:ident, $failure:ident, $name:literal, $meaning:literal;)*) => {
        /// What went wrong, each kind apart. A request counts once.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Errors {
            $($(#[$about])* pub $field: u64,)*
        }

        /// One thing that went wrong with a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Failure {
            $(#[doc = concat!("See [`Errors::", stringify!($field), "`].")] $failure,)*
        }

        impl Errors {
            /// Each kind with its count and its meaning, in the order of a request's life.
            pub fn kinds(&self) -> Vec<(&'static str, u64, &'static str)> {
                vec![$(($name, self.$field, $meaning)),*]
            }

            /// Those that there were.
            pub fn found(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> + use<> {
                self.kinds().into_iter().filter(|(_, count, _)| *count > 0)
            }

            /// All kinds together.
            pub fn total(&self) -> u64 {
                [$(self.$field),*].iter().sum()
            }

            /// Another of this kind.
            pub fn count(&mut self, failure: Failure) {
                match failure {
                    $(Failure::$failure => self.$field += 1,)*
                }
            }

            /// Adds others.
            pub fn add(&mut self, other: &Errors) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

kinds! {
    /// No connection: refused, unreachable, or not in time.
    connect, Connect, "connect", "no connection: refused, unreachable, or too slow";
    /// TLS could not be agreed on.
    tls, Tls, "tls", "the TLS handshake failed";
    /// No whole answer in time; each is in the latency with the time that it was given.
    timeout, Timeout, "timeout", "no complete response in time; each counts in the latency with its timeout";
    /// The connection was closed or reset before an answer began.
    closed, Closed, "closed", "closed or reset before a response started";
    /// The body was shorter than announced.
    short_body, ShortBody, "short body", "the body was shorter than announced";
    /// What came is not HTTP.
    malformed, Malformed, "malformed", "the response is not HTTP";
    /// HTTP/2: the server refused the stream before it did anything for it (REFUSED_STREAM), or connection after connection.
    #[serde(default)]
    refused, Refused, "refused", "the server refused the stream (REFUSED_STREAM), or several connections in a row";
    /// HTTP/2: the server ended the stream for another reason (RST_STREAM).
    #[serde(default)]
    reset, Reset, "reset", "the server ended the stream (RST_STREAM)";
    /// A redirect that could not be followed: one too many, or to another server.
    #[serde(default)]
    redirect, Redirect, "redirect", "a redirect beyond --max-redirs, or to another server";
    /// A whole answer with a status that was not expected.
    status, Status, "status", "the response has an unexpected status";
    /// A whole answer with a body that was not expected.
    body, Body, "body", "the response has an unexpected body";
}
