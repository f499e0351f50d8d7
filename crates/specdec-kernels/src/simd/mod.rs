//! The one vocabulary that all kernels are written in: 16 virtual lanes.
//!
//! A value of a type that implements [`Simd`] is a token: it exists only where the instructions it
//! stands for may run (see [`crate::level::Level::run`]), so its methods are safe. The three
//! implementations give the same bits for every operation. What makes that true:
//! only IEEE +, -, x, / and fused multiply-add on floats, no approximations; reductions by
//! one fixed binary tree (lanes i and i + 8, then i and i + 4, i + 2, i + 1); exact integers.
//! The bits of a NaN are not covered.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod scalar;
#[cfg(test)]
mod tests;

pub(crate) use scalar::Scalar;

/// Lanes of every vector.
pub(crate) const LANES: usize = 16;

/// Asks the memory for the cache lines of `*at`, which may lie anywhere. Into the first cache: eight
/// rows have as many sums as hide the latency of a product, and none to hide that of the second
/// cache, which cost them up to a quarter on Zen 5.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    prefetch_bytes(at.cast(), size_of::<T>());
}

/// The same for so many bytes.
#[inline(always)]
pub(crate) fn prefetch_bytes(at: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(line).cast()) };
    }
}

/// Asks for what lies 32 vectors ahead in a row. The other core may have written it, and the
/// machine's own look-ahead begins anew with every tile: 16 gated activations of 8,960 take 53 us
/// without this and 42 with it on two Zen 5 cores, 512 take 2.4 and 1.8 ms.
#[inline(always)]
pub(crate) fn prefetch_row(vector: &[f32; LANES]) {
    prefetch(vector.as_ptr().wrapping_add(32 * LANES).cast::<[f32; LANES]>());
}

/// The weights of an integer product, N vectors, unpacked by a level when it needs them: eight rows
/// leave registers for few at a time.
pub(crate) trait Operands<const N: usize>: Copy {
    /// Vector i < N.
    fn operand<S: Simd>(self, s: S, i: usize) -> S::B;

    /// All of them.
    #[inline(always)]
    fn all<S: Simd>(self, s: S) -> [S::B; N] {
        let mut w = [s.splat_byte(0); N];
        for (i, w) in w.iter_mut().enumerate() {
            *w = self.operand(s, i);
        }
        w
    }
}

/// Vector operations on 16 lanes: `F` = f32, `I` = i32, `B` = four bytes per lane.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// 16 f32.
    type F: Copy;
    /// 16 i32.
    type I: Copy;
    /// 64 bytes, four per lane, lane 0 first.
    type B: Copy;
    /// 16 f64, sums of lanes.
    type D: Copy;

    /// Are there registers for about 24 vectors at a time, or only for 6?
    const WIDE: bool = false;

    // Loads and stores.
    fn load(self, from: &[f32; LANES]) -> Self::F;
    fn store(self, v: Self::F, to: &mut [f32; LANES]);
    /// Widens IEEE half floats (exact).
    fn load_f16(self, from: &[u16; LANES]) -> Self::F;
    /// Widens upper halves of floats (exact).
    fn load_bf16(self, from: &[u16; LANES]) -> Self::F;
    /// Rounds to IEEE half floats, ties to even.
    fn store_f16(self, v: Self::F, to: &mut [u16; LANES]);
    /// Widens signed bytes to the 16-bit halves of lanes, the first of two to the low one.
    fn load_i8_pairs(self, from: &[[i8; 2]; LANES]) -> Self::I;
    /// Keeps the low byte of every lane.
    fn store_i8(self, v: Self::I, to: &mut [i8; LANES]);
    fn load_bytes(self, from: &[u8; 64]) -> Self::B;

    // Floats.
    fn splat(self, x: f32) -> Self::F;
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// a * b + c, rounded once.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// a > b ? a : b (so b where one is NaN or both are zero).
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// a < b ? a : b.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// To a whole number, ties to even.
    fn round(self, a: Self::F) -> Self::F;
    /// Sum of all lanes by the fixed tree.
    fn sum(self, a: Self::F) -> f32;
    /// Largest lane; no lane may be NaN.
    fn max_lane(self, a: Self::F) -> f32;

    // Comparisons; those with NaN are false.
    /// Bit i: lane i of a >= lane i of b.
    fn ge_mask(self, a: Self::F, b: Self::F) -> u16;
    /// Lanes of `then` where a >= b, else 0.
    fn where_ge(self, a: Self::F, b: Self::F, then: Self::F) -> Self::F;

    // Sums in double precision.
    fn zero_f64(self) -> Self::D;
    /// acc + a, lane by lane.
    fn add_f64(self, acc: Self::D, a: Self::F) -> Self::D;
    /// Sum of all lanes by the fixed tree.
    fn sum_f64(self, acc: Self::D) -> f64;

    // Between floats and integers.
    /// Rounds to i32, ties to even; NaN and what does not fit give `i32::MIN`.
    fn to_i32(self, a: Self::F) -> Self::I;
    fn to_f32(self, a: Self::I) -> Self::F;
    fn as_bits(self, a: Self::F) -> Self::I;
    fn as_float(self, a: Self::I) -> Self::F;

    // Integers (wrapping).
    fn splat_i32(self, x: i32) -> Self::I;
    fn add_i32(self, a: Self::I, b: Self::I) -> Self::I;
    fn sub_i32(self, a: Self::I, b: Self::I) -> Self::I;
    /// The low 32 bits of the product.
    fn mul_i32(self, a: Self::I, b: Self::I) -> Self::I;
    fn max_i32(self, a: Self::I, b: Self::I) -> Self::I;
    fn and_i32(self, a: Self::I, b: Self::I) -> Self::I;
    fn xor_i32(self, a: Self::I, b: Self::I) -> Self::I;
    /// Exchanges the two 16-bit halves of every lane.
    fn swap_halves(self, a: Self::I) -> Self::I;
    /// Shift to the left by `n` < 32 bits.
    fn shl_i32(self, a: Self::I, n: u32) -> Self::I;
    /// Shift to the right by `n` < 32 bits, filling with the sign.
    fn shr_i32(self, a: Self::I, n: u32) -> Self::I;
    /// Sum of all lanes.
    fn sum_i32(self, a: Self::I) -> i32;
    /// Lane i: the sum of all lanes of a[i].
    #[inline(always)]
    fn sums_i32(self, a: &[Self::I; LANES]) -> Self::I {
        let mut sums = [0.0; LANES];
        for (sum, a) in sums.iter_mut().zip(a) {
            *sum = f32::from_bits(self.sum_i32(*a) as u32);
        }
        self.as_bits(self.load(&sums))
    }
    fn store_i32(self, v: Self::I, to: &mut [i32; LANES]);
    /// acc + the products of the two signed numbers of 16 bits in every lane of a and b.
    fn dot_pairs(self, acc: Self::I, a: Self::I, b: Self::I) -> Self::I;
    /// Largest lane.
    fn max_lane_i32(self, a: Self::I) -> i32;

    // Bytes.
    fn splat_byte(self, x: u8) -> Self::B;
    /// Every four bytes as a lane, the first one lowest.
    fn words(self, a: Self::B) -> Self::I;
    fn and(self, a: Self::B, b: Self::B) -> Self::B;
    fn or(self, a: Self::B, b: Self::B) -> Self::B;
    /// Shifts every 16-bit half of a lane to the left; mask away what crosses a byte.
    fn shl_b16(self, a: Self::B, n: u32) -> Self::B;
    /// Shifts every 16-bit half of a lane to the right, filling with zeros.
    fn shr_b16(self, a: Self::B, n: u32) -> Self::B;

    // Exact integer products.
    /// acc + the sum over the N vectors of w[i] (unsigned bytes) times the four signed bytes of
    /// x[i], per lane.
    ///
    /// AVX2 adds `CHAIN` products of byte pairs in 16 bits before it widens, so
    /// `CHAIN * 2 * max(w) * 127` must be at most 32,767: 8 / 4 / 2 for weights of 4 / 5 / 6 bits,
    /// with x in [-127, 127].
    fn dot<const N: usize, const CHAIN: usize>(
        self,
        acc: Self::I,
        w: &[Self::B; N],
        x: &[i32; N],
    ) -> Self::I;
    /// The same for signed weights that are stored plus 128; `acc` must be -128 times the sum of
    /// all bytes of x, which levels that multiply the stored bytes need and the others leave out.
    /// x in [-127, 127].
    fn dot_signed<const N: usize>(self, acc: Self::I, w: &[Self::B; N], x: &[i32; N]) -> Self::I;

    /// [`Simd::dot`] for `G` rows.
    #[inline(always)]
    fn dots<const N: usize, const CHAIN: usize, const G: usize>(
        self,
        acc: &mut [Self::I; G],
        w: impl Operands<N>,
        x: &[&[i32; N]; G],
    ) {
        let w = w.all(self);
        for (acc, x) in acc.iter_mut().zip(x) {
            *acc = self.dot::<N, CHAIN>(*acc, &w, x);
        }
    }

    /// [`Simd::dot_signed`] for `G` rows.
    #[inline(always)]
    fn dots_signed<const N: usize, const G: usize>(
        self,
        acc: &mut [Self::I; G],
        w: impl Operands<N>,
        x: &[&[i32; N]; G],
    ) {
        let w = w.all(self);
        for (acc, x) in acc.iter_mut().zip(x) {
            *acc = self.dot_signed(*acc, &w, x);
        }
    }

    /// 2^n, for n in -126..=127.
    #[inline(always)]
    fn pow2(self, n: Self::I) -> Self::F {
        self.as_float(self.shl_i32(self.add_i32(n, self.splat_i32(127)), 23))
    }

    /// a * 2^k, rounded once, for |a| in [1/2, 2] and whole numbers k in -150..=128.
    #[inline(always)]
    fn times_pow2(self, a: Self::F, k: Self::F) -> Self::F {
        // 2^k goes beyond what one exponent holds. The first of two factors leaves a normal number,
        // so only the last product rounds.
        let k = self.to_i32(k);
        let half = self.shr_i32(k, 1);
        self.mul(self.mul(a, self.pow2(half)), self.pow2(self.sub_i32(k, half)))
    }

    #[inline(always)]
    fn zero(self) -> Self::F {
        self.splat(0.0)
    }

    /// Up to 16 values, zeros behind them.
    #[inline(always)]
    fn load_tail(self, from: &[f32]) -> Self::F {
        let mut lanes = [0.0; LANES];
        lanes[..from.len()].copy_from_slice(from);
        self.load(&lanes)
    }

    /// Stores the first `to.len()` <= 16 lanes.
    #[inline(always)]
    fn store_tail(self, v: Self::F, to: &mut [f32]) {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        to.copy_from_slice(&lanes[..to.len()]);
    }
}
