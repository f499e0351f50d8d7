//! Merging the symbols of one run: the adjacent pair of lowest rank first, leftmost among equals,
//! until no pair has a rank (Sennrich et al., arXiv:1508.07909).
//!
//! A queue of (rank, position) makes a run of n symbols cost at most n log n, so a million equal
//! letters, which are one word, take a fraction of a second; nothing recurses.

use super::queue::Queue;

/// No rank, no neighbour.
const NONE: u32 = u32::MAX;

/// What may merge with what.
pub(super) trait Rules {
    /// What stands in a run.
    type Symbol: Copy;

    /// Rank of a pair that may merge, below 2^32 - 1.
    fn rank(&self, left: Self::Symbol, right: Self::Symbol) -> Option<u32>;

    /// What the merge of a pair of this rank makes.
    fn union(&self, left: Self::Symbol, right: Self::Symbol, rank: u32) -> Self::Symbol;
}

/// A symbol of the run in the making, linked to its neighbours.
#[derive(Clone, Copy)]
struct Link<S> {
    symbol: S,
    previous: u32,
    next: u32,
    /// Rank of the pair that this symbol and the next one form; `NONE` also once merged away.
    rank: u32,
}

/// Buffers that one text's runs share.
#[derive(Default)]
pub(super) struct Merger<S> {
    links: Vec<Link<S>>,
    queue: Queue,
}

impl<S: Copy> Merger<S> {
    /// Merges what can merge of fewer than 2^32 - 1 symbols; what is left of them, in order.
    pub(super) fn merge(
        &mut self,
        symbols: impl Iterator<Item = S>,
        rules: &impl Rules<Symbol = S>,
    ) -> impl Iterator<Item = S> {
        self.start(symbols, rules);
        while let Some((rank, at)) = self.queue.pop() {
            let left = self.links[at as usize];
            // The pair may have changed since it was queued; then it was queued anew.
            if rank != left.rank {
                continue;
            }
            let right = &mut self.links[left.next as usize];
            right.rank = NONE;
            let Link { symbol, next: after, .. } = *right;
            self.links[at as usize].symbol = rules.union(left.symbol, symbol, rank);
            self.links[at as usize].next = after;
            if after != NONE {
                self.links[after as usize].previous = at;
            }
            for changed in [left.previous, at] {
                self.requeue(changed, rules);
            }
        }
        let first = self.links.first();
        let next = |link: &&Link<S>| self.links.get(link.next as usize);
        std::iter::successors(first, next).map(|link| link.symbol)
    }

    fn start(&mut self, symbols: impl Iterator<Item = S>, rules: &impl Rules<Symbol = S>) {
        self.queue.clear();
        self.links.clear();
        self.links.extend((0u32..).zip(symbols).map(|(at, symbol)| Link {
            symbol,
            previous: at.wrapping_sub(1),
            next: at + 1,
            rank: NONE,
        }));
        if let Some(last) = self.links.last_mut() {
            last.next = NONE;
        }
        for at in 0..self.links.len() as u32 {
            self.requeue(at, rules);
        }
    }

    /// Ranks the pair that begins at `left`, if there is one.
    fn requeue(&mut self, left: u32, rules: &impl Rules<Symbol = S>) {
        let Some(&Link { symbol, next, .. }) = self.links.get(left as usize) else { return };
        let right = self.links.get(next as usize);
        let rank = right.and_then(|right| rules.rank(symbol, right.symbol)).unwrap_or(NONE);
        self.links[left as usize].rank = rank;
        if rank != NONE {
            self.queue.push(rank, left);
        }
    }
}
