//! The largest logit of a row and its token.

use crate::level::Kernel;
use crate::simd::{LANES, Simd};

/// Vectors of a block: the block of the first maximum is searched again for its place.
const BLOCK: usize = 64;

/// The lowest token of the largest logit; `None` if a logit is NaN or +inf, or all are -inf.
pub(super) struct Max<'a> {
    pub(super) row: &'a [f32],
}

impl Kernel for Max<'_> {
    type Output = Option<(u32, f32)>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<(u32, f32)> {
        let mut best = f32::NEG_INFINITY;
        let mut place = 0;
        let mut numbers = true;
        for (i, block) in self.row.chunks(BLOCK * LANES).enumerate() {
            let (largest, sane) = scan(s, block);
            numbers &= sane;
            if largest > best {
                (best, place) = (largest, i * BLOCK * LANES);
            }
        }
        if !numbers || best == f32::INFINITY || best == f32::NEG_INFINITY {
            return None;
        }
        let mut index = place;
        while self.row[index] != best {
            index += 1;
        }
        Some((index as u32, self.row[index]))
    }
}

/// The largest number of a block, and whether it holds no NaN.
#[inline(always)]
fn scan<S: Simd>(s: S, block: &[f32]) -> (f32, bool) {
    let least = s.splat(f32::NEG_INFINITY);
    let mut largest = least;
    let mut sane = u16::MAX;
    let (vectors, tail) = block.as_chunks::<LANES>();
    for vector in vectors {
        let x = s.load(vector);
        largest = s.max(x, largest);
        sane &= s.ge_mask(x, least);
    }
    let mut best = s.max_lane(largest);
    for &x in tail {
        if x > best {
            best = x;
        }
        sane &= u16::from(x >= f32::NEG_INFINITY).wrapping_neg();
    }
    (best, sane == u16::MAX)
}
