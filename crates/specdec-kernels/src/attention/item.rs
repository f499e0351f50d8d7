//! One item of work: some rows and some query heads over one kv head.

use std::ops::Range;

use super::Call;
use super::block::{Block, Scratch};
use super::scores::scores;
use super::weigh::{Weights, weigh};
use crate::disjoint::Disjoint;
use crate::kv::{Element, PAGE, Pages, TILE};
use crate::level::Kernel;
use crate::math::exp;
use crate::simd::{LANES, Simd};

/// Most queries (rows times heads) of an item.
pub(super) const MAX_QUERIES: usize = 64;

/// Work for one thread.
pub(super) struct Item<'a, E> {
    pub(super) call: Call<'a>,
    pub(super) pages: &'a Pages<E>,
    pub(super) rows: Range<usize>,
    pub(super) kv_head: usize,
    /// Query heads within the group of the kv head.
    pub(super) heads: Range<usize>,
    /// All of the output.
    pub(super) out: &'a Disjoint<'a, f32>,
}

/// Online softmax of one query: the largest score so far, and the sum of e^(score - max) in 16
/// lanes, by position mod 16.
#[derive(Clone, Copy)]
struct Softmax {
    max: f32,
    sum: [f32; LANES],
}

impl<E: Element> Kernel for Item<'_, E> {
    type Output = ();

    /// Block by block, so that all rows find it in the nearest cache.
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let spans = &self.call.spans[self.rows.clone()];
        let mut scratch = None;
        let (mut first, mut last) = (usize::MAX, 0);
        for (span, row) in spans.iter().zip(self.rows.clone()) {
            first = first.min(span.from as usize / PAGE);
            last = last.max(span.end().div_ceil(PAGE));
            if !span.extra.is_empty() {
                scratch = scratch.or(Some(Scratch::EMPTY));
            }
            // SAFETY: the only part of this item that is held.
            unsafe { self.sums(row) }.fill(0.0);
        }
        let mut states = [Softmax { max: f32::NEG_INFINITY, sum: [0.0; LANES] }; MAX_QUERIES];
        for index in first..last {
            for (i, span) in spans.iter().enumerate() {
                if index * PAGE < span.end() && span.from as usize / PAGE <= index {
                    let (layer, head) = (self.call.layer, self.kv_head);
                    let block = Block::new(self.pages, layer, head, span, index, scratch.as_mut());
                    let states = &mut states[i * self.heads.len()..][..self.heads.len()];
                    self.row(s, self.rows.start + i, &block, states);
                }
            }
        }
        for (row, states) in self.rows.clone().zip(states.chunks_exact(self.heads.len())) {
            self.finish(s, row, states);
        }
    }
}

impl<E: Element> Item<'_, E> {
    fn head_dim(&self) -> usize {
        self.pages.shape.head_dim
    }

    /// Where the heads of the item are in queries and output.
    fn range(&self, row: usize) -> Range<usize> {
        let (group, d) = (self.call.group, self.head_dim());
        let first = (row * self.pages.shape.kv_heads + self.kv_head) * group + self.heads.start;
        first * d..(first + self.heads.len()) * d
    }

    /// The item's part of an output row.
    ///
    /// # Safety
    /// A row may be held only once at a time.
    #[expect(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    unsafe fn sums(&self, row: usize) -> &mut [f32] {
        // SAFETY: items do not overlap, and the caller holds this row once.
        unsafe { self.out.part(self.range(row)) }
    }

    /// One row over one block, as many heads at a time as the registers hold.
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, row: usize, block: &Block<'_, E>, states: &mut [Softmax]) {
        let most = if S::WIDE { 4 } else { 2 };
        let mut at = 0;
        while at < states.len() {
            let left = states.len() - at;
            let heads = left.div_ceil(left.div_ceil(most));
            match heads {
                4 if S::WIDE => self.heads::<S, 4>(s, row, at, block, states),
                3 if S::WIDE => self.heads::<S, 3>(s, row, at, block, states),
                2 => self.heads::<S, 2>(s, row, at, block, states),
                _ => self.heads::<S, 1>(s, row, at, block, states),
            }
            at += heads;
        }
    }

    /// Heads `at..at + M` of a row over one block.
    #[inline(always)]
    fn heads<S: Simd, const M: usize>(
        &self,
        s: S,
        row: usize,
        at: usize,
        block: &Block<'_, E>,
        states: &mut [Softmax],
    ) {
        let d = self.head_dim();
        let queries = self.call.q[self.range(row)][at * d..][..M * d].as_chunks::<LANES>().0;
        let mut q = [queries; M];
        for (m, q) in q.iter_mut().enumerate() {
            *q = &queries[m * d / LANES..][..d / LANES];
        }
        let mut weights = Weights { of: [[f32::NEG_INFINITY; PAGE]; M], rescale: [0.0; M] };
        let scale = s.splat(self.call.scale);
        for tile in block.seen.start / TILE..block.seen.end.div_ceil(TILE) {
            let dots = scores(s, &q, block.keys[tile].as_chunks::<TILE>().0);
            for (to, dots) in weights.of.iter_mut().zip(dots) {
                s.store(s.mul(dots, scale), &mut to.as_chunks_mut::<LANES>().0[tile]);
            }
        }
        for (m, scores) in weights.of.iter_mut().enumerate() {
            scores[..block.seen.start].fill(f32::NEG_INFINITY);
            scores[block.seen.end..].fill(f32::NEG_INFINITY);
            weights.rescale[m] = states[at + m].add(s, scores);
        }
        // SAFETY: the only part of this item that is held.
        let sums = &mut unsafe { self.sums(row) }[at * d..][..M * d];
        weigh(s, block, &weights, sums.as_chunks_mut::<LANES>().0);
    }

    /// Divides by the sums of the weights.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, row: usize, states: &[Softmax]) {
        // SAFETY: the only part of this item that is held.
        let sums = unsafe { self.sums(row) };
        for (head, state) in sums.chunks_exact_mut(self.head_dim()).zip(states) {
            let sum = s.splat(s.sum(s.load(&state.sum)));
            for x in head.as_chunks_mut::<LANES>().0 {
                s.store(s.div(s.load(x), sum), x);
            }
        }
    }
}

impl Softmax {
    /// Takes in the scores of a block, -infinity where there is none, and turns them into weights;
    /// returns what earlier weights are multiplied by.
    #[inline(always)]
    fn add<S: Simd>(&mut self, s: S, scores: &mut [f32; PAGE]) -> f32 {
        let [a, b, c, d] = scores.as_chunks_mut::<LANES>().0 else { return 1.0 };
        let largest = s.max(s.max(s.load(a), s.load(b)), s.max(s.load(c), s.load(d)));
        let largest = s.max_lane(largest);
        let max = if largest > self.max { largest } else { self.max };
        let mut rescale = [0.0; LANES];
        s.store(exp(s, s.splat(self.max - max)), &mut rescale);
        let mut total = s.mul(s.load(&self.sum), s.splat(rescale[0]));
        for lanes in [a, b, c, d] {
            let weight = exp(s, s.sub(s.load(lanes), s.splat(max)));
            s.store(weight, lanes);
            total = s.add(total, weight);
        }
        s.store(total, &mut self.sum);
        self.max = max;
        rescale[0]
    }
}
