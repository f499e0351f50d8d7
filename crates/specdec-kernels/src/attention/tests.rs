//! Bits of a row in all company it may have, and its distance from the definition.

mod numbers;
mod rows;

use super::{Partials, Span, attention};
use crate::acts::{Acts, Forms};
use crate::cpu::Cpu;
use crate::kv::{KvStore, KvType};
use crate::rope::{Rope, RopeKind, rope_append};
use crate::testing::Noise;

const PAGES: usize = 8;
const LAYER: usize = 1;

/// Sizes of a model's attention.
#[derive(Clone, Copy, Debug)]
struct Model {
    heads: usize,
    kv_heads: usize,
    d: usize,
    kv_type: KvType,
}

/// Every head size with a group of 1 to 7 queries, in both types.
fn models() -> impl Iterator<Item = Model> {
    let sizes = [(7, 1, 16), (6, 2, 64), (5, 5, 80), (12, 2, 128), (4, 1, 256)];
    sizes.into_iter().flat_map(|(heads, kv_heads, d)| {
        [KvType::F16, KvType::F32].map(|kv_type| Model { heads, kv_heads, d, kv_type })
    })
}

/// One text: what each of its positions asks and stores.
struct Text {
    model: Model,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

impl Text {
    /// Scores spread over a few units, so that softmax is neither flat nor one-hot.
    fn new(model: Model, len: usize, seed: u64) -> Self {
        let mut noise = Noise(seed);
        let mut rows = |heads: usize, size: f32| {
            let x = noise.floats(len * heads * model.d);
            x.iter().map(|x| x * size).collect::<Vec<f32>>()
        };
        Self {
            model,
            q: rows(model.heads, 4.0),
            k: rows(model.kv_heads, 2.0),
            v: rows(model.kv_heads, 1.0),
        }
    }

    fn part(x: &[f32], width: usize, positions: &[u32]) -> Vec<f32> {
        let row = |p: &u32| x[*p as usize * width..][..width].iter().copied();
        positions.iter().flat_map(row).collect()
    }

    /// Stores positions at slots; returns their turned queries.
    fn put(&self, cpu: &Cpu, kv: &mut KvStore, positions: &[u32], slots: &[u32]) -> Vec<f32> {
        let Model { heads, kv_heads, d, .. } = self.model;
        let rope = Rope::new(RopeKind::Halves, d, 1e4, None);
        let (mut table, mut q) = (Vec::new(), Self::part(&self.q, heads * d, positions));
        rope.table(positions, &mut table);
        let [k, v] = [&self.k, &self.v].map(|x| Self::part(x, kv_heads * d, positions));
        rope_append(cpu, &rope, &table, positions.len(), &mut q, &k, &v, slots, kv, LAYER).unwrap();
        q
    }
}

impl Model {
    /// A store in which numbers that nobody stored are NaN, so that reading one shows.
    fn store(self, cpu: &Cpu) -> KvStore {
        let mut kv = KvStore::new(2, PAGES, self.kv_heads, self.d, self.kv_type).unwrap();
        let slots: Vec<u32> = (0..PAGES as u32 * 64).collect();
        let nan = vec![f32::NAN; slots.len() * self.kv_heads * self.d];
        let rope = Rope::new(RopeKind::Pairs, self.d, 1e4, None);
        let table = vec![1.0; slots.len() * self.d];
        rope_append(cpu, &rope, &table, slots.len(), &mut [], &nan, &nan, &slots, &mut kv, LAYER)
            .unwrap();
        kv
    }

    fn scale(self) -> f32 {
        1.0 / (self.d as f32).sqrt()
    }

    fn attend(self, cpu: &Cpu, kv: &KvStore, q: &[f32], spans: &[Span<'_>]) -> Vec<Vec<f32>> {
        let mut out = Acts::new(spans.len(), self.heads * self.d, Forms::default());
        let mut partials = Partials::new(spans.len(), self.heads, self.d);
        let (heads, scale) = (self.heads, self.scale());
        attention(cpu, kv, LAYER, q, heads, spans, scale, &mut partials, &mut out).unwrap();
        (0..spans.len()).map(|i| out.row(i).to_vec()).collect()
    }
}
