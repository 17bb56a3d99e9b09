//! Ways to choose a server of a group, one file per method. All are pure: `now` comes in, an index goes out.

pub mod round_robin;
