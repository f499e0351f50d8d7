//! AVX2 with FMA and F16C: a virtual vector is two registers, lanes 0..8 and 8..16.

use std::arch::x86_64::*;

use super::{LANES, Simd};

/// Token that AVX2, FMA and F16C may be used.
#[derive(Copy, Clone)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// # Safety
    /// The machine must have AVX2, FMA and F16C.
    #[inline(always)]
    pub(crate) unsafe fn assume() -> Avx2 {
        Avx2(())
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

type F = [__m256; 2];
type I = [__m256i; 2];

/// Applies an operation to both registers.
macro_rules! both {
    ($op:ident($a:expr)) => {
        [$op($a[0]), $op($a[1])]
    };
    ($op:ident($a:expr, $b:expr)) => {
        [$op($a[0], $b[0]), $op($a[1], $b[1])]
    };
}

/// Reduces 16 lanes by the fixed tree.
macro_rules! tree {
    ($a:expr, $op8:ident, $op4:ident, $high:ident, $low:ident, $cast:ident, $back:ident) => {{
        let eight = $op8($a[0], $a[1]);
        let four = $op4($low(eight), $high::<1>(eight));
        let two = $op4(four, $back(_mm_shuffle_epi32::<0b01_00_11_10>($cast(four))));
        $op4(two, $back(_mm_shuffle_epi32::<0b10_11_00_01>($cast(two))))
    }};
}

/// Sums of four virtual vectors: that of number i in lanes i and i + 4 together.
macro_rules! sums {
    ($a:expr, $b:expr, $c:expr, $d:expr) => {
        _mm256_hadd_epi32(
            _mm256_hadd_epi32(_mm256_add_epi32($a[0], $a[1]), _mm256_add_epi32($b[0], $b[1])),
            _mm256_hadd_epi32(_mm256_add_epi32($c[0], $c[1]), _mm256_add_epi32($d[0], $d[1])),
        )
    };
}

#[inline(always)]
fn same(a: __m128i) -> __m128i {
    a
}

impl Simd for Avx2 {
    type F = F;
    type I = I;
    type B = I;
    type D = [__m256d; 4];

    methods! {
        fn load(self, from: &[f32; LANES]) -> F {
            [_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))]
        }
        fn store(self, v: F, to: &mut [f32; LANES]) {
            _mm256_storeu_ps(to.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), v[1]);
        }
        fn load_f16(self, from: &[u16; LANES]) -> F {
            let from: *const __m128i = from.as_ptr().cast();
            [_mm256_cvtph_ps(_mm_loadu_si128(from)), _mm256_cvtph_ps(_mm_loadu_si128(from.add(1)))]
        }
        fn load_bf16(self, from: &[u16; LANES]) -> F {
            let from: *const __m128i = from.as_ptr().cast();
            let wide = [
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from)),
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from.add(1))),
            ];
            [
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide[0])),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide[1])),
            ]
        }
        fn store_f16(self, v: F, to: &mut [u16; LANES]) {
            let to: *mut __m128i = to.as_mut_ptr().cast();
            _mm_storeu_si128(to, _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v[0]));
            _mm_storeu_si128(to.add(1), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v[1]));
        }
        fn load_i8_pairs(self, from: &[[i8; 2]; LANES]) -> I {
            let from: *const __m128i = from.as_ptr().cast();
            [
                _mm256_cvtepi8_epi16(_mm_loadu_si128(from)),
                _mm256_cvtepi8_epi16(_mm_loadu_si128(from.add(1))),
            ]
        }
        fn store_i8(self, v: I, to: &mut [i8; LANES]) {
            let low = _mm256_set1_epi32(0xff);
            let v = both!(_mm256_and_si256(v, [low, low]));
            // Packing works within 128-bit halves: 64-bit parts 0, 2 hold lanes 0..8 in order.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(v[0], v[1]));
            let (a, b) = (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_packus_epi16(a, b));
        }
        fn load_bytes(self, from: &[u8; 64]) -> I {
            let from: *const __m256i = from.as_ptr().cast();
            [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))]
        }

        fn splat(self, x: f32) -> F { [_mm256_set1_ps(x); 2] }
        fn add(self, a: F, b: F) -> F { both!(_mm256_add_ps(a, b)) }
        fn sub(self, a: F, b: F) -> F { both!(_mm256_sub_ps(a, b)) }
        fn mul(self, a: F, b: F) -> F { both!(_mm256_mul_ps(a, b)) }
        fn div(self, a: F, b: F) -> F { both!(_mm256_div_ps(a, b)) }
        fn fma(self, a: F, b: F, c: F) -> F {
            [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])]
        }
        fn max(self, a: F, b: F) -> F { both!(_mm256_max_ps(a, b)) }
        fn min(self, a: F, b: F) -> F { both!(_mm256_min_ps(a, b)) }
        fn round(self, a: F) -> F {
            const EVEN: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            [_mm256_round_ps::<EVEN>(a[0]), _mm256_round_ps::<EVEN>(a[1])]
        }
        fn sum(self, a: F) -> f32 {
            _mm_cvtss_f32(tree!(a, _mm256_add_ps, _mm_add_ps, _mm256_extractf128_ps,
                _mm256_castps256_ps128, _mm_castps_si128, _mm_castsi128_ps))
        }
        fn max_lane(self, a: F) -> f32 {
            _mm_cvtss_f32(tree!(a, _mm256_max_ps, _mm_max_ps, _mm256_extractf128_ps,
                _mm256_castps256_ps128, _mm_castps_si128, _mm_castsi128_ps))
        }

        fn ge_mask(self, a: F, b: F) -> u16 {
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(a[0], b[0]));
            let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(a[1], b[1]));
            (low | high << 8) as u16
        }
        fn where_ge(self, a: F, b: F, then: F) -> F {
            let ge = [_mm256_cmp_ps::<_CMP_GE_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_GE_OQ>(a[1], b[1])];
            both!(_mm256_and_ps(ge, then))
        }

        fn zero_f64(self) -> [__m256d; 4] { [_mm256_setzero_pd(); 4] }
        fn add_f64(self, acc: [__m256d; 4], a: F) -> [__m256d; 4] {
            [
                _mm256_add_pd(acc[0], _mm256_cvtps_pd(_mm256_castps256_ps128(a[0]))),
                _mm256_add_pd(acc[1], _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a[0]))),
                _mm256_add_pd(acc[2], _mm256_cvtps_pd(_mm256_castps256_ps128(a[1]))),
                _mm256_add_pd(acc[3], _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a[1]))),
            ]
        }
        fn sum_f64(self, acc: [__m256d; 4]) -> f64 {
            // Lanes i and i + 8, then i and i + 4: both between whole registers.
            let four = _mm256_add_pd(_mm256_add_pd(acc[0], acc[2]), _mm256_add_pd(acc[1], acc[3]));
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }

        fn to_i32(self, a: F) -> I { both!(_mm256_cvtps_epi32(a)) }
        fn to_f32(self, a: I) -> F { both!(_mm256_cvtepi32_ps(a)) }
        fn as_bits(self, a: F) -> I { both!(_mm256_castps_si256(a)) }
        fn as_float(self, a: I) -> F { both!(_mm256_castsi256_ps(a)) }

        fn splat_i32(self, x: i32) -> I { [_mm256_set1_epi32(x); 2] }
        fn add_i32(self, a: I, b: I) -> I { both!(_mm256_add_epi32(a, b)) }
        fn sub_i32(self, a: I, b: I) -> I { both!(_mm256_sub_epi32(a, b)) }
        fn mul_i32(self, a: I, b: I) -> I { both!(_mm256_mullo_epi32(a, b)) }
        fn max_i32(self, a: I, b: I) -> I { both!(_mm256_max_epi32(a, b)) }
        fn and_i32(self, a: I, b: I) -> I { both!(_mm256_and_si256(a, b)) }
        fn xor_i32(self, a: I, b: I) -> I { both!(_mm256_xor_si256(a, b)) }
        fn swap_halves(self, a: I) -> I {
            a.map(|a| {
                _mm256_shufflehi_epi16::<0b10_11_00_01>(_mm256_shufflelo_epi16::<0b10_11_00_01>(a))
            })
        }
        fn shl_i32(self, a: I, n: u32) -> I {
            let n = _mm_cvtsi32_si128(n as i32);
            [_mm256_sll_epi32(a[0], n), _mm256_sll_epi32(a[1], n)]
        }
        fn shr_i32(self, a: I, n: u32) -> I {
            let n = _mm_cvtsi32_si128(n as i32);
            [_mm256_sra_epi32(a[0], n), _mm256_sra_epi32(a[1], n)]
        }
        fn sum_i32(self, a: I) -> i32 {
            _mm_cvtsi128_si32(tree!(a, _mm256_add_epi32, _mm_add_epi32, _mm256_extracti128_si256,
                _mm256_castsi256_si128, same, same))
        }
        fn sums_i32(self, a: &[I; LANES]) -> I {
            let mut out = [_mm256_setzero_si256(); 2];
            for (out, a) in out.iter_mut().zip(a.as_chunks::<8>().0) {
                let (low, high) = (sums!(a[0], a[1], a[2], a[3]), sums!(a[4], a[5], a[6], a[7]));
                *out = _mm256_add_epi32(
                    _mm256_permute2x128_si256::<0x20>(low, high),
                    _mm256_permute2x128_si256::<0x31>(low, high),
                );
            }
            out
        }
        fn store_i32(self, v: I, to: &mut [i32; LANES]) {
            let to: *mut __m256i = to.as_mut_ptr().cast();
            _mm256_storeu_si256(to, v[0]);
            _mm256_storeu_si256(to.add(1), v[1]);
        }
        fn dot_pairs(self, acc: I, a: I, b: I) -> I {
            let products = both!(_mm256_madd_epi16(a, b));
            both!(_mm256_add_epi32(acc, products))
        }
        fn max_lane_i32(self, a: I) -> i32 {
            _mm_cvtsi128_si32(tree!(a, _mm256_max_epi32, _mm_max_epi32, _mm256_extracti128_si256,
                _mm256_castsi256_si128, same, same))
        }

        fn splat_byte(self, x: u8) -> I { [_mm256_set1_epi8(x as i8); 2] }
        fn and(self, a: I, b: I) -> I { both!(_mm256_and_si256(a, b)) }
        fn or(self, a: I, b: I) -> I { both!(_mm256_or_si256(a, b)) }
        fn shl_b16(self, a: I, n: u32) -> I {
            let n = _mm_cvtsi32_si128(n as i32);
            [_mm256_sll_epi16(a[0], n), _mm256_sll_epi16(a[1], n)]
        }
        fn shr_b16(self, a: I, n: u32) -> I {
            let n = _mm_cvtsi32_si128(n as i32);
            [_mm256_srl_epi16(a[0], n), _mm256_srl_epi16(a[1], n)]
        }
    }

    #[inline(always)]
    fn words(self, a: I) -> I {
        a
    }

    #[inline(always)]
    fn dot<const N: usize, const CHAIN: usize>(self, acc: I, w: &[I; N], x: &[i32; N]) -> I {
        // SAFETY: the token says that AVX2 is there.
        unsafe {
            let one = _mm256_set1_epi16(1);
            let mut acc = acc;
            for first in (0..N).step_by(CHAIN) {
                let b = _mm256_set1_epi32(x[first]);
                let mut low = _mm256_maddubs_epi16(w[first][0], b);
                let mut high = _mm256_maddubs_epi16(w[first][1], b);
                for i in first + 1..first + CHAIN {
                    let b = _mm256_set1_epi32(x[i]);
                    low = _mm256_add_epi16(low, _mm256_maddubs_epi16(w[i][0], b));
                    high = _mm256_add_epi16(high, _mm256_maddubs_epi16(w[i][1], b));
                }
                acc[0] = _mm256_add_epi32(acc[0], _mm256_madd_epi16(low, one));
                acc[1] = _mm256_add_epi32(acc[1], _mm256_madd_epi16(high, one));
            }
            acc
        }
    }

    #[inline(always)]
    fn dot_signed<const N: usize>(self, _: I, w: &[I; N], x: &[i32; N]) -> I {
        // |w| * sign(x, w): |w| <= 128 and |x| <= 127, so a pair is at most 32,512 in 16 bits.
        // SAFETY: the token says that AVX2 is there.
        unsafe {
            let (flip, one) = (_mm256_set1_epi8(-128), _mm256_set1_epi16(1));
            let mut acc = [_mm256_setzero_si256(); 2];
            for i in 0..N {
                let b = _mm256_set1_epi32(x[i]);
                for half in 0..2 {
                    let w = _mm256_xor_si256(w[i][half], flip);
                    let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(b, w));
                    acc[half] = _mm256_add_epi32(acc[half], _mm256_madd_epi16(pairs, one));
                }
            }
            acc
        }
    }
}
