//! The one loop over a panel, for every format and number of rows.

use std::ops::Range;

use super::{Job, Store};
use crate::acts::Acts;
use crate::layout::{Layout, ROWS};
use crate::level::{Kernel, Level};
use crate::simd::{Simd, prefetch};

/// Rows that share one unpacking of the weights; more go in several passes over a panel, which is
/// then in the cache.
const PASS: usize = 8;

/// From this many rows on, a group takes so long that the machine's own look-ahead falls behind;
/// with fewer, a second one beside it only takes slots.
const PREFETCH_ROWS: usize = 4;
/// How far ahead of the weights in use.
const PREFETCH_BYTES: usize = 4096;

/// Asks for the weights that lie as far ahead; called piece by piece, as a burst of requests for
/// a whole super-block stalls.
#[inline(always)]
pub(super) fn ahead<const R: usize, T>(weights: &T) {
    if R >= PREFETCH_ROWS {
        prefetch(std::ptr::from_ref(weights).wrapping_byte_add(PREFETCH_BYTES));
    }
}

/// How a format's groups are multiplied: all that formats differ in.
pub(super) trait Dot: Layout {
    /// The activations that one group meets.
    type X: 'static;

    /// Row `row`, one `X` for every group.
    fn activations(acts: &Acts, row: usize) -> &[Self::X];

    /// acc[r] += group * x[r], sixteen outputs at a time.
    fn dot<S: Simd, const R: usize>(
        s: S,
        group: &Self::Group,
        x: &[&Self::X; R],
        acc: &mut [S::F; R],
    );
}

/// Multiplies a tile with the first `rows` rows.
pub(super) fn multiply<Q: Dot>(
    level: Level,
    acts: &Acts,
    rows: usize,
    panels: Range<usize>,
    groups: &[Q::Group],
    job: &Job<'_>,
) {
    // With several passes, each panel meets all of its rows while it is hot.
    let span = if rows <= PASS { panels.len() } else { 1 };
    let per_panel = groups.len() / panels.len();
    for (i, groups) in groups.chunks(span * per_panel).enumerate() {
        let first = panels.start + i * span;
        for row in (0..rows).step_by(PASS) {
            macro_rules! pass {
                ($($r:literal)*) => {
                    match PASS.min(rows - row) {
                        $($r => level.run(Pass::<Q, $r> { acts, row, first, per_panel, groups, job }),)*
                        _ => unreachable!("a pass has at most {PASS} rows"),
                    }
                };
            }
            pass!(1 2 3 4 5 6 7 8);
        }
    }
}

/// `R` rows against some panels.
struct Pass<'a, Q: Dot, const R: usize> {
    acts: &'a Acts,
    row: usize,
    first: usize,
    per_panel: usize,
    groups: &'a [Q::Group],
    job: &'a Job<'a>,
}

impl<Q: Dot, const R: usize> Kernel for Pass<'_, Q, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let x: [&[Q::X]; R] =
            std::array::from_fn(|r| &Q::activations(self.acts, self.row + r)[..self.per_panel]);
        for (i, groups) in self.groups.chunks_exact(self.per_panel).enumerate() {
            let mut acc = [s.zero(); R];
            for (g, group) in groups.iter().enumerate() {
                Q::dot(s, group, &std::array::from_fn(|r| &x[r][g]), &mut acc);
            }
            for (r, value) in acc.into_iter().enumerate() {
                // SAFETY: this tile owns its panels, and each row is stored once.
                let (out, bias) = unsafe { self.job.part(self.row + r, self.first + i) };
                store(s, value, out, bias, self.job.store);
            }
        }
    }
}

/// Stores up to sixteen results: value + bias, then added to what is there.
#[inline(always)]
fn store<S: Simd>(s: S, mut value: S::F, out: &mut [f32], bias: Option<&[f32]>, how: Store) {
    if let Some(bias) = bias {
        value = s.add(value, load(s, bias));
    }
    if how == Store::Add {
        value = s.add(load(s, out), value);
    }
    match out.first_chunk_mut::<ROWS>() {
        Some(whole) => s.store(value, whole),
        None => s.store_tail(value, out),
    }
}

#[inline(always)]
fn load<S: Simd>(s: S, from: &[f32]) -> S::F {
    match from.first_chunk::<ROWS>() {
        Some(whole) => s.load(whole),
        None => s.load_tail(from),
    }
}
