//! One item of work: all rows of a run and all query heads of a kv head, over some blocks.

use std::ops::Range;

use super::block::Block;
use super::merge::{HEADER, Vector, merge, softmax};
use super::plan::Run;
use super::scores::scores;
use super::weigh::weigh;
use super::{Call, Span};
use crate::kv::{Element, MAX_HEAD_DIM, PAGE, Pages, TILE};
use crate::level::Kernel;
use crate::simd::{LANES, Simd};

/// Queries that share a load of keys and values: six times four running sums fill the registers.
const WIDE: usize = 6;
const NARROW: usize = 3;

/// Work for one thread.
pub(super) struct Item<'a, E> {
    pub(super) call: Call<'a>,
    pub(super) pages: &'a Pages<E>,
    pub(super) run: &'a Run,
    pub(super) kv_head: usize,
    pub(super) blocks: Range<usize>,
}

/// One query and what it sees of a block.
#[derive(Clone, Copy, Default)]
struct Query {
    row: usize,
    head: usize,
    end: usize,
}

/// Weights and shares of the queries in hand.
#[repr(C, align(64))]
struct Hand {
    weights: [[f32; PAGE]; WIDE],
    shares: [Share; WIDE],
}

/// What will be read soon, asked for beside keys and values: the machine's own look-ahead ends at
/// every tile.
#[derive(Clone, Copy)]
struct Ahead<'a, E> {
    keys: [&'a [E]; 2],
    values: &'a [E],
}

impl<E> Ahead<'_, E> {
    const NOTHING: Self = Ahead { keys: [&[]; 2], values: &[] };
}

type Share = [Vector; HEADER + MAX_HEAD_DIM / LANES];

impl<E: Element> Kernel for Item<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut room = E::room().take();
        let shares = [[Vector::ZERO; HEADER + MAX_HEAD_DIM / LANES]; WIDE];
        let mut hand = Hand { weights: [[0.0; PAGE]; WIDE], shares };
        for index in self.blocks.clone() {
            let mut row = self.run.rows.start;
            while row < self.run.rows.end {
                let mut longest = &self.call.spans[row];
                if !longest.sees(index) {
                    row += 1;
                    continue;
                }
                let first = row;
                row += 1;
                while row < self.run.rows.end && longest.shares(&self.call.spans[row], index) {
                    let span = &self.call.spans[row];
                    longest = if span.end() > longest.end() { span } else { longest };
                    row += 1;
                }
                self.rows(s, index, first..row, longest, &mut room, &mut hand);
            }
        }
        E::room().set(room);
    }
}

impl<E: Element> Item<'_, E> {
    /// Rows that find the keys and values of a block in one place, `longest` most of them.
    #[inline(always)]
    fn rows<S: Simd>(
        &self,
        s: S,
        index: usize,
        rows: Range<usize>,
        longest: &Span<'_>,
        room: &mut Vec<E>,
        hand: &mut Hand,
    ) {
        let (layer, head, group) = (self.call.layer, self.kv_head, self.call.group);
        let block = Block::new(self.pages, layer, head, longest, index, room);
        let own = if index == self.blocks.start { block.page_values() } else { &[] };
        let [keys, values] = self.next(longest, index);
        let mut ahead = Ahead { keys: [own, keys], values };
        let most = if S::WIDE { WIDE } else { NARROW };
        let (mut at, all) = (0, rows.len() * group);
        while at < all {
            let left = all - at;
            let count = left.div_ceil(left.div_ceil(most));
            let mut queries = [Query::default(); WIDE];
            for (i, query) in queries[..count].iter_mut().enumerate() {
                let row = rows.start + (at + i) / group;
                let end = self.call.spans[row].end().min((index + 1) * PAGE) - index * PAGE;
                *query = Query { row, head: head * group + (at + i) % group, end };
            }
            match count {
                6 if S::WIDE => self.tile::<S, 6>(s, index, &block, ahead, &queries, hand),
                5 if S::WIDE => self.tile::<S, 5>(s, index, &block, ahead, &queries, hand),
                4 if S::WIDE => self.tile::<S, 4>(s, index, &block, ahead, &queries, hand),
                3 => self.tile::<S, 3>(s, index, &block, ahead, &queries, hand),
                2 => self.tile::<S, 2>(s, index, &block, ahead, &queries, hand),
                _ => self.tile::<S, 1>(s, index, &block, ahead, &queries, hand),
            }
            at += count;
            ahead = Ahead::NOTHING;
        }
    }

    /// Keys and values of the block behind, if this item goes on with it.
    fn next(&self, span: &Span<'_>, index: usize) -> [&[E]; 2] {
        let index = index + 1;
        if !self.blocks.contains(&index) || (span.linear as usize) <= index * PAGE {
            return [&[]; 2];
        }
        self.pages.block(self.call.layer, span.pages[index] as usize, self.kv_head).into()
    }

    /// The first M queries over one block.
    #[inline(always)]
    fn tile<S: Simd, const M: usize>(
        &self,
        s: S,
        index: usize,
        block: &Block<'_, E>,
        ahead: Ahead<'_, E>,
        queries: &[Query; WIDE],
        hand: &mut Hand,
    ) {
        let (d, start) = (self.pages.shape.head_dim, block.seen.start);
        let mut q: [&[[f32; LANES]]; M] = [&[]; M];
        for (q, query) in q.iter_mut().zip(queries) {
            let at = (query.row * self.call.heads + query.head) * d;
            *q = self.call.q[at..at + d].as_chunks().0;
        }
        let (Some(weights), Some(shares)) =
            (hand.weights.first_chunk_mut::<M>(), hand.shares.first_chunk_mut::<M>())
        else {
            return;
        };
        let tiles = start / TILE..block.seen.end.div_ceil(TILE);
        scores(s, &q, &block.keys, tiles, ahead.keys, self.call.scale, weights);
        let size = self.call.share();
        for ((scores, query), share) in weights.iter_mut().zip(queries).zip(shares.iter_mut()) {
            scores[..start].fill(f32::NEG_INFINITY);
            scores[query.end..].fill(f32::NEG_INFINITY);
            softmax(s, scores, &mut share[..size]);
        }
        self.values(s, block, ahead.values, queries, weights, shares);
        self.keep(s, index, queries, shares);
    }

    /// Adds the values: first those that all queries see, then what single ones see beyond.
    #[inline(always)]
    fn values<S: Simd, const M: usize>(
        &self,
        s: S,
        block: &Block<'_, E>,
        mut ahead: &[E],
        queries: &[Query; WIDE],
        weights: &[[f32; PAGE]; M],
        shares: &mut [Share; M],
    ) {
        let vectors = HEADER..HEADER + self.pages.shape.head_dim / LANES;
        let mut common = PAGE;
        for query in &queries[..M] {
            common = common.min(query.end);
        }
        let mut sums = shares.each_mut().map(|share| &mut share[vectors.clone()]);
        for (first, values) in block.values(block.seen.start..common) {
            weigh(s, values, ahead, weights, first, &mut sums);
            ahead = &[];
        }
        for (m, sums) in sums.into_iter().enumerate() {
            for (first, values) in block.values(common..queries[m].end) {
                if !values.is_empty() {
                    weigh(s, values, &[], &[weights[m]], first, &mut [&mut *sums]);
                }
            }
        }
    }

    /// Puts shares where they belong, or takes them into what is there.
    #[inline(always)]
    fn keep<S: Simd, const M: usize>(
        &self,
        s: S,
        index: usize,
        queries: &[Query; WIDE],
        fresh: &[Share; M],
    ) {
        let size = self.call.share();
        for (query, fresh) in queries.iter().zip(fresh) {
            let first = self.run.split || self.call.spans[query.row].first() == index;
            let at = self.run.share(self.call.heads, query.row, query.head, index);
            // SAFETY: a query's shares of a kv head and a run belong to this item alone, those of
            // a block if the run is split; one is held at a time.
            let share = unsafe { self.call.shares.part(at * size..(at + 1) * size) };
            if first {
                share.copy_from_slice(&fresh[..size]);
            } else {
                merge(s, &mut [share], &[&fresh[..size]]);
            }
        }
    }
}
