//! Millstream and nginx side by side on one row of a table: turns round after round, and the medians of each.

use millstream_load::rank::median;

use crate::Options;
use crate::peers::Started;

/// The median of each figure for both servers over turns of so many seconds. A first turn of one second does
/// not count: it opens connections and fills caches.
pub(crate) fn medians<const N: usize>(
    options: &Options,
    servers: &[Started; 2],
    turn: impl Fn(&Started, u32) -> Result<[f64; N], String>,
) -> Result<[[f64; N]; 2], String> {
    let mut turns: [Vec<[f64; N]>; 2] = Default::default();
    for round in 0..=options.rounds {
        for (server, turns) in servers.iter().zip(&mut turns) {
            let figures = turn(server, if round == 0 { 1 } else { options.duration })?;
            if round > 0 {
                turns.push(figures);
            }
        }
    }
    Ok(turns.map(|turns| std::array::from_fn(|at| median(turns.iter().map(|figures| figures[at]).collect()))))
}
