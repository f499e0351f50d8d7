//! Products of packed matrices with several activation rows at once.
//!
//! Weights are what costs: a tile of them is read and unpacked once and used for all rows. One
//! output element is one SIMD lane, whose float operations run over the columns in a fixed order
//! and depend on nothing else, so rows, threads, tiles and levels leave no trace in a result.

mod dense;
mod k_quants;
mod legacy;
mod panel;
mod plan;
mod q6_k;
mod unpack;

use std::ops::Range;

use crate::acts::Acts;
use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::layout::{Layout, ROWS};
use crate::matrix::{Matrix, by_groups};
use crate::pool::PoolError;
use panel::multiply;
use plan::{Tile, plan};

/// What a product does with what is in its output.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Store {
    /// Replaces it.
    Set,
    /// Adds to it (a residual).
    Add,
}

/// One matrix to multiply with, and where the result goes.
pub struct Product<'a> {
    /// The weights, `rows` x `cols`.
    pub matrix: &'a Matrix,
    /// Added to every result, `rows` long.
    pub bias: Option<&'a [f32]>,
    /// What happens to the old output.
    pub store: Store,
    /// Activation rows x `matrix.rows()`, row-major.
    pub out: &'a mut [f32],
}

/// A product, its output shared by tiles.
struct Job<'a> {
    matrix: &'a Matrix,
    bias: Option<&'a [f32]>,
    store: Store,
    out: Disjoint<'a, f32>,
}

/// For the first `rows` rows x of `acts` and every product: out (+)= matrix * x + bias.
///
/// All products run in one region of the pool. `acts` must hold the form that the format of each
/// matrix reads ([`crate::Format::activation`]), up to date.
///
/// # Errors
/// As [`crate::Pool::run`].
///
/// # Panics
/// If shapes do not fit together or the form is missing.
pub fn linear(
    cpu: &Cpu,
    acts: &Acts,
    rows: usize,
    products: &mut [Product<'_>],
) -> Result<(), PoolError> {
    let jobs: Vec<Job<'_>> = products.iter_mut().map(|p| job(acts, rows, p)).collect();
    let plan = plan(&jobs.iter().map(Job::panels), cpu.pool.threads(), rows);
    cpu.pool.run_shares(&|thread| plan.ends[thread], &|i| {
        let Tile { product, panels } = &plan.tiles[i];
        jobs[*product].run(cpu, acts, rows, panels.clone());
    })
}

/// Checks a product against its input.
fn job<'a>(acts: &Acts, rows: usize, product: &'a mut Product<'_>) -> Job<'a> {
    let matrix = product.matrix;
    assert!(rows <= acts.filled(), "{rows} rows of {}", acts.filled());
    assert_eq!(matrix.cols(), acts.cols(), "matrix and activations differ in width");
    assert_eq!(product.out.len(), rows * matrix.rows(), "size of the output");
    assert!(product.bias.is_none_or(|b| b.len() == matrix.rows()), "length of the bias");
    let out = Disjoint::new(product.out);
    Job { matrix, bias: product.bias, store: product.store, out }
}

impl Job<'_> {
    /// Number of panels and bytes of one.
    fn panels(&self) -> (usize, usize) {
        let panels = self.matrix.rows().div_ceil(ROWS);
        (panels, self.matrix.bytes() / panels.max(1))
    }

    fn run(&self, cpu: &Cpu, acts: &Acts, rows: usize, panels: Range<usize>) {
        by_groups!(self.matrix.groups(), groups: Q => {
            let per_panel = Q::groups(self.matrix.cols());
            let groups = &groups[panels.start * per_panel..panels.end * per_panel];
            multiply::<Q>(cpu.level, acts, rows, panels, groups, self);
        });
    }

    /// The matrix rows of `panel`, without those of the padding.
    #[inline(always)]
    fn outputs(&self, panel: usize) -> Range<usize> {
        panel * ROWS..self.matrix.rows().min((panel + 1) * ROWS)
    }

    /// Where results of `row` for the matrix rows `outputs` go.
    ///
    /// # Safety
    /// A panel belongs to one tile, and a part is held only once.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    unsafe fn part(&self, row: usize, outputs: &Range<usize>) -> &mut [f32] {
        let first = row * self.matrix.rows();
        // SAFETY: parts of different panels or rows do not overlap.
        unsafe { self.out.part(first + outputs.start..first + outputs.end) }
    }
}
