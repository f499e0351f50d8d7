//! Attention of rows over the store: grouped queries (Ainslie et al. 2023, arXiv 2305.13245),
//! online softmax (Milakov and Gimelshein 2018, arXiv 1805.02867).
//!
//! Keys are visited by absolute position, in blocks cut at multiples of 64, however they are
//! stored. A block has its own softmax: a dot product is one chain over the numbers of the head, a
//! weighted value is added key by key. Blocks are merged in order. So a row has the same bits alone,
//! in a batch, in a chunk of a prompt or in a tree, and threads may share the blocks of one row.

mod block;
mod item;
mod merge;
mod plan;
mod scores;
#[cfg(test)]
mod tests;
mod weigh;

use crate::acts::{Acts, Row};
use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::kv::{KvStore, PAGE, Shape, with_pages};
use crate::level::Kernel;
use crate::pool::PoolError;
use crate::simd::{LANES, Simd};
use item::Item;
use merge::{HEADER, Vector, finish, merge};
use plan::{Plan, Run};

/// What one row sees: the positions `from..linear + extra.len()`, at least one.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// Pages of the positions below `linear`: position p is at slot pages[p / 64] * 64 + p % 64.
    pub pages: &'a [u32],
    /// Number of positions that lie in `pages`.
    pub linear: u32,
    /// Slots of the positions from `linear` on: the row's ancestors in a tree, and itself.
    pub extra: &'a [u32],
    /// First position seen (sliding window).
    pub from: u32,
}

impl Span<'_> {
    /// Number of positions, those below `from` included.
    fn end(&self) -> usize {
        self.linear as usize + self.extra.len()
    }

    /// First block seen.
    fn first(&self) -> usize {
        self.from as usize / PAGE
    }

    /// Is anything of block `index` seen?
    fn sees(&self, index: usize) -> bool {
        self.first() <= index && index * PAGE < self.end()
    }

    /// The slots of block `index` that lie outside its page.
    fn scattered(&self, index: usize) -> &[u32] {
        let at = |position: usize| position.min(self.end()).saturating_sub(self.linear as usize);
        &self.extra[at(index * PAGE)..at((index + 1) * PAGE)]
    }

    /// Does another span on the same pages see block `index` from the same start and find it in
    /// the same places, as far as both see?
    fn shares(&self, other: &Span<'_>, index: usize) -> bool {
        let start = |span: &Span<'_>| (span.from as usize).max(index * PAGE);
        if !other.sees(index) || start(self) != start(other) {
            return false;
        }
        let (ours, theirs) = (self.scattered(index), other.scattered(index));
        if ours.is_empty() && theirs.is_empty() {
            return true;
        }
        self.linear == other.linear && (ours.starts_with(theirs) || theirs.starts_with(ours))
    }

    fn check(&self, shape: Shape) {
        assert!((self.from as usize) < self.end(), "a row that sees nothing: {self:?}");
        let pages = (self.linear as usize).div_ceil(PAGE);
        assert!(pages <= self.pages.len(), "{} positions need more pages: {self:?}", self.linear);
        let inside = self.pages[..pages].iter().all(|page| (*page as usize) < shape.pages);
        assert!(inside, "a page outside a store of {}: {self:?}", shape.pages);
        self.extra.iter().for_each(|slot| _ = shape.slot(*slot));
    }
}

/// What queries have of blocks on the way to a row; made once and used by every call.
pub struct Partials {
    vectors: Vec<Vector>,
    share: usize,
}

impl Partials {
    /// Bytes that the shares of single blocks may take; what is not needed is never touched.
    const SPLIT: usize = 4 << 20;

    /// Room for calls of up to `rows` rows of `heads` query heads of `head_dim` numbers.
    pub fn new(rows: usize, heads: usize, head_dim: usize) -> Self {
        let bytes = Self::bytes_for(rows, heads, head_dim);
        let share = HEADER + head_dim / LANES;
        Self { vectors: vec![Vector::ZERO; bytes / size_of::<Vector>()], share }
    }

    /// Bytes of memory that partials for such calls take.
    pub fn bytes_for(rows: usize, heads: usize, head_dim: usize) -> usize {
        let share = (HEADER + head_dim / LANES) * size_of::<Vector>();
        (rows * heads).max(Self::SPLIT / share) * share
    }

    /// Bytes of memory that this takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.vectors[..])
    }

    fn shares(&self) -> usize {
        self.vectors.len() / self.share
    }
}

/// One row of `out` for each span: softmax(scale * q k) v for every query head, over what the
/// span sees; then out's quantised forms are brought up to date.
///
/// `q` has rows of `heads` heads; query head h reads kv head h / (heads / kv heads). Numbers that
/// overflow give infinities or NaN in their own row only.
///
/// # Errors
/// As [`crate::Pool::run`].
///
/// # Panics
/// If a length does not fit, a span sees nothing, or it names what is outside the store.
#[expect(clippy::too_many_arguments, reason = "one step of the forward, all its operands")]
pub fn attention(
    cpu: &Cpu,
    kv: &KvStore,
    layer: usize,
    q: &[f32],
    heads: usize,
    spans: &[Span<'_>],
    scale: f32,
    partials: &mut Partials,
    out: &mut Acts,
) -> Result<(), PoolError> {
    let (shape, rows) = (kv.shape(), spans.len());
    let cols = heads * shape.head_dim;
    assert!(heads.is_multiple_of(shape.kv_heads), "{heads} heads on {} kv heads", shape.kv_heads);
    assert_eq!(q.len(), rows * cols, "queries of {rows} rows of {cols}");
    assert_eq!(out.cols(), cols, "attention of width {cols} into rows of {}", out.cols());
    assert!(layer < shape.layers, "layer {layer} is outside a store of {}", shape.layers);
    for span in spans {
        span.check(shape);
    }
    let (group, room) = (heads / shape.kv_heads, partials.shares());
    assert_eq!(partials.share, HEADER + shape.head_dim / LANES, "partials of another head");
    assert!(rows * heads <= room, "{rows} rows of {heads} heads in room for {room}");
    let plan = Plan::new(spans, shape.kv_heads, group, cpu.pool.threads(), room);
    let shares = &Disjoint::new(&mut partials.vectors);
    let call = Call { layer, q, spans, scale, heads, group, head_dim: shape.head_dim, shares };
    with_pages!(&kv.typed, pages => cpu.pool.run(plan.pieces.len(), &|piece| {
        let piece = &plan.pieces[piece];
        let (run, blocks) = (&plan.runs[piece.run], piece.blocks.clone());
        cpu.level.run(Item { call, pages, run, kv_head: piece.kv_head, blocks });
    }))?;
    let out = out.split(rows);
    cpu.pool.run(out.tiles(), &|tile| {
        for row in out.of_tile(tile) {
            let after = plan.runs.partition_point(|run| run.rows.end <= row);
            // SAFETY: every tile takes its own rows.
            let out = unsafe { out.row(row) };
            cpu.level.run(Finish { call, run: &plan.runs[after], row, out });
        }
    })
}

/// What all items share.
#[derive(Clone, Copy)]
struct Call<'a> {
    layer: usize,
    q: &'a [f32],
    spans: &'a [Span<'a>],
    scale: f32,
    heads: usize,
    /// Query heads that read one kv head.
    group: usize,
    head_dim: usize,
    shares: &'a Disjoint<'a, Vector>,
}

impl Call<'_> {
    /// Vectors of a share.
    fn share(&self) -> usize {
        HEADER + self.head_dim / LANES
    }
}

/// Merges what the queries of a row have, and quantises the row.
struct Finish<'a> {
    call: Call<'a>,
    run: &'a Run,
    row: usize,
    out: Row<'a>,
}

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let (call, size, d) = (self.call, self.call.share(), self.call.head_dim);
        let span = &call.spans[self.row];
        let (first, last) = (span.first(), span.end().div_ceil(PAGE));
        let last = if self.run.split { last } else { first + 1 };
        for from in (0..call.heads).step_by(LANES) {
            let heads = LANES.min(call.heads - from);
            let at = self.run.share(call.heads, self.row, from, first);
            // SAFETY: the region that wrote shares is over; a row's shares are read by its tile.
            let all = unsafe { call.shares.part(at * size..(at + heads) * size) };
            let mut into: [&mut [Vector]; LANES] = std::array::from_fn(|_| &mut [][..]);
            into.iter_mut().zip(all.chunks_exact_mut(size)).for_each(|(to, share)| *to = share);
            for block in first + 1..last {
                let at = self.run.share(call.heads, self.row, from, block);
                // SAFETY: as above; another block's shares.
                let all = unsafe { call.shares.part(at * size..(at + heads) * size) };
                let mut next: [&[Vector]; LANES] = [&[]; LANES];
                next.iter_mut().zip(all.chunks_exact(size)).for_each(|(to, share)| *to = share);
                merge(s, &mut into[..heads], &next[..heads]);
            }
            let out = self.out.values[from * d..].as_chunks_mut::<LANES>().0;
            for (share, out) in into[..heads].iter().zip(out.chunks_exact_mut(d / LANES)) {
                finish(s, share, out);
            }
        }
        self.out.quantise(s);
    }
}
