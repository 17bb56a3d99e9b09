//! Student's t distribution and the normal one: probabilities and quantiles.
//!
//! By the regularised incomplete beta function, whose continued fraction is DLMF 8.17.22 (evaluated after Lentz 1976), and
//! the logarithm of gamma by Lanczos' approximation. Right to ten digits in the range that is used here.

/// Steps of the continued fraction: it needs about √(a + b) of them, and no run has a billion slices.
const STEPS: u32 = 100_000;

/// What is small enough to end with.
const SMALL: f64 = 1e-14;

/// The probability that |t| of so many degrees of freedom is at least this far from 0.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// How far from 0 |t| is not with probability `level`; the quantile of a two-sided interval.
pub(super) fn quantile(level: f64, freedom: f64) -> f64 {
    let beyond = 1.0 - level;
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > beyond && high < 1e12 {
        high *= 2.0;
    }
    // Each step halves what is not known: fifteen digits.
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > beyond {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The same of the normal distribution, right to 0.0005 (Hastings 1955, as Abramowitz and Stegun 26.2.23 have it).
pub(super) fn normal_quantile(level: f64) -> f64 {
    let root = (-2.0 * ((1.0 - level) / 2.0).ln()).sqrt();
    let above = 2.515_517 + root * (0.802_853 + root * 0.010_328);
    let below = 1.0 + root * (1.432_788 + root * (0.189_269 + root * 0.001_308));
    root - above / below
}

/// The regularised incomplete beta function I_x(a, b).
fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp();
    // The fraction converges fast on this side of its mean; the other side is the mirror (DLMF 8.17.4).
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= c * d;
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let change = c * d;
        value *= change;
        if (change - 1.0).abs() < SMALL {
            break;
        }
    }
    value
}

/// ln Γ(x) for x > 0 (Lanczos 1964, g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
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
    let series = TERMS
        .iter()
        .zip(1..)
        .fold(0.999_999_999_999_809_9, |sum, (term, place)| sum + term / (x + f64::from(place)));
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Two-sided 95 % and 99 %, as every table of Student's t has them.
        let cases = [
            (0.95, 1.0, 12.706_2),
            (0.95, 9.0, 2.262_16),
            (0.95, 30.0, 2.042_27),
            (0.99, 9.0, 3.249_84),
            (0.99, 120.0, 2.617_42),
            (0.95, 18.5, 2.096_82),
        ];
        for (level, freedom, expected) in cases {
            let found = quantile(level, freedom);
            assert!((found - expected).abs() < 2e-4, "{level} {freedom}: {found}, {expected}");
        }
        assert!((normal_quantile(0.95) - 1.959_96).abs() < 5e-4);
        assert!((normal_quantile(0.99) - 2.575_83).abs() < 5e-4);
    }

    #[test]
    fn probabilities_end_where_they_must() {
        assert!((two_sided(0.0, 5.0) - 1.0).abs() < 1e-12);
        assert!((two_sided(1.0, 1.0) - 0.5).abs() < 1e-12);
        assert!((two_sided(-2.262_157, 9.0) - 0.05).abs() < 1e-6);
        assert_eq!(two_sided(f64::INFINITY, 9.0), 0.0);
        assert_eq!(two_sided(f64::NAN, 9.0), 1.0);
        assert_eq!(two_sided(1.0, 0.0), 1.0);
    }
}
