use super::*;
use crate::cpu::Cpu;
use crate::kv::{KvStore, KvType};
use crate::testing::{Noise, bits, cpus};

const KINDS: [RopeKind; 2] = [RopeKind::Pairs, RopeKind::Halves];

/// Three kv heads and six query heads; slots all over the store.
struct Rows {
    d: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    positions: Vec<u32>,
    slots: Vec<u32>,
}

impl Rows {
    fn new(d: usize) -> Self {
        let (mut noise, n) = (Noise(d as u64), 9);
        let [q, k, v] = [6, 3, 3].map(|heads| noise.floats(n * heads * d));
        let positions = (0..n as u32).map(|i| i * i * 501).collect();
        let slots = (0..n as u32).map(|i| i * 83 % 192).collect();
        Self { d, q, k, v, positions, slots }
    }

    /// Stores rows; returns the turned queries.
    fn put(
        &self,
        cpu: &Cpu,
        rope: &Rope,
        kv: &mut KvStore,
        rows: std::ops::Range<usize>,
    ) -> Vec<f32> {
        let mut table = Vec::new();
        rope.table(&self.positions[rows.clone()], &mut table);
        let part = |x: &[f32], heads: usize| {
            x[rows.start * heads * self.d..rows.end * heads * self.d].to_vec()
        };
        let (mut q, k, v) = (part(&self.q, 6), part(&self.k, 3), part(&self.v, 3));
        let slots = &self.slots[rows.clone()];
        rope_append(cpu, rope, &table, rows.len(), &mut q, &k, &v, slots, kv, 1).unwrap();
        q
    }
}

fn store(d: usize, kv_type: KvType) -> KvStore {
    KvStore::new(2, 3, 3, d, kv_type).unwrap()
}

#[test]
fn a_row_has_the_same_bits_in_any_company() {
    for (kind, d) in KINDS.iter().flat_map(|kind| [16, 64, 80, 256].map(|d| (*kind, d))) {
        for kv_type in [KvType::F16, KvType::F32] {
            let (rows, rope) = (Rows::new(d), Rope::new(kind, d, 1e4, None));
            let mut first = None;
            for cpu in cpus() {
                let mut together = store(d, kv_type);
                let q = rows.put(&cpu, &rope, &mut together, 0..9);
                let mut alone = store(d, kv_type);
                let one = |row| rows.put(&cpu, &rope, &mut alone, row..row + 1);
                let singly: Vec<f32> = (0..9).flat_map(one).collect();
                assert_eq!(bits(&q), bits(&singly), "{kind:?} {d} {}", cpu.level);
                let slots =
                    |kv: &KvStore| (0..192).map(|s| kv.slot_bytes(1, s)).collect::<Vec<_>>();
                assert_eq!(slots(&together), slots(&alone), "{kind:?} {d} {}", cpu.level);
                let all = (bits(&q), slots(&together));
                assert_eq!(*first.get_or_insert(all.clone()), all, "{kind:?} {d} {}", cpu.level);
            }
        }
    }
}

#[test]
fn heads_turn_by_the_definition_and_are_stored_rounded() {
    let d = 64;
    let factors: Vec<f32> = (0..32).map(|i| 1.0 + i as f32).collect();
    for (kind, factors) in KINDS.iter().flat_map(|k| [(*k, None), (*k, Some(&factors[..]))]) {
        let (rows, rope) = (Rows::new(d), Rope::new(kind, d, 1e6, factors));
        let mut kv = store(d, KvType::F16);
        let q = rows.put(&cpus()[0], &rope, &mut kv, 0..9);
        for (row, position) in rows.positions.iter().enumerate() {
            let stored = kv.slot_bytes(1, rows.slots[row]);
            let stored: Vec<f32> =
                stored.chunks(2).map(|b| half::f16::from_ne_bytes([b[0], b[1]]).to_f32()).collect();
            let (keys, values) = stored.split_at(3 * d);
            let v = &rows.v[row * 3 * d..][..3 * d];
            assert!(values.iter().zip(v).all(|(s, v)| *s == half::f16::from_f32(*v).to_f32()));
            let ours = q[row * 6 * d..][..6 * d].chunks(d).chain(keys.chunks(d));
            let from = rows.q[row * 6 * d..][..6 * d].chunks(d);
            let from = from.chain(rows.k[row * 3 * d..][..3 * d].chunks(d));
            for (h, (ours, from)) in ours.zip(from).enumerate() {
                for i in 0..d / 2 {
                    let (a, b) = match kind {
                        RopeKind::Pairs => (2 * i, 2 * i + 1),
                        RopeKind::Halves => (i, i + d / 2),
                    };
                    let factor = factors.map_or(1.0, |f| f64::from(f[i]));
                    let turn = 1e6_f64.powf(-2.0 * i as f64 / d as f64) / factor;
                    let (sin, cos) = (f64::from(*position) * turn).sin_cos();
                    let (x, y) = (f64::from(from[a]), f64::from(from[b]));
                    // Table, product and sum: three roundings of numbers below 1; keys a fourth,
                    // to 11 bits, of numbers below sqrt 2.
                    let bound = if h < 6 { 4.0 * 2f64.powi(-24) } else { 2f64.powi(-11) };
                    assert!((f64::from(ours[a]) - (x * cos - y * sin)).abs() <= bound);
                    assert!((f64::from(ours[b]) - (y * cos + x * sin)).abs() <= bound);
                }
            }
        }
    }
}

#[test]
fn position_zero_turns_nothing() {
    for kind in KINDS {
        let (mut rows, rope) = (Rows::new(64), Rope::new(kind, 64, 1e4, None));
        rows.positions.fill(0);
        let q = rows.put(&cpus()[0], &rope, &mut store(64, KvType::F32), 0..9);
        assert_eq!(q, rows.q);
    }
}

#[test]
fn the_later_of_two_rows_in_one_slot_is_kept() {
    let (mut rows, rope) = (Rows::new(64), Rope::new(RopeKind::Pairs, 64, 1e4, None));
    rows.slots.fill(70);
    for cpu in cpus() {
        let [mut together, mut last] = [0; 2].map(|_| store(64, KvType::F16));
        rows.put(&cpu, &rope, &mut together, 0..9);
        rows.put(&cpu, &rope, &mut last, 8..9);
        assert_eq!(together.slot_bytes(1, 70), last.slot_bytes(1, 70));
    }
}

#[test]
#[should_panic(expected = "slot 192 is outside a store of 3 pages")]
fn a_slot_outside_is_refused() {
    let (mut rows, rope) = (Rows::new(64), Rope::new(RopeKind::Pairs, 64, 1e4, None));
    rows.slots[4] = 192;
    rows.put(&cpus()[0], &rope, &mut store(64, KvType::F16), 0..9);
}
