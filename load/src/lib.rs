//! What measures: load, its figures, and what they mean.
//!
//! Floor 5, a stranger to `server`: it talks HTTP over sockets as everybody else does. `plan` says what is to be done and
//! `outcome` what came of it; all else stands between the two or reads the second. Modules stand lowest floor first.

pub mod stop;
#[cfg(test)]
mod timed;
pub mod http2_request;
pub mod plan;
pub mod histogram;
pub mod rank;
pub mod outcome;
pub mod report;
pub mod metric;
pub mod threshold;
pub mod export;
pub mod progress;
pub mod pace;
pub mod tally;
pub mod target;
pub mod exchange;
pub mod pipeline;
pub mod multiplex;
pub mod stream;
pub mod probe;
mod machine;
pub mod drive;
pub mod find_max;
pub mod compare;
pub mod unmeasured;
pub mod party;
pub mod step;
pub mod peer;
pub mod correctness;
pub mod verdict;
pub mod ladder;
pub mod capacity;
