//! What of an answer a client gets: the whole, a part, or only word that it has it, and under which head.
//!
//! Where the answer is from (memory, a file, a fill on its way, an upstream) is for `answer` and `gateway` to know.
//! Next: `conditions` and `ranges`, which decide; `hit` and `follow`, which send.

pub mod conditions;
pub mod ranges;
pub mod hit;
pub mod follow;
