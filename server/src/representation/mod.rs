//! What of an answer a client gets: the whole, a part, or only word that it has it, and under which head.
//!
//! Where the answer is from (memory, a file, a fill on its way, an upstream) is for `content` and `exchange` to know.
//! Next: `chosen`, which decides; `hit` and `follow`, which send.

pub mod multipart;
pub mod chosen;
pub mod hit;
pub mod follow;
