//! Random blocks of each format that a quantiser could have written: the whole range of every
//! integer field, finite f16 scales, weights of mean about 0 and a deviation that the caller sets.

use half::f16;

use super::{Format, Noise};

/// `count` weights of deviation `sigma` in `format`, as file bytes. `count` is a whole number of
/// blocks.
pub(super) fn random(format: Format, noise: &Noise, count: usize, sigma: f32) -> Vec<u8> {
    let blocks = count / format.block_len();
    let mut out = Vec::with_capacity(blocks * format.block_bytes());
    for index in 0..blocks {
        let mut fields = Fields { noise, next: (index as u64) << 9, out: &mut out };
        match format {
            Format::F32 => fields.f32(sigma),
            Format::Q4_1 => fields.q4_1(sigma),
            Format::Q5_0 => fields.q5_0(sigma),
            Format::Q8_0 => fields.q8_0(sigma),
            Format::Q4K => fields.q4_k(sigma),
            Format::Q6K => fields.q6_k(sigma),
        }
    }
    out
}

/// Writes the fields of one block. A block takes fewer than 2^9 numbers of the stream.
struct Fields<'a> {
    noise: &'a Noise,
    next: u64,
    out: &'a mut Vec<u8>,
}

impl Fields<'_> {
    fn index(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn bytes(&mut self, n: usize) {
        for _ in 0..n {
            let index = self.index();
            self.out.push((self.noise.bits(index) >> 56) as u8);
        }
    }

    fn below(&mut self, n: u32) -> u32 {
        let index = self.index();
        self.noise.below(index, n)
    }

    /// A factor between 0.5 and 1.5, so that blocks differ in scale.
    fn spread(&mut self) -> f32 {
        let index = self.index();
        0.5 + self.noise.unit(index)
    }

    fn f16(&mut self, x: f32) {
        self.out.extend_from_slice(&f16::from_f32(x).to_le_bytes());
    }

    fn f32(&mut self, sigma: f32) {
        let index = self.index();
        self.out.extend_from_slice(&(sigma * self.noise.normal(index)).to_le_bytes());
    }

    /// Uniform 0..15 has deviation 4.6 and mean 7.5.
    fn q4_1(&mut self, sigma: f32) {
        let d = sigma / 4.6 * self.spread();
        let m = -d * (7.0 + self.spread() - 0.5);
        self.f16(d);
        self.f16(m);
        self.bytes(16);
    }

    /// Uniform 0..31 has deviation 9.2. The scale takes both signs, as in real files (it carries
    /// the sign of the weight of largest magnitude).
    fn q5_0(&mut self, sigma: f32) {
        let sign = if self.below(2) == 0 { 1.0 } else { -1.0 };
        let d = sign * sigma / 9.2 * self.spread();
        self.f16(d);
        self.bytes(4 + 16);
    }

    /// Uniform -128..127 has deviation 74.
    fn q8_0(&mut self, sigma: f32) {
        let d = sigma / 74.0 * self.spread();
        self.f16(d);
        self.bytes(32);
    }

    /// Scales of 6 bits are kept at 16..63 (mean square 42^2) and the minimum of a sub-block within
    /// 3 of its scale, so that `dmin = 7.5 d` centres the weights.
    fn q4_k(&mut self, sigma: f32) {
        let d = sigma / (4.6 * 42.0) * self.spread();
        self.f16(d);
        self.f16(7.5 * d);
        let scales: [u8; 8] = std::array::from_fn(|_| 16 + self.below(48) as u8);
        let mins = scales.map(|sc| (sc + self.below(7) as u8 - 3).min(63));
        self.out.extend_from_slice(&pack_6bit(scales, mins));
        self.bytes(128);
    }

    /// Uniform 0..63 has deviation 18.5, a uniform signed byte has root mean square 74.
    fn q6_k(&mut self, sigma: f32) {
        let d = sigma / (18.5 * 74.0) * self.spread();
        self.bytes(128 + 64 + 16);
        self.f16(d);
    }
}

/// The 12 bytes of a K-quant's eight scales and eight minimums: the first four of each lie in the
/// low 6 bits of bytes 0..4 and 4..8; of the last four, the low 4 bits lie in bytes 8..12 (scale
/// below, minimum above) and the top 2 bits above those of the first four.
fn pack_6bit(scales: [u8; 8], mins: [u8; 8]) -> [u8; 12] {
    let mut out = [0; 12];
    for j in 0..4 {
        out[j] = scales[j] | (scales[j + 4] >> 4) << 6;
        out[j + 4] = mins[j] | (mins[j + 4] >> 4) << 6;
        out[j + 8] = (scales[j + 4] & 15) | (mins[j + 4] & 15) << 4;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_determinism() {
        let noise = Noise::new(7, "w");
        for format in Format::ALL {
            let count = 4 * format.block_len();
            let bytes = random(format, &noise, count, 0.1);
            assert_eq!(bytes.len(), 4 * format.block_bytes(), "{format:?}");
            assert_eq!(bytes, random(format, &noise, count, 0.1), "{format:?}");
            assert_ne!(bytes, random(format, &Noise::new(8, "w"), count, 0.1), "{format:?}");
        }
    }

    #[test]
    fn six_bit_scales_unpack_by_the_format_definition() {
        let scales = [1, 2, 3, 63, 16, 33, 62, 63];
        let mins = [63, 0, 5, 9, 48, 17, 31, 1];
        let packed = pack_6bit(scales, mins);
        for j in 0..8 {
            let (sc, m) = if j < 4 {
                (packed[j] & 63, packed[j + 4] & 63)
            } else {
                (
                    (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4,
                    (packed[j + 4] >> 4) | (packed[j] >> 6) << 4,
                )
            };
            assert_eq!((sc, m), (scales[j], mins[j]), "{j}");
        }
    }
}
