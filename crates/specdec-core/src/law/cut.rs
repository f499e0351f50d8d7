//! Tokens that min-p and top-p leave in the law.

use crate::TokenId;

/// Weights of a law that is being cut; the largest is 1, all are values of f32.
pub(super) struct Kept<'a> {
    /// Ids of the weights; empty while all ids `0..weights.len()` are there.
    pub(super) ids: &'a mut Vec<TokenId>,
    pub(super) dense: bool,
    pub(super) weights: &'a mut Vec<f64>,
}

impl Kept<'_> {
    /// Keeps weights >= `min_p` times the largest, which is 1.
    pub(super) fn min_p(&mut self, min_p: f64) {
        self.retain(|weight| weight >= min_p);
    }

    /// Keeps the shortest prefix, by falling weight and rising id, whose mass reaches `top_p`.
    pub(super) fn top_p(&mut self, top_p: f64) {
        let (least, mut ties) = nucleus(self.weights, top_p);
        self.retain(|weight| {
            let tie = weight == least && ties > 0;
            ties -= u64::from(tie);
            weight > least || tie
        });
    }

    /// Keeps the weights that pass, asked for by ascending id.
    fn retain(&mut self, mut keep: impl FnMut(f64) -> bool) {
        let dense = std::mem::replace(&mut self.dense, false);
        let mut kept = 0;
        for i in 0..self.weights.len() {
            if keep(self.weights[i]) {
                self.weights[kept] = self.weights[i];
                if dense {
                    self.ids.push(i as TokenId);
                } else {
                    self.ids[kept] = self.ids[i];
                }
                kept += 1;
            }
        }
        self.ids.truncate(kept);
        self.weights.truncate(kept);
    }
}

/// The least weight of the nucleus, and how many tokens of that very weight belong to it.
///
/// Masses are integers, multiples of 2^-44 (2^18 weights of up to 1 fit 62 bits), so they add up
/// exactly: the cut does not depend on any order of summation. Selection by radix: the bits of a
/// positive f32 sort as the number does, and each pass settles 8 of them.
fn nucleus(weights: &[f64], top_p: f64) -> (f64, u64) {
    let total: u64 = weights.iter().copied().map(mass).sum();
    let bound = ((top_p * total as f64).ceil() as u64).min(total);
    let (mut above, mut known, mut prefix) = (0, 0, 0);
    for shift in [24, 16, 8, 0] {
        let mut masses = [0; 256];
        for &weight in weights {
            let bits = (weight as f32).to_bits();
            if bits & known == prefix {
                masses[(bits >> shift) as usize & 255] += mass(weight);
            }
        }
        let mut digit = 255;
        while above + masses[digit] < bound {
            above += masses[digit];
            digit -= 1;
        }
        prefix |= (digit as u32) << shift;
        known |= 255 << shift;
    }
    let least = f64::from(f32::from_bits(prefix));
    (least, (bound - above).div_ceil(mass(least).max(1)))
}

fn mass(weight: f64) -> u64 {
    (weight * (1_u64 << 44) as f64) as u64
}
