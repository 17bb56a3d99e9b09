//! How soon the allocator gives the kernel back what nobody uses any more.
//!
//! Left to itself it waits a second, in which a burst of large answers that come and go is counted against the machine many
//! times over. Next: the binary's `main`, which says it once.

use crate::kernel;
use std::time::Duration;

/// Delay before freed memory is returned. A busy worker reuses most of it meanwhile; at most a hundred calls
/// a second return the rest.
const DELAY: Duration = Duration::from_millis(10);

/// Has freed memory returned soon, unless `MIMALLOC_PURGE_DELAY` is set. Call it before there are other
/// threads.
pub fn give_back_soon() {
    kernel::purge_freed_memory_after(DELAY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_goes_back_soon_and_not_after_mimallocs_second() {
        assert_eq!(
            kernel::freed_memory_purged_after(),
            Duration::from_secs(1),
            "another option has this number now"
        );
        give_back_soon();
        assert_eq!(kernel::freed_memory_purged_after(), DELAY);
    }
}
