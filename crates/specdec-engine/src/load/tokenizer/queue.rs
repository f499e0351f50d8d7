//! The pairs of a word that can merge, lowest rank first, then leftmost.

use std::{cmp::Reverse, collections::BinaryHeap};

/// A priority queue that is fast where most entries come in order: what is there at the start is
/// sorted once and walked; what comes later waits in a heap, until that is all there is. In a run
/// of equal characters every generation of pairs comes in order, and sorting it is linear.
///
/// An entry has its rank in the upper half and its position in the lower.
#[derive(Default)]
pub(super) struct Queue {
    sorted: Vec<u64>,
    /// First entry of `sorted` that was not taken.
    next: usize,
    later: BinaryHeap<Reverse<u64>>,
}

impl Queue {
    pub(super) fn clear(&mut self) {
        self.sorted.clear();
        self.next = 0;
        self.later.clear();
    }

    pub(super) fn push(&mut self, rank: u32, at: u32) {
        self.later.push(Reverse(u64::from(rank) << 32 | u64::from(at)));
    }

    pub(super) fn pop(&mut self) -> Option<(u32, u32)> {
        if self.next == self.sorted.len() {
            self.sorted.clear();
            self.sorted.extend(self.later.drain().map(|Reverse(entry)| entry));
            self.sorted.sort_unstable();
            self.next = 0;
        }
        let first = *self.sorted.get(self.next)?;
        let entry = match self.later.peek() {
            Some(&Reverse(other)) if other < first => self.later.pop()?.0,
            _ => {
                self.next += 1;
                first
            }
        };
        Some(((entry >> 32) as u32, entry as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_by_rank_then_position_whenever_they_were_pushed() {
        let mut queue = Queue::default();
        for (rank, at) in [(5, 1), (2, 9), (5, 0), (2, 3)] {
            queue.push(rank, at);
        }
        assert_eq!([queue.pop(), queue.pop()], [Some((2, 3)), Some((2, 9))]);
        queue.push(1, 7);
        queue.push(5, 2);
        queue.push(9, 0);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, [(1, 7), (5, 0), (5, 1), (5, 2), (9, 0)]);
        queue.push(3, 3);
        queue.clear();
        assert_eq!(queue.pop(), None);
    }
}
