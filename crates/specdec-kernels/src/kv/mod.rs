//! The key-value store: what attention reads of earlier tokens.
//!
//! Pages of 64 positions, shared by all sequences. A page holds, for each layer and each kv head,
//! 64 keys and 64 values of `head_dim` numbers. Values lie one after the other. Keys lie in four
//! tiles of 16 positions: number i of all 16 keys, then number i + 1, so that a vector holds
//! one number of 16 keys and a dot product needs no sum across lanes.

mod element;
mod pages;

pub(crate) use element::Element;
pub(crate) use pages::{Blocks, Pages, Shape};

/// Positions of a page, which are also those of an attention block.
pub const PAGE: usize = 64;

/// Positions of a tile of keys: one vector.
pub(crate) const TILE: usize = crate::simd::LANES;

/// Largest head that kernels take.
pub(crate) const MAX_HEAD_DIM: usize = 256;

/// How keys and values are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KvType {
    /// IEEE half precision, rounded to nearest even; 2 bytes.
    F16,
    /// Single precision, as computed; 4 bytes.
    F32,
}

/// Why a store could not be made.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// Heads of this size have no kernel.
    #[error("heads of {found} numbers: the store takes multiples of 16 from 16 to 256")]
    HeadDim {
        /// Numbers in a head.
        found: usize,
    },
    /// The system has no room.
    #[error(
        "no memory for {pages} pages of 64 positions in {layers} layers with {kv_heads} kv heads \
         of {head_dim}: plan fewer pages or store f16"
    )]
    Memory {
        /// Layers asked for.
        layers: usize,
        /// Pages asked for.
        pages: usize,
        /// Kv heads asked for.
        kv_heads: usize,
        /// Numbers in a head.
        head_dim: usize,
    },
}

/// Keys and values of all layers, addressed by slot = page * 64 + offset.
pub struct KvStore {
    pub(crate) typed: Typed,
}

/// The pages by type of number.
pub(crate) enum Typed {
    F16(Pages<u16>),
    F32(Pages<f32>),
}

/// Evaluates `$body` with `$pages` bound to the pages of whichever type.
macro_rules! with_pages {
    ($kv:expr, $pages:ident => $body:expr) => {
        match $kv {
            crate::kv::Typed::F16($pages) => $body,
            crate::kv::Typed::F32($pages) => $body,
        }
    };
}
pub(crate) use with_pages;

impl KvStore {
    /// Room for `pages` pages of `layers` layers with `kv_heads` heads of `head_dim` numbers,
    /// all zero. The system gives the memory as it is written.
    ///
    /// # Errors
    /// `HeadDim` unless `head_dim` is a multiple of 16 from 16 to 256; `Memory` if there is not
    /// that much.
    pub fn new(
        layers: usize,
        pages: usize,
        kv_heads: usize,
        head_dim: usize,
        kv_type: KvType,
    ) -> Result<Self, KvError> {
        if head_dim == 0 || head_dim > MAX_HEAD_DIM || !head_dim.is_multiple_of(16) {
            return Err(KvError::HeadDim { found: head_dim });
        }
        let shape = Shape { layers, pages, kv_heads, head_dim };
        let typed = match kv_type {
            KvType::F16 => Pages::new(shape).map(Typed::F16),
            KvType::F32 => Pages::new(shape).map(Typed::F32),
        };
        let typed = typed.ok_or(KvError::Memory { layers, pages, kv_heads, head_dim })?;
        Ok(Self { typed })
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        with_pages!(&self.typed, pages => pages.bytes())
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.shape().pages
    }

    /// How keys and values are stored.
    pub fn kv_type(&self) -> KvType {
        match self.typed {
            Typed::F16(_) => KvType::F16,
            Typed::F32(_) => KvType::F32,
        }
    }

    /// Copies keys and values of slot `from` to slot `to`, in all layers, bit for bit.
    ///
    /// # Panics
    /// If a slot is outside the store.
    pub fn copy_slot(&mut self, from: u32, to: u32) {
        with_pages!(&mut self.typed, pages => pages.copy_slot(from, to));
    }

    /// Keys, then values, of one slot in one layer: for each kv head `head_dim` numbers in the
    /// store's type, bytes in native order.
    ///
    /// # Panics
    /// If layer or slot is outside the store.
    pub fn slot_bytes(&self, layer: usize, slot: u32) -> Vec<u8> {
        with_pages!(&self.typed, pages => pages.slot_bytes(layer, slot))
    }

    pub(crate) fn shape(&self) -> Shape {
        with_pages!(&self.typed, pages => pages.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rope::{Rope, RopeKind, rope_append};
    use crate::testing::{Noise, cpus};

    /// A store whose first `slots` slots of every layer differ in all numbers.
    fn filled(kv_type: KvType, slots: u32) -> KvStore {
        let (layers, kv_heads, d) = (3, 2, 80);
        let mut kv = KvStore::new(layers, 3, kv_heads, d, kv_type).unwrap();
        let mut noise = Noise(1);
        let rope = Rope::new(RopeKind::Halves, d, 1e4, None);
        let (all, mut table) = ((0..slots).collect::<Vec<_>>(), Vec::new());
        rope.table(&all, &mut table);
        for layer in 0..layers {
            let [k, v] = [0; 2].map(|_| noise.floats(all.len() * kv_heads * d));
            let (cpu, rows) = (&cpus()[0], all.len());
            rope_append(cpu, &rope, &table, rows, &mut [], &k, &v, &all, &mut kv, layer).unwrap();
        }
        kv
    }

    fn layers(kv: &KvStore, slot: u32) -> [Vec<u8>; 3] {
        [0, 1, 2].map(|layer| kv.slot_bytes(layer, slot))
    }

    #[test]
    fn a_copied_slot_has_the_same_bits_and_its_neighbours_keep_theirs() {
        for kv_type in [KvType::F16, KvType::F32] {
            let mut kv = filled(kv_type, 130);
            for (from, to) in [(0, 1), (17, 15), (63, 64), (129, 128), (5, 191), (9, 9)] {
                let before: Vec<_> = (0..192).map(|slot| layers(&kv, slot)).collect();
                kv.copy_slot(from, to);
                for slot in 0..192 {
                    let expected = if slot == to { from } else { slot };
                    assert_eq!(layers(&kv, slot), before[expected as usize], "{from} {to} {slot}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_what_the_numbers_take() {
        for (kv_type, size) in [(KvType::F16, 2), (KvType::F32, 4)] {
            let kv = KvStore::new(3, 5, 2, 48, kv_type).unwrap();
            assert_eq!(kv.bytes(), 3 * 5 * 64 * 2 * 2 * 48 * size);
            assert_eq!((kv.pages(), kv.kv_type()), (5, kv_type));
            assert_eq!(kv.slot_bytes(0, 0), vec![0; 2 * 2 * 48 * size]);
        }
    }

    #[test]
    fn stores_that_cannot_be_are_refused() {
        for found in [0, 8, 72, 272] {
            let error = KvStore::new(1, 1, 1, found, KvType::F16).err().unwrap();
            assert!(matches!(error, KvError::HeadDim { found: f } if f == found));
        }
        for pages in [1 << 50, usize::MAX] {
            let error = KvStore::new(30, pages, 8, 128, KvType::F32).err().unwrap();
            assert!(matches!(error, KvError::Memory { pages: p, .. } if p == pages));
        }
    }
}
