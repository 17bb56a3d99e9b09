//! Whether two runs differ by more than noise.
//!
//! In the making.
