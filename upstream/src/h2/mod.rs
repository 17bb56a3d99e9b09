//! HTTP/2 to servers: many calls at a time over few connections (RFC 9113).
//!
//! ```text
//! links ─ one with room, or a new one ─▶ link ─▶ call ─ head, body ─▶ ┐ frames
//!                                          ▲                          ▼
//!                                        driver ◀─── socket ───▶ one write for all
//! ```
//! A connection has a task of its own, the driver, which alone touches the socket; calls frame into what they share, so that what many
//! say at once goes out in one write. The streams are those of `millstream-net`, as to clients. Next: `links`, where a request begins;
//! `call`, what it holds; `exchange/connection`, which speaks over one.

mod lost;
mod ongoing;
mod link;
mod call;
mod idle_frames;
mod frames;
mod driver;
mod links;
#[cfg(test)]
mod tests;

pub(crate) use call::Call;
pub(crate) use links::Links;
