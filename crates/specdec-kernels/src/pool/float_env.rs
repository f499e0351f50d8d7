//! The floating-point environment of a kernel: the default one, whatever the caller had set.

/// Default environment from construction to drop, the caller's again after.
///
/// Flush-to-zero or another rounding mode (numeric libraries do set them) would change the bits
/// of a result, and code compiled by Rust may assume the default.
pub(super) struct DefaultFloatEnv {
    #[cfg(target_arch = "x86_64")]
    saved: u32,
}

impl DefaultFloatEnv {
    #[cfg(target_arch = "x86_64")]
    pub(super) fn enter() -> Self {
        let saved = mxcsr();
        set_mxcsr(DEFAULT_MXCSR);
        Self { saved }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn enter() -> Self {
        Self {}
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for DefaultFloatEnv {
    fn drop(&mut self) {
        set_mxcsr(self.saved);
    }
}

/// All exceptions masked, round to nearest even, denormals kept (Intel SDM, volume 1, 10.2.3).
#[cfg(target_arch = "x86_64")]
const DEFAULT_MXCSR: u32 = 0x1F80;

#[cfg(target_arch = "x86_64")]
fn mxcsr() -> u32 {
    let mut value = 0_u32;
    // SAFETY: `stmxcsr` writes four bytes, to `value`; SSE is part of x86_64.
    unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
    value
}

#[cfg(target_arch = "x86_64")]
fn set_mxcsr(value: u32) {
    // SAFETY: `ldmxcsr` reads four bytes, of `value`, which is the default or came from `mxcsr`,
    // so no reserved bit is set.
    unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Barrier, Mutex};

    use super::*;
    use crate::pool::Pool;

    /// Rounding, masks and flush bits, without the sticky flags that any operation may set.
    const CONTROL: u32 = !0x3f;
    const FLUSH_TO_ZERO: u32 = 1 << 15;
    const DENORMALS_ARE_ZERO: u32 = 1 << 6;

    #[test]
    fn the_callers_float_environment_stays_outside_and_comes_back() {
        let pool = Pool::new(2).unwrap();
        let own = mxcsr();
        let odd = DEFAULT_MXCSR | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO;
        let seen = Mutex::new(BTreeSet::new());
        let both = Barrier::new(2);
        set_mxcsr(odd);
        let quiet = pool.run(2, &|_| {
            both.wait();
            seen.lock().unwrap().insert(mxcsr() & CONTROL);
        });
        let after = mxcsr();
        let panicked = pool.run(1, &|_| panic!("with a changed environment"));
        let after_panic = mxcsr();
        set_mxcsr(own);
        quiet.unwrap();
        panicked.unwrap_err();
        assert_eq!(seen.into_inner().unwrap(), BTreeSet::from([DEFAULT_MXCSR & CONTROL]));
        assert_eq!([after & CONTROL, after_panic & CONTROL], [odd & CONTROL; 2]);
    }
}
