//! What the keys and tags of a zone are made of, as a number that nodes compare.
//!
//! A node with another one may have stored a response under another key, which a purge of a key does not find. It does no
//! I/O. Next: `beat`, which carries it.

use aws_lc_rs::digest::{Context, SHA256};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyPrint(pub(crate) u64);

impl KeyPrint {
    /// The same for the same texts, whatever their order and number.
    pub fn of(texts: impl IntoIterator<Item = String>) -> KeyPrint {
        let mut context = Context::new(&SHA256);
        for text in texts.into_iter().collect::<BTreeSet<String>>() {
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        }
        let digest = context.finish();
        KeyPrint(digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }
}
