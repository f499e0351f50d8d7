//! From single precision to signed bytes.

use super::{Pair, Row, Rows, Super, whole_tiles};
use crate::disjoint::Disjoint;
use crate::simd::{LANES, Simd};

impl Row<'_> {
    /// Brings the quantised forms up to date with `values`.
    #[inline(always)]
    pub(crate) fn quantise<S: Simd>(&mut self, s: S) {
        let Rows { pairs, pairs_per_row, supers, supers_per_row, .. } = self.rows;
        if *pairs_per_row > 0 {
            for (b, values) in (self.first / 64..).zip(self.values.chunks(64)) {
                // SAFETY: whoever holds a run of values holds its blocks.
                quantise_pair(s, values, unsafe { self.block(pairs, b) });
            }
        }
        if *supers_per_row > 0 {
            for (b, values) in (self.first / 256..).zip(self.values.chunks(256)) {
                // SAFETY: as above.
                quantise_super(s, values, unsafe { self.block(supers, b) });
            }
        }
    }

    /// Block `b` of this row.
    ///
    /// # Safety
    /// A block may be held only once at a time.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    unsafe fn block<'a, T>(&self, of: &'a Disjoint<'_, T>, b: usize) -> &'a mut T {
        let at = b * whole_tiles(self.rows.filled) + self.i;
        // SAFETY: blocks do not overlap, and the caller holds this one once.
        let block = unsafe { of.part(at..at + 1) };
        &mut block[0]
    }
}

/// Sixteen values from `at` on, zeros behind the end.
#[inline(always)]
fn lanes<S: Simd>(s: S, values: &[f32], at: usize) -> S::F {
    let rest = values.get(at..).unwrap_or_default();
    match rest.first_chunk::<LANES>() {
        Some(whole) => s.load(whole),
        None => s.load_tail(rest),
    }
}

/// The scale of a block and what its values are multiplied by.
#[inline(always)]
fn scale<S: Simd, const N: usize>(s: S, x: &[S::F; N]) -> (f32, S::F) {
    // As integers, magnitudes are ordered with infinity and NaN on top, so neither gets lost.
    let magnitude = s.splat_i32(0x7fff_ffff);
    let mut largest = s.splat_i32(0);
    for &x in x {
        largest = s.max_i32(largest, s.and_i32(s.as_bits(x), magnitude));
    }
    let largest = f32::from_bits(s.max_lane_i32(largest) as u32);
    let scale = largest / 127.0;
    if scale < f32::MIN_POSITIVE {
        (0.0, s.zero())
    } else if scale.is_finite() {
        (scale, s.splat(127.0 / largest))
    } else {
        (f32::NAN, s.zero())
    }
}

/// Quantises 16 values, stores them as four words and returns them: far beyond a byte where x is not
/// finite, so sums of them wrap, which the scale of such a block makes all one.
#[inline(always)]
fn store<S: Simd>(s: S, x: S::F, factor: S::F, words: &mut [i32]) -> S::I {
    let mut bytes = [0_i8; LANES];
    let q = s.to_i32(s.mul(x, factor));
    s.store_i8(q, &mut bytes);
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = i32::from_le_bytes(bytes.map(|b| b as u8));
    }
    q
}

#[inline(always)]
fn quantise_pair<S: Simd>(s: S, values: &[f32], pair: &mut Pair) {
    for block in 0..2 {
        let x = [lanes(s, values, block * 32), lanes(s, values, block * 32 + 16)];
        let (scale, factor) = scale(s, &x);
        let (low, high) = pair.words[block].split_at_mut(4);
        let q = s.add_i32(store(s, x[0], factor, low), store(s, x[1], factor, high));
        let sum = s.sum_i32(q);
        pair.scale[block] = scale;
        pair.sum[block] = scale * sum as f32;
        pair.less16[block] = sum.wrapping_mul(-16);
        pair.less128[block] = sum.wrapping_mul(-128);
    }
}

#[inline(always)]
fn quantise_super<S: Simd>(s: S, values: &[f32], block: &mut Super) {
    let mut x = [s.zero(); 16];
    for (i, x) in x.iter_mut().enumerate() {
        *x = lanes(s, values, i * LANES);
    }
    let (scale, factor) = scale(s, &x);
    block.scale = scale;
    let mut q = [s.splat_i32(0); 16];
    for (i, words) in block.words.as_flattened_mut().as_chunks_mut::<4>().0.iter_mut().enumerate() {
        q[i] = store(s, x[i], factor, words);
    }
    let (sums, sizes) = sums(s, q);
    for (start, sums) in block.starts.iter_mut().zip(sums.as_chunks().0) {
        let [b, a] = sums.map(|sum| sum.wrapping_mul(-32).wrapping_add(1 << 15));
        *start = a & 0xffff | b << 16;
    }
    block.most16 = sizes.into_iter().fold(0, i32::max);
    block.most32 = runs_of_32(sizes).into_iter().fold(0, i32::max);
    for (word, [a, b]) in block.sums.iter_mut().zip(runs_of_32(sums).as_chunks().0) {
        *word = a & 0xffff | b << 16;
    }
}

#[inline(always)]
fn runs_of_32(of_16: [i32; 16]) -> [i32; 8] {
    std::array::from_fn(|i| of_16[2 * i].wrapping_add(of_16[2 * i + 1]))
}

/// The sums of q and of |q| over runs of 16, which are at most 16 * 127: both fit into one lane.
#[inline(always)]
fn sums<S: Simd>(s: S, mut q: [S::I; 16]) -> ([i32; 16], [i32; 16]) {
    for q in &mut q {
        let size = s.max_i32(*q, s.sub_i32(s.splat_i32(0), *q));
        *q = s.add_i32(*q, s.shl_i32(size, 16));
    }
    let mut both = [0_i32; 16];
    s.store_i32(s.sums_i32(&q), &mut both);
    let sums = both.map(|both| i32::from(both as i16));
    (sums, std::array::from_fn(|i| both[i].wrapping_sub(sums[i]) >> 16))
}

#[cfg(test)]
mod tests {
    use crate::acts::{Acts, Forms};
    use crate::cpu::Cpu;
    use crate::level::Level;

    const BOTH: Forms = Forms { int8x32: true, int8x256: true };

    fn quantised(level: Level, row: &[f32]) -> Acts {
        let mut acts = Acts::new(1, row.len(), BOTH);
        acts.rows_mut(1).copy_from_slice(row);
        let cpu = Cpu::with_level(1, level).expect("an available level");
        acts.quantise(&cpu, 1).expect("one thread");
        acts
    }

    fn bytes(words: &[i32]) -> Vec<i8> {
        words.iter().flat_map(|w| w.to_le_bytes()).map(|b| b as i8).collect()
    }

    /// The definition, one value at a time.
    fn expected(block: &[f32]) -> (f32, Vec<i8>) {
        let largest = block.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
        let scale = largest / 127.0;
        if scale < f32::MIN_POSITIVE {
            return (0.0, vec![0; block.len()]);
        }
        (scale, block.iter().map(|x| (x * (127.0 / largest)).round_ties_even() as i8).collect())
    }

    fn ramp(len: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919 % 1009) as f32 - 500.0) * 1.1_f32.powi(i as i32 % 40)).collect()
    }

    #[test]
    fn blocks_follow_the_definition_at_every_level() {
        // 300 leaves tails in both forms.
        let row = ramp(300);
        let mut padded = row.clone();
        padded.resize(512, 0.0);
        for level in Level::available() {
            let acts = quantised(level, &row);
            for (i, block) in padded[..320].chunks(32).enumerate() {
                let (scale, q) = expected(block);
                let sum: i32 = q.iter().map(|&q| i32::from(q)).sum();
                let pair = &acts.pairs(0)[i / 2];
                assert_eq!(pair.scale[i % 2], scale);
                assert_eq!(bytes(&pair.words[i % 2]), q);
                assert_eq!(pair.sum[i % 2], scale * sum as f32);
                assert_eq!((pair.less16[i % 2], pair.less128[i % 2]), (-16 * sum, -128 * sum));
            }
            for (block, found) in padded.chunks(256).zip(acts.supers(0)) {
                let (scale, q) = expected(block);
                assert_eq!(found.scale, scale);
                assert_eq!(bytes(found.words.as_flattened()), q);
                let sum = |q: &[i8]| q.iter().map(|&q| i32::from(q)).sum::<i32>();
                let runs: Vec<i32> = q.chunks(32).map(sum).collect();
                let sums = found.sums.iter().flat_map(|&w| [i32::from(w as i16), w >> 16]);
                assert_eq!(sums.collect::<Vec<_>>(), runs);
                let starts: Vec<u16> =
                    q.chunks(16).map(|q| ((1 << 15) - 32 * sum(q)) as u16).collect();
                let halves = found.starts.iter().flat_map(|&w| [(w >> 16) as u16, w as u16]);
                assert_eq!(halves.collect::<Vec<_>>(), starts);
                let size = |q: &[i8]| q.iter().map(|&q| i32::from(q).abs()).sum::<i32>();
                assert_eq!(Some(found.most16), q.chunks(16).map(size).max());
                assert_eq!(Some(found.most32), q.chunks(32).map(size).max());
            }
        }
    }

    #[test]
    fn blocks_of_nearly_nothing_are_zero() {
        for x in [0.0, -0.0, 1e-45, -1e-38, 1.4e-36] {
            for level in Level::available() {
                let acts = quantised(level, &[x; 256]);
                assert_eq!(acts.supers(0)[0].scale, 0.0);
                assert_eq!(acts.supers(0)[0].words, [[0; 8]; 8]);
                assert_eq!(acts.pairs(0)[0].sum, [0.0; 2]);
            }
        }
    }

    #[test]
    fn a_nan_or_an_infinity_makes_the_scale_not_a_number() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for at in 0..256 {
                let mut row = [1.0; 256];
                row[at] = bad;
                for level in Level::available() {
                    let acts = quantised(level, &row);
                    assert!(acts.supers(0)[0].scale.is_nan());
                    assert!(acts.pairs(0)[at / 64].scale[at / 32 % 2].is_nan());
                }
            }
        }
    }

    #[test]
    fn extremes_of_a_block_are_127() {
        for x in [1.5e-36, 1.0, 3.0, f32::MAX] {
            for level in Level::available() {
                let acts = quantised(level, &[x, -x, 0.0]);
                assert_eq!(bytes(&acts.pairs(0)[0].words[0])[..3], [127, -127, 0]);
            }
        }
    }
}
