//! AVX-512 with VNNI: a virtual vector is one register.

use std::arch::x86_64::*;

use super::{LANES, Operands, Simd};

/// Token that AVX-512 F, BW, VL, DQ and VNNI may be used, and all of AVX2's.
#[derive(Copy, Clone)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// # Safety
    /// The machine must have AVX-512 F, BW, VL, DQ, VNNI, and AVX2, FMA, F16C.
    #[inline(always)]
    pub(crate) unsafe fn assume() -> Avx512 {
        Avx512(())
    }
}

/// Methods whose body may use the intrinsics and read or write whole fixed-size arrays.
macro_rules! methods {
    ($(fn $name:ident(self $(, $arg:ident: $ty:ty)*) $(-> $ret:ty)? $body:block)*) => {$(
        #[inline(always)]
        fn $name(self $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: the token says that the features are there; pointers come from references
            // to arrays of the size that is read or written.
            unsafe { $body }
        }
    )*};
}

/// Reduces 16 lanes by the fixed tree; shuffles are integer ones between casts.
macro_rules! tree {
    ($ints:expr, $op8:ident, $op4:ident, $cast8:ident, $cast4:ident, $back4:ident) => {{
        let (low, high) = ($ints, _mm512_extracti64x4_epi64::<1>($ints));
        let eight = $op8($cast8(_mm512_castsi512_si256(low)), $cast8(high));
        let (low, high) = halves!(eight, $cast8);
        let four = $op4($cast4(low), $cast4(high));
        let two = $op4(four, $cast4(_mm_shuffle_epi32::<0b01_00_11_10>($back4(four))));
        $op4(two, $cast4(_mm_shuffle_epi32::<0b10_11_00_01>($back4(two))))
    }};
}

/// The two 128-bit halves of a 256-bit vector, as integers.
macro_rules! halves {
    ($eight:expr, _mm256_castsi256_ps) => {
        halves!(_mm256_castps_si256($eight), same)
    };
    ($eight:expr, $other:ident) => {
        (_mm256_castsi256_si128($eight), _mm256_extracti128_si256::<1>($eight))
    };
}

/// The sum of two shuffles of the same two vectors.
macro_rules! pairs {
    ($a:expr, $b:expr, $low:ident, $high:ident) => {
        _mm512_add_epi32($low($a, $b), $high($a, $b))
    };
}

/// The same for the 128-bit parts, even and odd ones.
macro_rules! across {
    ($a:expr, $b:expr) => {
        _mm512_add_epi32(
            _mm512_shuffle_i32x4::<0b10_00_10_00>($a, $b),
            _mm512_shuffle_i32x4::<0b11_01_11_01>($a, $b),
        )
    };
}

/// `_mm512_dpwssd_epi32`, which the compiler turns into a product and a sum, for which there is no
/// room beside other products.
///
/// # Safety
/// The machine must have AVX-512 F and VNNI.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn dpwssd(mut acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: one instruction on registers.
    unsafe {
        std::arch::asm!(
            "vpdpwssd {acc}, {a}, {b}",
            acc = inout(zmm_reg) acc,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    acc
}

#[inline(always)]
fn same<T>(a: T) -> T {
    a
}

impl Simd for Avx512 {
    type F = __m512;
    type I = __m512i;
    type B = __m512i;
    type D = [__m512d; 2];

    const WIDE: bool = true;

    methods! {
        fn load(self, from: &[f32; LANES]) -> __m512 { _mm512_loadu_ps(from.as_ptr()) }
        fn store(self, v: __m512, to: &mut [f32; LANES]) { _mm512_storeu_ps(to.as_mut_ptr(), v); }
        fn load_f16(self, from: &[u16; LANES]) -> __m512 {
            _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast()))
        }
        fn load_bf16(self, from: &[u16; LANES]) -> __m512 {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
        fn store_f16(self, v: __m512, to: &mut [u16; LANES]) {
            let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
            _mm256_storeu_si256(to.as_mut_ptr().cast(), halves);
        }
        fn load_i8_pairs(self, from: &[[i8; 2]; LANES]) -> __m512i {
            _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.as_ptr().cast()))
        }
        fn store_i8(self, v: __m512i, to: &mut [i8; LANES]) {
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(v));
        }
        fn load_bytes(self, from: &[u8; 64]) -> __m512i { _mm512_loadu_si512(from.as_ptr().cast()) }

        fn splat(self, x: f32) -> __m512 { _mm512_set1_ps(x) }
        fn add(self, a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        fn sub(self, a: __m512, b: __m512) -> __m512 { _mm512_sub_ps(a, b) }
        fn mul(self, a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn div(self, a: __m512, b: __m512) -> __m512 { _mm512_div_ps(a, b) }
        fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn max(self, a: __m512, b: __m512) -> __m512 { _mm512_max_ps(a, b) }
        fn min(self, a: __m512, b: __m512) -> __m512 { _mm512_min_ps(a, b) }
        fn times_pow2(self, a: __m512, k: __m512) -> __m512 { _mm512_scalef_ps(a, k) }
        fn round(self, a: __m512) -> __m512 { _mm512_roundscale_ps::<_MM_FROUND_TO_NEAREST_INT>(a) }
        fn sum(self, a: __m512) -> f32 {
            _mm_cvtss_f32(tree!(_mm512_castps_si512(a), _mm256_add_ps, _mm_add_ps,
                _mm256_castsi256_ps, _mm_castsi128_ps, _mm_castps_si128))
        }
        fn max_lane(self, a: __m512) -> f32 {
            _mm_cvtss_f32(tree!(_mm512_castps_si512(a), _mm256_max_ps, _mm_max_ps,
                _mm256_castsi256_ps, _mm_castsi128_ps, _mm_castps_si128))
        }

        fn ge_mask(self, a: __m512, b: __m512) -> u16 { _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, b) }
        fn where_ge(self, a: __m512, b: __m512, then: __m512) -> __m512 {
            _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, b), then)
        }

        fn zero_f64(self) -> [__m512d; 2] { [_mm512_setzero_pd(); 2] }
        fn add_f64(self, acc: [__m512d; 2], a: __m512) -> [__m512d; 2] {
            let high = _mm512_extractf32x8_ps::<1>(a);
            [
                _mm512_add_pd(acc[0], _mm512_cvtps_pd(_mm512_castps512_ps256(a))),
                _mm512_add_pd(acc[1], _mm512_cvtps_pd(high)),
            ]
        }
        fn sum_f64(self, acc: [__m512d; 2]) -> f64 {
            let eight = _mm512_add_pd(acc[0], acc[1]);
            let four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight));
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }

        fn to_i32(self, a: __m512) -> __m512i { _mm512_cvtps_epi32(a) }
        fn to_f32(self, a: __m512i) -> __m512 { _mm512_cvtepi32_ps(a) }
        fn as_bits(self, a: __m512) -> __m512i { _mm512_castps_si512(a) }
        fn as_float(self, a: __m512i) -> __m512 { _mm512_castsi512_ps(a) }

        fn splat_i32(self, x: i32) -> __m512i { _mm512_set1_epi32(x) }
        fn add_i32(self, a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
        fn sub_i32(self, a: __m512i, b: __m512i) -> __m512i { _mm512_sub_epi32(a, b) }
        fn mul_i32(self, a: __m512i, b: __m512i) -> __m512i { _mm512_mullo_epi32(a, b) }
        fn max_i32(self, a: __m512i, b: __m512i) -> __m512i { _mm512_max_epi32(a, b) }
        fn and_i32(self, a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        fn xor_i32(self, a: __m512i, b: __m512i) -> __m512i { _mm512_xor_si512(a, b) }
        fn swap_halves(self, a: __m512i) -> __m512i { _mm512_rol_epi32::<16>(a) }
        fn shl_i32(self, a: __m512i, n: u32) -> __m512i {
            _mm512_sll_epi32(a, _mm_cvtsi32_si128(n as i32))
        }
        fn shr_i32(self, a: __m512i, n: u32) -> __m512i {
            _mm512_sra_epi32(a, _mm_cvtsi32_si128(n as i32))
        }
        fn sum_i32(self, a: __m512i) -> i32 {
            _mm_cvtsi128_si32(tree!(a, _mm256_add_epi32, _mm_add_epi32, same, same, same))
        }
        fn sums_i32(self, a: &[__m512i; LANES]) -> __m512i {
            // Four levels of sums of two vectors side by side: numbers within 128 bits, then those.
            let mut fours = [_mm512_setzero_si512(); 4];
            for (sum, a) in fours.iter_mut().zip(a.as_chunks::<4>().0) {
                let low = pairs!(a[0], a[1], _mm512_unpacklo_epi32, _mm512_unpackhi_epi32);
                let high = pairs!(a[2], a[3], _mm512_unpacklo_epi32, _mm512_unpackhi_epi32);
                *sum = pairs!(low, high, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64);
            }
            let [a, b, c, d] = fours;
            let (low, high) = (across!(a, b), across!(c, d));
            across!(low, high)
        }
        fn store_i32(self, v: __m512i, to: &mut [i32; LANES]) {
            _mm512_storeu_si512(to.as_mut_ptr().cast(), v);
        }
        fn dot_pairs(self, acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
            dpwssd(acc, a, b)
        }
        fn max_lane_i32(self, a: __m512i) -> i32 {
            _mm_cvtsi128_si32(tree!(a, _mm256_max_epi32, _mm_max_epi32, same, same, same))
        }

        fn splat_byte(self, x: u8) -> __m512i { _mm512_set1_epi8(x as i8) }
        fn and(self, a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        fn or(self, a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        fn shl_b16(self, a: __m512i, n: u32) -> __m512i {
            _mm512_sll_epi16(a, _mm_cvtsi32_si128(n as i32))
        }
        fn shr_b16(self, a: __m512i, n: u32) -> __m512i {
            _mm512_srl_epi16(a, _mm_cvtsi32_si128(n as i32))
        }
    }

    #[inline(always)]
    fn words(self, a: __m512i) -> __m512i {
        a
    }

    #[inline(always)]
    fn dot<const N: usize, const CHAIN: usize>(
        self,
        mut acc: __m512i,
        w: &[__m512i; N],
        x: &[i32; N],
    ) -> __m512i {
        for i in 0..N {
            // SAFETY: the token says that VNNI is there.
            acc = unsafe { _mm512_dpbusd_epi32(acc, w[i], _mm512_set1_epi32(x[i])) };
        }
        acc
    }

    #[inline(always)]
    fn dot_signed<const N: usize>(self, acc: __m512i, w: &[__m512i; N], x: &[i32; N]) -> __m512i {
        self.dot::<N, 1>(acc, w, x)
    }

    /// Row by row, the chain of one row's products (4 cycles each) would fill the scheduler: taking
    /// a product of every row in turn gives 178 GMAC/s instead of 166 in cache.
    #[inline(always)]
    fn dots<const N: usize, const CHAIN: usize, const G: usize>(
        self,
        acc: &mut [__m512i; G],
        w: impl Operands<N>,
        x: &[&[i32; N]; G],
    ) {
        for i in 0..N {
            let w = w.operand(self, i);
            for (acc, x) in acc.iter_mut().zip(x) {
                // SAFETY: the token says that VNNI is there.
                *acc = unsafe { _mm512_dpbusd_epi32(*acc, w, _mm512_set1_epi32(x[i])) };
            }
        }
    }

    #[inline(always)]
    fn dots_signed<const N: usize, const G: usize>(
        self,
        acc: &mut [__m512i; G],
        w: impl Operands<N>,
        x: &[&[i32; N]; G],
    ) {
        self.dots::<N, 1, G>(acc, w, x);
    }
}
