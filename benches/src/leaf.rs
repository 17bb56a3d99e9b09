//! What a leaf is: a name, and a function that does the same piece of work so many times.

/// A piece of work whose instructions are counted.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    /// The name to run it by: lower case, underscores.
    pub name: &'static str,
    /// What one iteration does, in a few words, for the table of results.
    pub what: &'static str,
    /// Does it so many times. Preparations are made once, before the first iteration, so that they cancel out
    /// between two runs with different counts.
    pub run: fn(u64),
}
