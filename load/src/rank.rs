//! What several rounds come to, and whether two groups of measurements differ by more than chance: the exact rank test, and the interval
//! of their ratio.
//!
//! Mann and Whitney's U (1947) as a permutation test of the ranks: the groups are compared by every way in which the same values could have
//! fallen to them, so that ties are counted exactly and nothing is assumed of how the values are distributed. Pure numbers. `statrs` has the
//! same test, but for ties falls back on the normal distribution, which for so few values is wrong.

/// How often a difference is claimed where there is none: at the most in one of twenty.
pub const FALSE_CLAIMS: f64 = 0.05;

/// The best guess of how many times the first the second is, and what the true ratio lies between.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Ratio {
    /// The median of all ratios of a value of the one and a value of the other (Hodges and Lehmann 1963).
    pub value: f64,
    /// No less than this, but in one of twenty ([`FALSE_CLAIMS`]).
    pub low: f64,
    /// No more than this, but in the same one.
    pub high: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Compared {
    /// How many times the first the second is, with its interval; `None`: that cannot be told.
    pub ratio: Option<Ratio>,
    /// How often groups of one kind are ranked at least as far apart, 0 to 1.
    pub p: f64,
}

impl Compared {
    pub fn is_apart(&self) -> bool {
        self.p <= FALSE_CLAIMS
    }
}

pub fn compare(first: &[f64], second: &[f64]) -> Compared {
    Compared { ratio: ratio(first, second), p: probability(first, second) }
}

/// The middle value; of an even number, the mean of the two in the middle; 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The middle and the ends of the rates of several rounds; the least of none is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(values: &[f64]) -> Spread {
        Spread {
            median: median(values.to_vec()),
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(0.0, f64::max),
        }
    }

    /// Half the way from the least to the most, as a share of the median; `None` where there is nothing.
    pub fn half(&self) -> Option<f64> {
        (self.median > 0.0).then(|| (self.most - self.least) / 2.0 / self.median)
    }
}

/// The round that stands for all: the one whose rate is nearest to their median; `None` of none.
pub fn nearest<Round>(rounds: &[Round], median: f64, rate: impl Fn(&Round) -> f64) -> Option<&Round> {
    let away = |round: &Round| (rate(round) - median).abs();
    rounds.iter().min_by(|one, other| away(one).total_cmp(&away(other)))
}

/// Whether so many values a side can show any difference at all.
pub fn can_tell(first: usize, second: usize) -> bool {
    smallest(first, second) <= FALSE_CLAIMS
}

/// The smallest p that so many values a side can have: that of groups that do not overlap.
pub fn smallest(first: usize, second: usize) -> f64 {
    let ways = (0..first.min(second))
        .fold(1.0, |ways, place| ways * (first + second - place) as f64 / (place + 1) as f64);
    (2.0 / ways).min(1.0)
}

/// p, two-sided: how often groups of one kind are ranked at least as far apart. 1 where one of them is empty.
pub fn probability(first: &[f64], second: &[f64]) -> f64 {
    let ranks = whole_ranks(first, second);
    let (found, all) = (ranks[..first.len()].iter().sum::<usize>(), ranks.iter().sum::<usize>());
    if first.is_empty() || second.is_empty() {
        return 1.0;
    }
    // Twice the expected sum times the number of ranks is a whole number, so that nothing is lost to rounding.
    let distance = |sum: usize| (sum * ranks.len()).abs_diff(all * first.len());
    let sums = ways(&ranks, first.len());
    let beyond = sums.iter().enumerate().filter(|(sum, _)| distance(*sum) >= distance(found));
    let (beyond, whole) = (beyond.map(|(_, ways)| ways).sum::<f64>(), sums.iter().sum::<f64>());
    beyond / whole
}

/// The rank of each value among all, those of the first group first; values that are alike share the mean of their ranks, so that all ranks are
/// doubled where there are such.
fn whole_ranks(first: &[f64], second: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let rank = |value: &f64| {
        let below = all.iter().filter(|other| other.total_cmp(value).is_lt()).count();
        let alike = all.iter().filter(|other| other.total_cmp(value).is_eq()).count();
        2 * below + alike + 1
    };
    let ranks: Vec<usize> = all.iter().map(rank).collect();
    let unit = if ranks.iter().all(|rank| rank % 2 == 0) { 2 } else { 1 };
    ranks.into_iter().map(|rank| rank / unit).collect()
}

/// In how many ways a number of the ranks have each sum.
fn ways(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let most = ranks.iter().sum::<usize>() + 1;
    let mut ways = vec![vec![0.0; most]; chosen + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for count in (1..=chosen).rev() {
            let (fewer, these) = ways.split_at_mut(count);
            let taken = these[0][rank..].iter_mut().zip(&fewer[count - 1]);
            taken.for_each(|(with, without)| *with += without);
        }
    }
    ways.swap_remove(chosen)
}

/// How many times the first group the second is; `None` where that cannot be told: a value is not above 0, or they are too few.
pub fn ratio(first: &[f64], second: &[f64]) -> Option<Ratio> {
    let are_above_0 = first.iter().chain(second).all(|value| *value > 0.0);
    if !can_tell(first.len(), second.len()) || !are_above_0 {
        return None;
    }
    let mut ratios: Vec<f64> =
        first.iter().flat_map(|one| second.iter().map(move |other| other / one)).collect();
    ratios.sort_by(f64::total_cmp);
    // Of values that all differ U is the number of ratios below 1, so that its distribution counts ratios off both ends.
    let apart: Vec<usize> = (1..=first.len() + second.len()).collect();
    let sums = ways(&apart, first.len());
    let (least, whole) = (first.len() * (first.len() + 1) / 2, sums.iter().sum::<f64>());
    let mut below = 0.0;
    let off = sums[least..].iter().take_while(|ways| {
        below += **ways;
        2.0 * below / whole <= FALSE_CLAIMS
    });
    let off = off.count().clamp(1, ratios.len());
    let (low, high) = (ratios[off - 1], ratios[ratios.len() - off]);
    Some(Ratio { value: median(ratios), low, high })
}

#[cfg(test)]
mod tests;
