//! The arithmetic of evidence: Fisher's exact test, Benjamini and Hochberg's correction, bounds of rates, the bootstrap.
//!
//! Next: `variance` and `verdict`, which use it.

/// ln Γ(x), by Lanczos' approximation (g = 7, n = 9).
fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = C[1..].iter().enumerate().fold(C[0], |sum, (at, c)| sum + c / (x + at as f64 + 1.0));
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

fn ln_choose(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

/// A table of two by two: differing and equal pairs, with and without the property.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) differing_with: u64,
    pub(crate) equal_with: u64,
    pub(crate) differing_without: u64,
    pub(crate) equal_without: u64,
}

impl Table {
    pub(crate) fn with(&self) -> u64 {
        self.differing_with + self.equal_with
    }

    pub(crate) fn without(&self) -> u64 {
        self.differing_without + self.equal_without
    }

    pub(crate) fn rate_with(&self) -> f64 {
        self.differing_with as f64 / self.with().max(1) as f64
    }

    pub(crate) fn rate_without(&self) -> f64 {
        self.differing_without as f64 / self.without().max(1) as f64
    }

    /// The natural logarithm of Fisher's exact one-sided p: that so many of the differing pairs have the property by chance.
    pub(crate) fn ln_p(&self) -> f64 {
        const TERMS: u64 = 2_000;
        let (with, without) = (self.with() as f64, self.without() as f64);
        let differing = self.differing_with + self.differing_without;
        let total = ln_choose(with + without, differing as f64);
        let last = differing.min(self.with());
        let ln_term = |k: u64| ln_choose(with, k as f64) + ln_choose(without, (differing - k) as f64) - total;
        let largest = ln_term(self.differing_with);
        // Terms fall fast; those that are left out are below the precision.
        let sum: f64 = (self.differing_with..=last.min(self.differing_with + TERMS))
            .map(|k| (ln_term(k) - largest).exp())
            .sum();
        (largest + sum.ln()).min(0.0)
    }
}

/// Which of the tests hold at a false discovery rate of e^`ln_rate` (Benjamini and Hochberg).
pub(crate) fn discoveries(ln_ps: &[f64], ln_rate: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..ln_ps.len()).collect();
    order.sort_by(|one, other| ln_ps[*one].total_cmp(&ln_ps[*other]));
    let count = ln_ps.len() as f64;
    let holds = |rank: usize| ln_ps[order[rank]] <= ln_rate + ((rank + 1) as f64 / count).ln();
    let found = (0..order.len()).rev().find(|rank| holds(*rank)).map_or(0, |rank| rank + 1);
    let mut discovered = vec![false; ln_ps.len()];
    order[..found].iter().for_each(|test| discovered[*test] = true);
    discovered
}

/// The upper end of a 95 % interval for a rate of which `events` of `n` were seen (Clopper and Pearson); 3/n if none was.
pub(crate) fn upper_bound(events: u64, n: u64) -> f64 {
    if n == 0 {
        return 1.0;
    }
    if events == 0 {
        return (3.0 / n as f64).min(1.0);
    }
    if events >= n {
        return 1.0;
    }
    let (mut low, mut high) = (events as f64 / n as f64, 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if at_most(events, n, middle) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// As [`upper_bound`], if events come in clusters, as the stale hits of one stored response do: then the number of clusters is a
/// matter of chance, and so is their size. A change may come soon after a response was stored or late, so that on average half of
/// its hits are stale, whatever the few that were seen had. `fills`: stored responses, of which `n` are the hits.
pub(crate) fn clustered_bound(events: u64, clusters: u64, n: u64, fills: u64) -> f64 {
    /// So many that the number of clusters is Poisson's.
    const MANY: u64 = 1_000_000;
    let single = upper_bound(events, n);
    if clusters == 0 || n == 0 {
        return single;
    }
    let most = upper_bound(clusters, MANY) * MANY as f64;
    let seen = events as f64 / clusters as f64;
    let usual = n as f64 / fills.max(1) as f64 / 2.0;
    single.max(most * seen.max(usual) / n as f64).min(1.0)
}

/// The probability of at most `events` in `n`, each with probability `p`.
fn at_most(events: u64, n: u64, p: f64) -> f64 {
    // Far below the mean only the last terms count.
    let first = events.saturating_sub(400);
    (first..=events)
        .map(|k| (ln_choose(n as f64, k as f64) + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp())
        .sum()
}

/// By what the requests of another time differ from those that were seen, besides by their URLs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix {
    /// How many clients there were; zero if the key is the same for all of them.
    pub(crate) clients: u32,
    /// The share of requests that is passed on because of who asks.
    pub(crate) passed: f64,
    /// The share of clients whose requests fill the cache, and among how many values of the key they are.
    pub(crate) storing: f64,
    pub(crate) values: u32,
}

/// A 95 % interval for the hits per request of as many requests at another time by other clients; the same for the same input.
///
/// By the bootstrap over keys, to which is added what else differs: arrivals (hits are at most as random as coins; both times
/// count), and the shares of the clients that the key tells apart, who ask unequally often, so that half of them count.
pub(crate) fn ratio_interval(keys: &[(u32, u32)], mix: Mix) -> [f64; 2] {
    const ROUNDS: usize = 400;
    if keys.is_empty() {
        return [0.0, 0.0];
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let share = if mix.clients == 0 { 0.0 } else { (4.0 / f64::from(mix.clients)).sqrt() };
    // How long a miss lasts is up to the few who fill the cache, and a value that none of them has is never filled.
    let fills = |random: &mut Random| -> f64 {
        let without = (-f64::from(mix.clients) * mix.storing / f64::from(mix.values.max(1))).exp();
        let unfilled = (0..mix.values).filter(|_| random.unit() < without).count();
        1.0 - unfilled as f64 / f64::from(mix.values.max(1))
    };
    let all_fill = mix.clients == 0 || mix.storing > 0.99;
    let storing = share / mix.storing.max(0.01).sqrt();
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (mut requests, mut hits, mut rare) = (0.0, 0.0, 0.0);
            for _ in 0..keys.len() {
                let (of, hit) = keys[(random.next() % keys.len() as u64) as usize];
                let (of, hit) = (f64::from(of), f64::from(hit));
                let miss = of - hit;
                requests += of;
                hits += hit;
                // The fewer of its requests are hits, the more do misses follow the number of requests.
                rare += if of > 0.0 { miss * miss / of } else { 0.0 };
            }
            let requests = f64::max(requests, 1.0);
            let ratio: f64 = hits / requests;
            let arrivals = (2.0 * (ratio * (1.0 - ratio) / requests).max(1.0 / (requests * requests))).sqrt();
            let passed = share * (mix.passed * (1.0 - mix.passed)).sqrt();
            let (misses, filled) = match all_fill {
                true => (rare / requests, 1.0),
                false => (1.0 - ratio, fills(&mut random)),
            };
            let clients = storing * (misses - mix.passed).max(0.0) + passed;
            (ratio * filled + arrivals * random.normal() + clients * random.normal()).clamp(0.0, 1.0)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    [ratios[ROUNDS * 25 / 1_000], ratios[ROUNDS * 975 / 1_000]]
}

/// Random numbers for the bootstrap (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal: the sum of twelve uniform ones.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fisher_agrees_with_the_tea_tasting() {
        let table = Table { differing_with: 3, equal_with: 1, differing_without: 1, equal_without: 3 };
        assert!((table.ln_p().exp() - 17.0 / 70.0).abs() < 1e-9);
        let certain = Table { differing_with: 500, equal_with: 0, differing_without: 0, equal_without: 500 };
        assert!(certain.ln_p() < -600.0);
    }

    #[test]
    fn few_of_many_tests_need_more_evidence() {
        let ln = |p: f64| p.ln();
        assert_eq!(
            discoveries(&[ln(0.01), ln(0.04), ln(0.5), ln(0.9)], ln(0.05)),
            [true, false, false, false]
        );
        assert_eq!(discoveries(&[ln(0.01), ln(0.02), ln(0.03)], ln(0.05)), [true, true, true]);
    }

    #[test]
    fn bounds_of_rates() {
        assert!((upper_bound(0, 3_000) - 0.001).abs() < 1e-9);
        assert!((upper_bound(1, 4_742) - 0.001).abs() < 2e-5, "{}", upper_bound(1, 4_742));
        assert!(
            (clustered_bound(40, 1, 100_000, 9_000) - 0.0019).abs() < 2e-5,
            "{}",
            clustered_bound(40, 1, 100_000, 9_000)
        );
        assert!(clustered_bound(40, 40, 100_000, 90_000) < 1.01 * upper_bound(40, 100_000));
        assert_eq!(clustered_bound(0, 0, 100, 10), 0.03);
        let by_luck = clustered_bound(3, 1, 17_000, 64);
        assert!(
            (by_luck - 4.74 / 128.0).abs() < 1e-4,
            "3 of 265 hits were stale, as many as 264 could: {by_luck}"
        );
        assert!((upper_bound(10, 100) - 0.164).abs() < 2e-3, "{}", upper_bound(10, 100));
    }

    #[test]
    fn the_interval_of_a_ratio_repeats_and_contains_it() {
        let keys: Vec<(u32, u32)> = (0..200).map(|number| (10 + number % 7, 6 + number % 5)).collect();
        let all = Mix { clients: 0, passed: 0.0, storing: 1.0, values: 1 };
        let interval = ratio_interval(&keys, all);
        assert_eq!(interval, ratio_interval(&keys, all));
        let ratio = keys.iter().map(|key| f64::from(key.1)).sum::<f64>()
            / keys.iter().map(|key| f64::from(key.0)).sum::<f64>();
        assert!(interval[0] < ratio && ratio < interval[1] && interval[1] - interval[0] < 0.1);
        let some = ratio_interval(&keys, Mix { clients: 40, passed: 0.2, ..all });
        assert!(some[0] < interval[0] && interval[1] < some[1], "other clients, other shares: {some:?}");
        let few = ratio_interval(&keys, Mix { clients: 40, storing: 0.2, values: 3, ..all });
        assert!(few[0] < 0.7 * interval[0], "a value may be none of those that fill the cache: {few:?}");
    }

    #[test]
    fn one_key_has_an_interval_too() {
        let [low, high] =
            ratio_interval(&[(1_000, 700)], Mix { clients: 0, passed: 0.0, storing: 1.0, values: 1 });
        assert!(low < 0.68 && 0.72 < high && low > 0.62 && high < 0.78, "{low} to {high}");
        let [low, high] =
            ratio_interval(&[(10_000, 9_999)], Mix { clients: 0, passed: 0.0, storing: 1.0, values: 1 });
        assert!(low < 0.9998 && high >= 0.9999, "{low} to {high}");
    }
}
