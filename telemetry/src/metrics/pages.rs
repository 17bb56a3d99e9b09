//! One thread's cells of things that have numbers: made when the first of them is used, found without a lock.
//!
//! Numbers are given by a `Registry`; what is numbered past the last page is not counted.

use std::sync::OnceLock;

/// Cells that are allocated together.
const PER_PAGE: usize = 16;

/// Cells by number, for `PAGES` × 16 items.
#[derive(Debug)]
pub(super) struct Pages<T, const PAGES: usize>([OnceLock<Box<[T; PER_PAGE]>>; PAGES]);

impl<T: Default, const PAGES: usize> Pages<T, PAGES> {
    pub(super) const ROOM: usize = PAGES * PER_PAGE;

    pub(super) const fn new() -> Self {
        Pages([const { OnceLock::new() }; PAGES])
    }

    /// Allocates missing cells. Owner thread only.
    #[inline]
    pub(super) fn cells(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        let page = self.0.get(number / PER_PAGE)?;
        let page = page.get_or_init(|| Box::new(std::array::from_fn(|_| T::default())));
        Some(&page[number % PER_PAGE])
    }

    /// Existing cells only, each with the sum of its number.
    pub(super) fn add_to<S>(&self, sums: &mut [S], add: impl Fn(&T, &mut S)) {
        for (page, sums) in self.0.iter().zip(sums.chunks_mut(PER_PAGE)) {
            let Some(page) = page.get() else { continue };
            for (cells, sum) in page.iter().zip(sums) {
                add(cells, sum);
            }
        }
    }

    pub(super) fn each(&self, mut look: impl FnMut(u16, &T)) {
        for (number, page) in (0..).step_by(PER_PAGE).zip(&self.0) {
            let Some(page) = page.get() else { continue };
            for (number, cells) in (number..).zip(page.iter()) {
                look(number, cells);
            }
        }
    }
}
