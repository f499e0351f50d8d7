//! Random weights and activations.

#![allow(dead_code, reason = "every test binary uses its own part")]

use half::{bf16, f16};
use specdec_kernels::Format;

/// SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// In [-1, 1).
    pub(crate) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

/// Where a block keeps its half-precision scales.
pub(crate) fn scales(format: Format) -> &'static [usize] {
    match format {
        Format::F32 | Format::F16 | Format::BF16 => &[],
        Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
        Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => &[0],
        Format::Q6K => &[208],
    }
}

/// Which weights to make.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Random codes, scales of a trained model's size.
    Ordinary,
    /// All code bytes equal, with scales of the largest size that keeps products finite.
    Extreme(u8),
    /// Random codes, scales that are zero or denormal.
    Tiny,
}

/// The bytes of `blocks` blocks.
pub(crate) fn raw(format: Format, kind: Kind, blocks: usize, random: &mut Random) -> Vec<u8> {
    if format.block_len() == 1 {
        return dense(format, kind, blocks, random);
    }
    let mut bytes = Vec::new();
    for _ in 0..blocks {
        let at = bytes.len();
        bytes.extend((0..format.block_bytes()).map(|_| match kind {
            Kind::Extreme(code) => code,
            _ => random.next() as u8,
        }));
        for offset in scales(format) {
            let scale = match kind {
                Kind::Ordinary => f16::from_f32(0.01 * random.float()),
                Kind::Extreme(_) => [f16::MAX, f16::MIN][random.below(2)],
                Kind::Tiny => f16::from_bits(random.next() as u16 & 0x83ff),
            };
            bytes[at + offset..][..2].copy_from_slice(&scale.to_le_bytes());
        }
    }
    bytes
}

/// The bytes of `count` numbers.
fn dense(format: Format, kind: Kind, count: usize, random: &mut Random) -> Vec<u8> {
    let largest = if format == Format::F16 { 6e4 } else { 1e30 };
    let scale = match kind {
        Kind::Ordinary => 0.05,
        Kind::Extreme(code) => largest * if code & 1 == 0 { 1.0 } else { -1.0 },
        Kind::Tiny => {
            if format == Format::F16 {
                1e-7
            } else {
                1e-39
            }
        }
    };
    let mut bytes = Vec::new();
    for _ in 0..count {
        let x = random.float() * scale;
        match format {
            Format::F16 => bytes.extend(f16::from_f32(x).to_le_bytes()),
            Format::BF16 => bytes.extend(bf16::from_f32(x).to_le_bytes()),
            _ => bytes.extend(x.to_le_bytes()),
        }
    }
    bytes
}
