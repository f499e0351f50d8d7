//! Functions on 16 lanes.

use crate::simd::Simd;

/// ln 2 in two parts; the high one has 15 bits, so its product with a whole number below 2^9 is
/// exact.
const LN_2_HIGH: f32 = 0.693_145_75;
const LN_2_LOW: f32 = 1.428_606_8e-6;

/// (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2: minimax for the relative error of e^r, which stays
/// below 2^-28.
const EXP: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_39, 0.008_368_717, 0.001_381_459_9];

/// e^x to 1 ulp, subnormal results included; 0 from -104 down, infinity from 88.73 up.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    // The argument stands second, so a NaN stays one.
    let x = s.max(s.splat(-104.0), s.min(s.splat(89.0), x));
    let k = s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let minus_k = s.sub(s.zero(), k);
    let r = s.fma(minus_k, s.splat(LN_2_HIGH), x);
    let r = s.fma(minus_k, s.splat(LN_2_LOW), r);
    let mut tail = s.splat(EXP[4]);
    let mut degree = 4;
    while degree > 0 {
        degree -= 1;
        tail = s.fma(tail, r, s.splat(EXP[degree]));
    }
    let mantissa = s.add(s.fma(s.mul(r, r), tail, r), s.splat(1.0));
    s.times_pow2(mantissa, k)
}

/// x / (1 + e^-z): x times the sigmoid of z. With z = x this is silu.
#[inline(always)]
pub(crate) fn sigmoid_mul<S: Simd>(s: S, x: S::F, z: S::F) -> S::F {
    s.div(x, s.add(s.splat(1.0), exp(s, s.sub(s.zero(), z))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Kernel, Level};
    use crate::simd::LANES;

    #[derive(Clone, Copy)]
    enum Function {
        Exp,
        Silu,
    }

    struct Map<'a> {
        function: Function,
        x: &'a [f32],
    }

    impl Kernel for Map<'_> {
        type Output = Vec<f32>;

        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Vec<f32> {
            let mut out = Vec::with_capacity(self.x.len());
            for x in self.x.as_chunks::<LANES>().0 {
                let x = s.load(x);
                let y = match self.function {
                    Function::Exp => exp(s, x),
                    Function::Silu => sigmoid_mul(s, x, x),
                };
                let mut lanes = [0.0; LANES];
                s.store(y, &mut lanes);
                out.extend_from_slice(&lanes);
            }
            out
        }
    }

    /// Every 1009th of all floats but the NaNs, and the ends of the ranges.
    fn arguments() -> Vec<f32> {
        let ends = [0.0, -0.0, 1.0, 87.4, 88.72, 88.73, 89.0, 103.9, 104.0, 1e30, f32::INFINITY];
        let mut x: Vec<f32> = (0..=u32::MAX).step_by(1009).map(f32::from_bits).collect();
        x.extend(ends.iter().flat_map(|x| [*x, -x]));
        x.extend((0..100_000).map(|i| (i as f32 - 50_000.0) * 0.0022));
        x.retain(|x| !x.is_nan());
        x.resize(x.len().next_multiple_of(LANES), 0.0);
        x
    }

    /// Distance in units of the last place of the f32 nearest to `exact`.
    fn ulps(ours: f32, exact: f64) -> f64 {
        let nearest = exact as f32;
        if nearest.is_infinite() || ours.is_infinite() {
            return if nearest == ours { 0.0 } else { f64::INFINITY };
        }
        let ulp = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
        (f64::from(ours) - exact).abs() / ulp
    }

    fn check(function: Function, exact: fn(f64) -> f64, covered: fn(f32) -> bool, bound: f64) {
        let x = arguments();
        let ours = Level::Scalar.run(Map { function, x: &x });
        let mut worst = (0.0, 0.0);
        for (x, y) in x.iter().zip(&ours).filter(|(x, _)| covered(**x)) {
            let off = ulps(*y, exact(f64::from(*x)));
            if off > worst.0 {
                worst = (off, *x);
            }
        }
        println!("worst: {} ulp at {}", worst.0, worst.1);
        assert!(worst.0 <= bound, "{} ulp at {}", worst.0, worst.1);
        for level in Level::available() {
            let same = level.run(Map { function, x: &x });
            let differs = ours.iter().zip(&same).position(|(a, b)| a.to_bits() != b.to_bits());
            assert_eq!(differs.map(|i| x[i]), None, "{level}");
        }
    }

    #[test]
    fn exp_is_the_same_at_all_levels_and_good_to_an_ulp() {
        check(Function::Exp, f64::exp, |_| true, 1.0);
    }

    #[test]
    fn silu_is_the_same_at_all_levels_and_nearly_as_good() {
        // exp, the sum and the division are off by at most 1 + 1/2 + 1/2 units of 2^-23, which
        // are up to 4 ulps; no argument comes near that.
        // Below, e^-x overflows, and the result is -0 for what lies above -3e-37.
        let covered = |x| (-88.7..f32::INFINITY).contains(&x);
        check(Function::Silu, |x| x / (1.0 + (-x).exp()), covered, 2.5);
    }

    #[test]
    fn not_a_number_stays_one() {
        for level in Level::available() {
            for function in [Function::Exp, Function::Silu] {
                let y = level.run(Map { function, x: &[f32::NAN; LANES] });
                assert!(y.iter().all(|y| y.is_nan()), "{level}");
            }
        }
    }
}
