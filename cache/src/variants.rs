//! Which files a key has on disk, and which variant is in which: all that is known of it, in one place.
//!
//! ```text
//! md5(key)             the key's own file: what the key varies by, one variant, an epoch
//! md5(key, variant) …  a file for each other variant; it counts only where its epoch is that of the own file
//! ```
//! So whoever removes the own file, by a purge or by hand, has removed all: those beside it are never answered from, even
//! where nobody knows their names. The file that is begun anew has an epoch of its own. Everything here is pure: what is
//! on the disk is told by the caller. Next: `memory/files` (what memory knows of it), `disk` (the files), `store/tier/look`
//! (who looks).

use crate::entry::Variant;
use crate::key;
use crate::vary::VaryFields;
use millstream_wire::Fields;
use std::sync::Arc;

#[cfg(test)]
mod tests;

pub(crate) type FileName = [u8; 16];

/// The fields that a response varies by, and its request's values, as they stand in a file.
pub(crate) type WrittenVary = (VaryFields, Box<[u8]>);

/// The file under the key's own name, as far as memory knows it.
#[derive(Debug, Clone)]
pub(crate) struct BaseFile {
    /// Variants with another epoch do not count.
    pub(crate) epoch: u64,
    pub(crate) values: Option<Arc<[u8]>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) name: FileName,
    pub(crate) epoch: u64,
    pub(crate) is_own: bool,
}

pub(crate) fn own(key: &[u8]) -> FileName {
    key::md5(key)
}

pub(crate) fn beside(key: &[u8], values: &[u8]) -> FileName {
    key::md5_of_variant(key, values)
}

pub(crate) fn name_of(key: &[u8], base: Option<&BaseFile>, values: Option<&[u8]>) -> FileName {
    match values {
        Some(values) if is_beside(base, Some(values)) => beside(key, values),
        _ => own(key),
    }
}

pub(crate) fn is_beside(base: Option<&BaseFile>, values: Option<&[u8]>) -> bool {
    base.is_some_and(|base| base.values.as_deref() != values)
}

/// Where a new file of a variant belongs. `base` is the key's own file if it exists; otherwise this one
/// becomes it, with a new epoch.
pub(crate) fn place(
    key: &[u8],
    base: Option<&BaseFile>,
    values: Option<&[u8]>,
    new_epoch: impl FnOnce() -> u64,
) -> FilePlace {
    let epoch = base.map_or_else(new_epoch, |base| base.epoch);
    match is_beside(base, values) {
        true => {
            let name = beside(key, values.unwrap_or_default());
            FilePlace { name, epoch, is_own: false }
        }
        false => FilePlace { name: own(key), epoch, is_own: true },
    }
}

/// Its own first, as far as its variants are known.
pub(crate) fn names<'a>(key: &'a [u8], variants: &'a [Arc<[u8]>]) -> impl Iterator<Item = FileName> + 'a {
    std::iter::once(own(key)).chain(variants.iter().map(|values| beside(key, values)))
}

#[derive(Debug)]
pub(crate) struct OwnFile {
    pub(crate) epoch: u64,
    /// `None` if the key does not vary.
    pub(crate) variant: Option<Variant>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Own,
    Beside(FileName, Vec<u8>),
}

impl OwnFile {
    pub(crate) fn of(epoch: u64, vary: Option<WrittenVary>) -> OwnFile {
        let variant =
            vary.map(|(fields, values)| Variant { fields: Arc::new(fields), values: values.into() });
        OwnFile { epoch, variant }
    }

    pub(crate) fn base(&self) -> BaseFile {
        let values = self.variant.as_ref().map(|variant| variant.values.clone());
        BaseFile { epoch: self.epoch, values }
    }

    pub(crate) fn wanted(&self, key: &[u8], request: Fields<'_>) -> Wanted {
        let Some(variant) = &self.variant else { return Wanted::Own };
        let mut wanted = Vec::with_capacity(64);
        variant.fields.write(request, &mut wanted);
        match *wanted == *variant.values {
            true => Wanted::Own,
            false => Wanted::Beside(beside(key, &wanted), wanted),
        }
    }

    /// `None` if the file holds another variant, or belonged to an own file that is gone.
    pub(crate) fn beside(&self, wanted: &[u8], epoch: u64, vary: Option<WrittenVary>) -> Option<Variant> {
        let own = self.variant.as_ref()?;
        let (fields, values) = vary?;
        let is_same = epoch == self.epoch && fields == *own.fields && *values == *wanted;
        is_same.then(|| Variant { fields: own.fields.clone(), values: values.into() })
    }
}
