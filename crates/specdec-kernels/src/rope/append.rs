//! Turns queries and keys, and stores keys and values.

use super::{Rope, RopeKind, rotate};
use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::kv::{Blocks, Element, KvStore, MAX_HEAD_DIM, Pages, with_pages};
use crate::level::Kernel;
use crate::pool::PoolError;
use crate::simd::{LANES, Simd};

/// Turns the heads of `q` in place, and stores the turned heads of `k`, and those of `v`, in
/// layer `layer` at each row's slot, rounded to the store's type.
///
/// `cos_sin` is the rows' [`Rope::table`]; `q` has whole heads, `k` and `v` the store's kv heads
/// in every one of `rows` rows. If two rows name one slot, the later row is kept.
///
/// # Errors
/// As [`crate::Pool::run`].
///
/// # Panics
/// If a length does not fit, or a slot or the layer is outside the store.
#[expect(clippy::too_many_arguments, reason = "one step of the forward, all its operands")]
pub fn rope_append(
    cpu: &Cpu,
    rope: &Rope,
    cos_sin: &[f32],
    rows: usize,
    q: &mut [f32],
    k: &[f32],
    v: &[f32],
    slots: &[u32],
    kv: &mut KvStore,
    layer: usize,
) -> Result<(), PoolError> {
    let shape = kv.shape();
    let (head_dim, kv_dim) = (shape.head_dim, shape.kv_heads * shape.head_dim);
    assert_eq!(2 * rope.turns.len(), head_dim, "rope and store disagree on the head");
    assert_eq!(cos_sin.len(), rows * head_dim, "angles for {rows} rows of {head_dim}");
    assert_eq!((k.len(), v.len()), (rows * kv_dim, rows * kv_dim), "{rows} rows of {kv_dim}");
    assert_eq!(slots.len(), rows, "slots for {rows} rows");
    assert!(layer < shape.layers, "layer {layer} is outside a store of {}", shape.layers);
    for slot in slots {
        let _ = shape.slot(*slot);
    }
    let q_dim = q.len().checked_div(rows).unwrap_or(0);
    assert!(
        q.len() == rows * q_dim && q_dim.is_multiple_of(head_dim),
        "{} queries are no {rows} rows of heads of {head_dim}",
        q.len()
    );
    let step = Step { kind: rope.kind, cos_sin, head_dim, k, v, slots, layer };
    let q = Disjoint::new(q);
    with_pages!(&mut kv.typed, pages => step.run(cpu, pages, rows, &q, q_dim))
}

/// What all tiles share.
#[derive(Clone, Copy)]
struct Step<'a> {
    kind: RopeKind,
    cos_sin: &'a [f32],
    head_dim: usize,
    k: &'a [f32],
    v: &'a [f32],
    slots: &'a [u32],
    layer: usize,
}

impl Step<'_> {
    /// A tile for each kv head, then one for the queries of each row. A kv head's rows are stored
    /// by one thread in order, so rows that share a slot (which a caller may ask for) do not race.
    fn run<E: Element>(
        self,
        cpu: &Cpu,
        pages: &mut Pages<E>,
        rows: usize,
        q: &Disjoint<'_, f32>,
        q_dim: usize,
    ) -> Result<(), PoolError> {
        let blocks = pages.split();
        let kv_heads = blocks.shape.kv_heads;
        cpu.pool.run(kv_heads + rows, &|tile| {
            if tile < kv_heads {
                cpu.level.run(Append { step: self, blocks: &blocks, head: tile });
            } else {
                let row = tile - kv_heads;
                // SAFETY: every tile takes its own row.
                let q = unsafe { q.part(row * q_dim..(row + 1) * q_dim) };
                cpu.level.run(Queries { step: self, q, row });
            }
        })
    }

    fn angles(&self, row: usize) -> &[f32] {
        &self.cos_sin[row * self.head_dim..][..self.head_dim]
    }
}

struct Queries<'a> {
    step: Step<'a>,
    q: &'a mut [f32],
    row: usize,
}

impl Kernel for Queries<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for head in self.q.chunks_exact_mut(self.step.head_dim) {
            rotate(self.step.kind, head, self.step.angles(self.row));
        }
    }
}

struct Append<'a, E> {
    step: Step<'a>,
    blocks: &'a Blocks<'a, E>,
    head: usize,
}

impl<E: Element> Kernel for Append<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (step, shape) = (self.step, self.blocks.shape);
        let (mut turned, mut rounded) = ([0.0; MAX_HEAD_DIM], [E::ZERO; MAX_HEAD_DIM]);
        let (turned, rounded) = (&mut turned[..step.head_dim], &mut rounded[..step.head_dim]);
        for (row, slot) in step.slots.iter().enumerate() {
            let slot = shape.slot(*slot);
            // SAFETY: this head's blocks are taken by this tile alone, one at a time.
            let (keys, values) = unsafe { self.blocks.block(step.layer, slot.page, self.head) };
            let at = (row * shape.kv_heads + self.head) * step.head_dim;
            turned.copy_from_slice(&step.k[at..][..step.head_dim]);
            rotate(step.kind, turned, step.angles(row));
            round(s, turned, rounded);
            shape.write_key(keys, slot.offset, rounded);
            let value = &mut values[shape.value(slot.offset)..][..step.head_dim];
            round(s, &step.v[at..][..step.head_dim], value);
        }
    }
}

/// Rounds whole vectors to the store's type.
#[inline(always)]
fn round<S: Simd, E: Element>(s: S, from: &[f32], to: &mut [E]) {
    let chunks = from.as_chunks::<LANES>().0.iter().zip(to.as_chunks_mut::<LANES>().0);
    for (from, to) in chunks {
        E::store(s, s.load(from), to);
    }
}
