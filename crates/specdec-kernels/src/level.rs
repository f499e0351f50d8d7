//! Instruction levels: which of the three implementations of [`Simd`] runs a kernel.
//!
//! All levels give the same bits; a level only changes how fast they come.

use std::fmt;
use std::str::FromStr;

use crate::simd::{Scalar, Simd};
#[cfg(target_arch = "x86_64")]
use crate::simd::{avx2::Avx2, avx512::Avx512};

/// An instruction level, ordered from slow to fast.
#[derive(Copy, Clone, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust; runs everywhere.
    Scalar,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, VL, DQ and VNNI.
    Avx512,
}

/// The name is none of `scalar`, `avx2`, `avx512`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("instruction level {found:?} is unknown: use scalar, avx2 or avx512")]
pub struct UnknownLevel {
    /// The name that was given.
    pub found: String,
}

impl Level {
    const ALL: [Level; 3] = [Level::Scalar, Level::Avx2, Level::Avx512];

    /// The fastest level of this machine.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Level {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vnni");
        match (avx2, avx512) {
            (true, true) => Level::Avx512,
            (true, false) => Level::Avx2,
            (false, _) => Level::Scalar,
        }
    }

    /// The fastest level of this machine.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Level {
        Level::Scalar
    }

    /// Every level that this machine can run, slowest first.
    pub fn available() -> Vec<Level> {
        let best = Level::detect();
        Level::ALL.into_iter().filter(|level| *level <= best).collect()
    }

    /// Runs `kernel` compiled for this level, or for the best one below it that the machine has.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.min(Level::detect()) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `min` with the detected level proves that the features are there.
            Level::Avx512 => unsafe { run_avx512(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx2 => unsafe { run_avx2(kernel) },
            _ => kernel.run(Scalar),
        }
    }
}

/// Work that is written once over [`Simd`] and compiled for every level.
///
/// `run` must be `#[inline(always)]`, and so must every generic function that it calls with the
/// token: intrinsics are inlined only into code that is compiled with their features, and that is
/// the body of the wrapper that `run` ends up in. Closures are compiled without the features, so
/// hot code holds none.
pub(crate) trait Kernel {
    /// What the work returns.
    type Output;

    /// Does the work with the instructions that `s` stands for.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller has checked the features that the token promises.
    kernel.run(unsafe { Avx2::assume() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller has checked the features that the token promises.
    kernel.run(unsafe { Avx512::assume() })
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Scalar => "scalar",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        })
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Level, UnknownLevel> {
        let named = Level::ALL.into_iter().find(|level| level.to_string() == name);
        named.ok_or_else(|| UnknownLevel { found: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for level in Level::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!("sse".parse::<Level>(), Err(UnknownLevel { found: "sse".into() }));
    }

    #[test]
    fn available_ends_with_the_detected_level() {
        assert_eq!(Level::available().first(), Some(&Level::Scalar));
        assert_eq!(Level::available().last(), Some(&Level::detect()));
    }
}
