//! Where files are: the MD5 as their name, below directories named by the last digits of it (`levels`), as in nginx.
//!
//! It computes paths and never touches the disk. Next: `index`, which knows which files there are; `watch`, which
//! watches the directories.

use std::path::PathBuf;

const DIGITS: usize = 32;
/// The directory for temporary files, below the cache's own. It is not watched, so that a store wakes no one.
const TEMPORARY: &str = ".temporary";

/// The MD5 that a file is named by.
pub(crate) type Name = [u8; 16];

/// A 1, followed by the hexadecimal digits of the levels down to the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Directory(u32);

impl Directory {
    pub(super) const ROOT: Directory = Directory(1);

    /// `None` unless `name` is `width` lower-case hexadecimal digits.
    pub(super) fn below(self, name: &[u8], width: u8) -> Option<Directory> {
        let digit = |code: u32, &digit: &u8| Some(code << 4 | value(digit)?);
        (name.len() == usize::from(width)).then(|| name.iter().try_fold(self.0, digit).map(Directory))?
    }

    fn digits(self) -> usize {
        (31 - self.0.leading_zeros() as usize) / 4
    }
}

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    pub(super) levels: Vec<u8>,
}

impl Tree {
    pub(super) fn path(&self, name: &Name) -> PathBuf {
        let mut path = self.path_of(self.directory(name));
        path.push(hex(name));
        path
    }

    pub(super) fn directory(&self, name: &Name) -> Directory {
        let mut end = DIGITS;
        let mut code = 1;
        for &width in &self.levels {
            let start = end.saturating_sub(usize::from(width));
            code = (start..end).fold(code, |code, at| code << 4 | u32::from(digit(name, at)));
            end = start;
        }
        Directory(code)
    }

    pub(super) fn path_of(&self, directory: Directory) -> PathBuf {
        let mut path = self.root.clone();
        let mut left = directory.digits();
        for &width in &self.levels {
            let Some(below) = left.checked_sub(usize::from(width)) else { break };
            let level = directory.0 >> (4 * below) & ((1 << (4 * u32::from(width))) - 1);
            path.push(format!("{level:0width$x}", width = usize::from(width)));
            left = below;
        }
        path
    }

    /// A directory and those above it, the cache's own first.
    pub(super) fn down_to(&self, directory: Directory) -> impl Iterator<Item = Directory> + '_ {
        let mut left = directory.digits();
        let widths = std::iter::once(0).chain(self.levels.iter().map(|&width| usize::from(width)));
        widths.map_while(move |width| {
            left = left.checked_sub(width)?;
            Some(Directory(directory.0 >> (4 * left)))
        })
    }

    pub(super) fn holds_files(&self, directory: Directory) -> bool {
        let all: u8 = self.levels.iter().sum();
        directory.digits() == usize::from(all)
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join(TEMPORARY)
    }
}

fn digit(name: &Name, at: usize) -> u8 {
    if at.is_multiple_of(2) { name[at / 2] >> 4 } else { name[at / 2] & 15 }
}

fn value(digit: u8) -> Option<u32> {
    char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase())
}

fn hex(name: &Name) -> String {
    (0..DIGITS).map(|at| char::from(b"0123456789abcdef"[usize::from(digit(name, at))])).collect()
}

pub(super) fn name_of(text: &[u8]) -> Option<Name> {
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() * 2 != DIGITS || !rest.is_empty() {
        return None;
    }
    let mut name = [0; 16];
    for (byte, &[high, low]) in name.iter_mut().zip(pairs) {
        *byte = (value(high)? << 4 | value(low)?) as u8;
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_nothing_else_is_a_name() {
        let name: Name = std::array::from_fn(|at| (at * 17) as u8);
        assert_eq!(name_of(hex(&name).as_bytes()), Some(name));
        for text in ["", "0", &"0".repeat(31), &"0".repeat(33), &"g".repeat(32), &"A".repeat(32)] {
            assert_eq!(name_of(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_levels_are_the_last_digits_of_the_name() {
        let name = name_of(b"3c6e0b8a9c15224a8228b9a98ca1531d").expect("a name");
        for (levels, expected) in [
            (vec![], vec!["/c"]),
            (vec![1], vec!["/c", "/c/d"]),
            (vec![1, 2], vec!["/c", "/c/d", "/c/d/31"]),
            (vec![2, 2, 2], vec!["/c", "/c/1d", "/c/1d/53", "/c/1d/53/a1"]),
        ] {
            let tree = Tree { root: PathBuf::from("/c"), levels };
            let directory = tree.directory(&name);
            let found: Vec<_> = tree.down_to(directory).map(|above| tree.path_of(above)).collect();
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
            assert!(tree.path(&name).starts_with(tree.path_of(directory)));
            let leaves = tree.down_to(directory).filter(|&above| tree.holds_files(above));
            assert_eq!(leaves.collect::<Vec<_>>(), [directory]);
        }
    }

    #[test]
    fn a_directory_below_is_known_by_its_digits() {
        let tree = Tree { root: PathBuf::from("/c"), levels: vec![1, 2] };
        let name = name_of(b"3c6e0b8a9c15224a8228b9a98ca1531d").expect("a name");
        let below = Directory::ROOT.below(b"d", 1).and_then(|above| above.below(b"31", 2));
        assert_eq!(below, Some(tree.directory(&name)));
        for (name, width) in [(&b"dd"[..], 1), (b"g", 1), (b"D", 1), (b"", 1), (b"d", 2)] {
            assert_eq!(Directory::ROOT.below(name, width), None);
        }
    }
}
