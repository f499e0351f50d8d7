//! The one loop over a panel, for every format and number of rows.

use std::ops::Range;

use super::{Job, Store};
use crate::acts::{Acts, Form};
use crate::layout::{Layout, ROWS};
use crate::level::{Kernel, Level};
use crate::simd::{Simd, prefetch};

/// Most rows that share one unpacking of the weights, which is what their sums leave registers for.
/// More go in several passes over a panel.
const MOST: usize = 8;
/// The same with AVX-512. More rows would keep sums in memory: 8 to 14 % slower.
const MOST_WIDE: usize = 13;

/// Fewest rows of a pass after others, as it costs as much with fewer.
const FEWEST: usize = 4;

/// Bytes of weights that passes of the same rows share.
const CACHED_BYTES: usize = 256 << 10;

/// How far ahead of the weights in use. Left to itself, one Zen 5 core reads at 40 % of what memory
/// gives while it unpacks weights for 1 to 3 rows.
const PREFETCH_BYTES: usize = 8192;

/// Asks for the weights that lie as far ahead; called piece by piece, as a burst of requests for
/// a whole super-block stalls.
#[inline(always)]
pub(super) fn ahead<T>(weights: &T) {
    prefetch(std::ptr::from_ref(weights).wrapping_byte_add(PREFETCH_BYTES));
}

/// How a format's groups are multiplied: all that formats differ in.
pub(super) trait Dot: Layout {
    /// The activations that one group meets.
    type X: Form;

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
    let most = if level == Level::Avx512 { MOST_WIDE } else { MOST };
    let per_panel = groups.len() / panels.len();
    // With several passes, the rows meet so many panels as stay in the second cache; of fewer, the
    // first pass would be over before memory is in its stride.
    let cached = (CACHED_BYTES / (per_panel * size_of::<Q::Group>())).max(1);
    let span = if rows <= most { panels.len() } else { cached };
    for (i, groups) in groups.chunks(span * per_panel).enumerate() {
        let first = panels.start + i * span;
        let mut done = 0;
        while done < rows {
            let next = done + of_pass(rows - done, most);
            run::<Q>(level, &Tiles { acts, rows: done..next, first, per_panel, groups, job });
            done = next;
        }
    }
}

/// Rows of the next pass where `rows` are left. As many as can be, as the first pass waits for
/// memory: 14 to 16 rows are 4 to 7 % faster than in equal halves where two Zen 5 cores read
/// 47 GB/s, and the same where they read 83.
fn of_pass(rows: usize, most: usize) -> usize {
    if rows <= most { rows } else { most.min(rows - FEWEST) }
}

/// One pass, compiled for its number of rows.
fn run<Q: Dot>(level: Level, tiles: &Tiles<'_, Q>) {
    macro_rules! compiled {
        ($($r:literal)*) => {
            match tiles.rows.len() {
                $($r => level.run(Pass::<Q, $r>(tiles)),)*
                rows => unreachable!("a pass of {rows} rows"),
            }
        };
    }
    compiled!(1 2 3 4 5 6 7 8 9 10 11 12 13);
}

/// Some rows against some panels.
struct Tiles<'a, Q: Dot> {
    acts: &'a Acts,
    rows: Range<usize>,
    first: usize,
    per_panel: usize,
    groups: &'a [Q::Group],
    job: &'a Job<'a>,
}

/// A pass of `R` rows.
struct Pass<'a, Q: Dot, const R: usize>(&'a Tiles<'a, Q>);

impl<Q: Dot, const R: usize> Kernel for Pass<'_, Q, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        assert!(R <= if S::WIDE { MOST_WIDE } else { MOST }, "{R} rows in one pass");
        let Tiles { acts, rows, first, per_panel, groups, job } = self.0;
        let x = Q::X::rows::<R>(acts, rows.start);
        for (i, groups) in groups.chunks_exact(*per_panel).enumerate() {
            let mut acc = [s.zero(); R];
            for (g, group) in groups.iter().enumerate() {
                Q::dot(s, group, &Q::X::blocks::<R>(x, g), &mut acc);
            }
            let outputs = job.outputs(first + i);
            let bias = job.bias.map(|bias| load(s, &bias[outputs.clone()]));
            for (row, value) in rows.clone().zip(acc) {
                // SAFETY: this tile owns its panels, and each row is stored once.
                let out = unsafe { job.part(row, &outputs) };
                store(s, value, out, bias, job.store);
            }
        }
    }
}

/// Stores up to sixteen results: value + bias, then added to what is there.
#[inline(always)]
fn store<S: Simd>(s: S, mut value: S::F, out: &mut [f32], bias: Option<S::F>, how: Store) {
    if let Some(bias) = bias {
        value = s.add(value, bias);
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
