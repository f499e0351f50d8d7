//! Keys and values on candle tensors, and which of them the rows of one pass see.

use candle_core::{Device, Result, Tensor};
use specdec_kernels::Span;

use crate::{
    cache::{Move, PAGE},
    load::ModelConfig,
};

/// One tensor of keys and one of values a layer: slots x `kv_heads` x d, f32.
pub(super) struct Cache {
    layers: Vec<(Tensor, Tensor)>,
}

impl Cache {
    pub(super) fn new(device: &Device, config: &ModelConfig, pages: usize) -> Result<Self> {
        let zeros = || {
            let shape = (pages * PAGE, config.kv_heads, config.head_dim);
            Tensor::zeros(shape, candle_core::DType::F32, device)
        };
        let layers = (0..config.layers).map(|_| Ok((zeros()?, zeros()?))).collect::<Result<_>>()?;
        Ok(Self { layers })
    }

    /// Puts `k` and `v`, rows x `kv_heads` x d, into slots, one a row.
    pub(super) fn write(&self, layer: usize, slots: &Tensor, k: &Tensor, v: &Tensor) -> Result<()> {
        let index = slots.reshape(((), 1, 1))?.broadcast_as(k.shape())?.contiguous()?;
        let (keys, values) = &self.layers[layer];
        keys.scatter_set(&index, &k.contiguous()?, 0)?;
        values.scatter_set(&index, &v.contiguous()?, 0)
    }

    /// The keys and values of some slots.
    pub(super) fn read(&self, layer: usize, slots: &Tensor) -> Result<(Tensor, Tensor)> {
        let (keys, values) = &self.layers[layer];
        Ok((keys.index_select(slots, 0)?, values.index_select(slots, 0)?))
    }

    /// Copies slots. All are read before any is written, which equals running the moves in order:
    /// none overwrites a slot that a later one reads.
    pub(super) fn copy(&self, device: &Device, moves: &[Move]) -> Result<()> {
        let (from, to): (Vec<u32>, Vec<u32>) =
            moves.iter().map(|step| (step.from, step.to)).unzip();
        if from.is_empty() {
            return Ok(());
        }
        let from = Tensor::new(from, device)?;
        let to = Tensor::new(to, device)?;
        for layer in 0..self.layers.len() {
            let (k, v) = self.read(layer, &from)?;
            self.write(layer, &to, &k, &v)?;
        }
        Ok(())
    }

    /// The bits of one slot, layer by layer, keys then values.
    pub(super) fn slot_bytes(&self, slot: u32) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for tensor in self.layers.iter().flat_map(|(keys, values)| [keys, values]) {
            let floats = tensor.narrow(0, slot as usize, 1)?.flatten_all()?.to_vec1::<f32>()?;
            bytes.extend(floats.iter().flat_map(|x| x.to_le_bytes()));
        }
        Ok(bytes)
    }

    pub(super) fn bytes(&self) -> usize {
        let tensors = self.layers.iter().flat_map(|(keys, values)| [keys, values]);
        tensors.map(|tensor| tensor.elem_count() * size_of::<f32>()).sum()
    }
}

/// The slots that any row of a pass sees, and which row sees which.
pub(super) struct View {
    /// Slots, ascending, each once.
    pub(super) slots: Tensor,
    /// Rows x slots: 0 where the row sees the slot, minus infinity elsewhere.
    pub(super) mask: Tensor,
}

impl View {
    pub(super) fn new(device: &Device, spans: &[Span<'_>]) -> Result<Self> {
        let mut slots: Vec<u32> = spans.iter().flat_map(seen).collect();
        slots.sort_unstable();
        slots.dedup();
        let shape = (spans.len(), slots.len());
        let mut mask = vec![f32::NEG_INFINITY; shape.0 * shape.1];
        for (span, row) in spans.iter().zip(mask.chunks_exact_mut(shape.1)) {
            for slot in seen(span) {
                if let Ok(column) = slots.binary_search(&slot) {
                    row[column] = 0.0;
                }
            }
        }
        Ok(Self {
            slots: Tensor::new(slots, device)?,
            mask: Tensor::from_vec(mask, shape, device)?,
        })
    }
}

/// The slots of a row's keys in order of absolute position.
fn seen<'a>(span: &'a Span<'_>) -> impl Iterator<Item = u32> + 'a {
    let page = PAGE as u32;
    let paged =
        (span.from..span.linear).map(move |p| span.pages[(p / page) as usize] * page + p % page);
    let skipped = span.from.saturating_sub(span.linear) as usize;
    paged.chain(span.extra.iter().copied().skip(skipped))
}
