//! What every kernel call takes: an instruction level and a pool of threads.

use crate::level::Level;
use crate::memory::Arena;
use crate::pool::{Pool, PoolError};

/// Where kernels run.
pub struct Cpu {
    /// Instructions that kernels use.
    pub level: Level,
    /// Threads that share their tiles.
    pub pool: Pool,
    /// Memory of the matrices that are packed here.
    pub(crate) weights: Arena,
}

/// Why a [`Cpu`] could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum CpuError {
    /// The machine cannot run this level.
    #[error("instruction level {asked} was asked for, this machine goes up to {best}; use that")]
    Level {
        /// Level asked for.
        asked: Level,
        /// Fastest level that the machine has.
        best: Level,
    },
    /// The pool was refused.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl Cpu {
    /// `threads` threads, the caller included, at the machine's fastest level.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn new(threads: usize) -> Result<Cpu, PoolError> {
        Ok(Cpu::on(Level::detect(), Pool::new(threads)?))
    }

    /// The same at a level of choice.
    ///
    /// # Errors
    /// `Level` if the machine lacks it, `Pool` as [`Pool::new`].
    pub fn with_level(threads: usize, level: Level) -> Result<Cpu, CpuError> {
        let best = Level::detect();
        if level > best {
            return Err(CpuError::Level { asked: level, best });
        }
        Ok(Cpu::on(level, Pool::new(threads)?))
    }

    fn on(level: Level, pool: Pool) -> Cpu {
        Cpu { level, pool, weights: Arena::default() }
    }
}
