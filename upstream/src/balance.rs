//! Ways to choose a server of a group, one file per method. All are pure: `now` comes in, an index goes out.
//!
//! So far there is one. Next: `round_robin`; `group`, which shares its state between threads.

pub mod round_robin;
