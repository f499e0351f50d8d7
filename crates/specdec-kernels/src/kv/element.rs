//! Types of the numbers in a store.

use std::cell::Cell;
use std::thread::LocalKey;

use crate::memory::Zero;
use crate::simd::{LANES, Simd};

/// A stored number.
pub(crate) trait Element: Zero + Send + Sync + 'static {
    const ZERO: Self;

    /// Widens (exact).
    fn load<S: Simd>(s: S, from: &[Self; LANES]) -> S::F;

    /// Rounds to nearest, ties to even.
    fn store<S: Simd>(s: S, v: S::F, to: &mut [Self; LANES]);

    fn push_bytes(self, bytes: &mut Vec<u8>);

    /// Room of each thread for numbers that are scattered over a store and put together.
    fn room() -> &'static LocalKey<Cell<Vec<Self>>>;
}

macro_rules! room {
    ($number:ty) => {
        fn room() -> &'static LocalKey<Cell<Vec<$number>>> {
            thread_local! {
                static ROOM: Cell<Vec<$number>> = const { Cell::new(Vec::new()) };
            }
            &ROOM
        }
    };
}

/// The bits of an IEEE half float.
impl Element for u16 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[Self; LANES]) -> S::F {
        s.load_f16(from)
    }

    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F, to: &mut [Self; LANES]) {
        s.store_f16(v, to);
    }

    fn push_bytes(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_ne_bytes());
    }

    room!(u16);
}

impl Element for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[Self; LANES]) -> S::F {
        s.load(from)
    }

    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F, to: &mut [Self; LANES]) {
        s.store(v, to);
    }

    fn push_bytes(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_ne_bytes());
    }

    room!(f32);
}
