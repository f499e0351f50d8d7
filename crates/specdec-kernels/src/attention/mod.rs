//! Attention of rows over the store: grouped queries (Ainslie et al. 2023, arXiv 2305.13245),
//! online softmax (Milakov and Gimelshein 2018, arXiv 1805.02867).
//!
//! A row visits its keys in order of absolute position, in blocks cut at multiples of 64, however
//! they are stored. A dot product sums number i in lane i mod 16, then the lanes by the fixed
//! tree; a weighted value is added key by key. So a row has the same bits alone, in a batch, in a
//! chunk of a prompt or in a tree.

mod block;
mod item;
mod scores;
#[cfg(test)]
mod tests;
mod weigh;

use crate::acts::Acts;
use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::kv::{KvStore, PAGE, Pages, Shape, with_pages};
use crate::pool::PoolError;
use item::{Item, MAX_QUERIES};

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

    fn check(&self, shape: Shape) {
        assert!((self.from as usize) < self.end(), "a row that sees nothing: {self:?}");
        let pages = (self.linear as usize).div_ceil(PAGE);
        assert!(pages <= self.pages.len(), "{} positions need more pages: {self:?}", self.linear);
        let inside = self.pages[..pages].iter().all(|page| (*page as usize) < shape.pages);
        assert!(inside, "a page outside a store of {}: {self:?}", shape.pages);
        self.extra.iter().for_each(|slot| _ = shape.slot(*slot));
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
    let call = Call { layer, q, spans, scale, group: heads / shape.kv_heads };
    let values = Disjoint::new(out.rows_mut(rows));
    with_pages!(&kv.typed, pages => call.run(cpu, pages, &values))?;
    out.quantise(cpu, rows)
}

/// What all items share.
#[derive(Clone, Copy)]
struct Call<'a> {
    layer: usize,
    q: &'a [f32],
    spans: &'a [Span<'a>],
    scale: f32,
    /// Query heads that read one kv head.
    group: usize,
}

impl Call<'_> {
    fn run<E: crate::kv::Element>(
        self,
        cpu: &Cpu,
        pages: &Pages<E>,
        out: &Disjoint<'_, f32>,
    ) -> Result<(), PoolError> {
        let (kv_heads, rows) = (pages.shape.kv_heads, self.spans.len());
        let cut = Cut::new(rows, kv_heads, self.group, cpu.pool.threads());
        let parts = self.group.div_ceil(cut.heads);
        let items_per_group = kv_heads * parts;
        cpu.pool.run(rows.div_ceil(cut.rows) * items_per_group, &|tile| {
            let first_row = tile / items_per_group * cut.rows;
            let kv_head = tile % items_per_group / parts;
            let first_head = tile % parts * cut.heads;
            cpu.level.run(Item {
                call: self,
                pages,
                rows: first_row..(first_row + cut.rows).min(rows),
                kv_head,
                heads: first_head..(first_head + cut.heads).min(self.group),
                out,
            });
        })
    }
}

/// How the work is cut into items: rows and query heads that go over a kv head together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    rows: usize,
    heads: usize,
}

impl Cut {
    /// Rows together read a block from the nearest cache, so as many as leave every thread two
    /// items; query heads share the unpacking of keys and values, and are parted only when
    /// threads would have nothing to do.
    fn new(rows: usize, kv_heads: usize, group: usize, threads: usize) -> Self {
        let heads = group.min(MAX_QUERIES);
        let mut cut = Self { rows: (MAX_QUERIES / heads).min(rows).max(1), heads };
        let items = |cut: Self| rows.div_ceil(cut.rows) * kv_heads * group.div_ceil(cut.heads);
        while cut.rows > 1 && items(cut) < 2 * threads {
            cut.rows = cut.rows.div_ceil(2);
        }
        while cut.heads > 1 && items(cut) < threads {
            cut.heads = cut.heads.div_ceil(2);
        }
        cut
    }
}
