//! Tokens that min-p and top-p leave in the law.

use crate::TokenId;

/// Weights of a law that is being cut; the largest is 1, all are values of f32.
pub(super) struct Kept<'a> {
    /// Ids of the weights, ascending.
    pub(super) ids: &'a mut Vec<TokenId>,
    pub(super) weights: &'a mut Vec<f64>,
}

impl Kept<'_> {
    /// Keeps weights >= `min_p` times the largest, which is 1.
    pub(super) fn min_p(&mut self, min_p: f64) {
        self.retain(|weight| weight >= min_p);
    }

    /// Keeps the shortest prefix, by falling weight and rising id, whose mass is `enough`.
    ///
    /// Masses are integers, multiples of 2^-44 (2^18 weights of up to 1 fit 62 bits), so they add
    /// up exactly: the cut does not depend on any order of summation. Selection by radix: the bits
    /// of a positive f32 sort as the number does, and each pass settles 8 of them.
    pub(super) fn top_p(&mut self, enough: f64) {
        let mut masses = self.masses(24, 0);
        let total: u64 = masses.iter().sum();
        // The mass that tokens above the one in question must not have reached yet.
        let mut bound = ((enough * UNIT).ceil() as u64).min(total);
        let mut least = 0;
        for shift in [24, 16, 8, 0] {
            if shift < 24 {
                masses = self.masses(shift, least);
            }
            let mut digit = 255;
            while masses[digit] < bound {
                bound -= masses[digit];
                digit -= 1;
            }
            least |= (digit as u32) << shift;
            self.retain(|weight| bits(weight) >= least);
        }
        let mut ties = bound.div_ceil(mass(f64::from(f32::from_bits(least))).max(1));
        self.retain(|weight| {
            let tie = bits(weight) == least;
            let kept = !tie || ties > 0;
            ties -= u64::from(tie && kept);
            kept
        });
    }

    /// Masses of the weights that begin with the bits of `prefix`, by the 8 bits at `shift`.
    fn masses(&self, shift: u32, prefix: u32) -> [u64; 256] {
        let mut masses = [0; 256];
        let beginning = |bits: u32| u64::from(bits) >> (shift + 8);
        for &weight in &*self.weights {
            let bits = bits(weight);
            if beginning(bits) == beginning(prefix) {
                masses[(bits >> shift) as usize & 255] += mass(weight);
            }
        }
        masses
    }

    /// Keeps the weights that pass, asked for by ascending id.
    fn retain(&mut self, mut keep: impl FnMut(f64) -> bool) {
        let mut kept = 0;
        for i in 0..self.weights.len() {
            if keep(self.weights[i]) {
                self.weights[kept] = self.weights[i];
                self.ids[kept] = self.ids[i];
                kept += 1;
            }
        }
        self.ids.truncate(kept);
        self.weights.truncate(kept);
    }
}

/// Masses of a weight of 1.
const UNIT: f64 = (1_u64 << 44) as f64;

fn bits(weight: f64) -> u32 {
    (weight as f32).to_bits()
}

fn mass(weight: f64) -> u64 {
    (weight * UNIT) as u64
}
