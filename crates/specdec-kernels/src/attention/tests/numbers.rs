//! Distance from the definition, and scores at the ends of their range.

use super::*;
use crate::testing::cpus;

/// Keys and values of a slot as stored, for each kv head.
fn stored(model: Model, kv: &KvStore, slot: u32) -> [Vec<Vec<f64>>; 2] {
    let bytes = kv.slot_bytes(LAYER, slot);
    let half = |b: &[u8]| f64::from(half::f16::from_ne_bytes([b[0], b[1]]));
    let single = |b: &[u8]| f64::from(f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let numbers: Vec<f64> = match model.kv_type {
        KvType::F16 => bytes.chunks(2).map(half).collect(),
        KvType::F32 => bytes.chunks(4).map(single).collect(),
    };
    let heads: Vec<Vec<f64>> = numbers.chunks(model.d).map(<[f64]>::to_vec).collect();
    let (keys, values) = heads.split_at(model.kv_heads);
    [keys.to_vec(), values.to_vec()]
}

/// Result of one head by the definition, and how far off ours may be.
fn exact(q: &[f32], keys: &[Vec<f64>], values: &[Vec<f64>], scale: f64) -> Vec<(f64, f64)> {
    const HALF_ULP: f64 = 1.0 / (1 << 24) as f64;
    let products = |k: &Vec<f64>| q.iter().zip(k).map(|(q, k)| f64::from(*q) * k).collect();
    let products: Vec<Vec<f64>> = keys.iter().map(products).collect();
    let scores: Vec<f64> = products.iter().map(|p| p.iter().sum::<f64>() * scale).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|x| (x - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    // A score: chains of d / 16 sums, a tree of 4, two products and a difference, relative to its
    // terms; that is the relative error of its weight, besides exp's. The largest score has the
    // same error. A result: one rounding for each key, one for each block, and again in the sum.
    let terms = products.iter().map(|p| p.iter().map(|x| x.abs()).sum::<f64>() * scale);
    let score = terms.fold(0.0, f64::max) * (q.len() as f64 / 16.0 + 7.0) * HALF_ULP;
    let relative = 2.0 * (2.0 * score + 2.0 * HALF_ULP) + 3.0 * keys.len() as f64 * HALF_ULP;
    let weighted = |i: usize, f: fn(f64) -> f64| {
        let terms = weights.iter().zip(values).map(|(w, v)| w * f(v[i]));
        terms.sum::<f64>() / sum
    };
    (0..q.len()).map(|i| (weighted(i, |v| v), relative * weighted(i, f64::abs))).collect()
}

#[test]
fn results_are_those_of_the_definition() {
    let cpu = &cpus()[0];
    for model in models() {
        for (len, from) in [(1, 0), (64, 0), (129, 0), (150, 70)] {
            let text = Text::new(model, len, 5);
            let mut kv = model.store(cpu);
            let positions: Vec<u32> = (0..len as u32).collect();
            let q = text.put(cpu, &mut kv, &positions, &positions);
            let width = model.heads * model.d;
            let q = &q[(len - 1) * width..];
            let span = Span { pages: &[0, 1, 2], linear: len as u32, extra: &[], from };
            let ours = model.attend(cpu, &kv, q, &[span]);
            let slots: Vec<_> = (from..len as u32).map(|p| stored(model, &kv, p)).collect();
            for (h, (q, ours)) in q.chunks(model.d).zip(ours[0].chunks(model.d)).enumerate() {
                let head = h / (model.heads / model.kv_heads);
                let [keys, values] =
                    [0, 1].map(|i| slots.iter().map(|s| s[i][head].clone()).collect::<Vec<_>>());
                let exact = exact(q, &keys, &values, f64::from(model.scale()));
                for (ours, (exact, bound)) in ours.iter().zip(exact) {
                    let off = (f64::from(*ours) - exact).abs();
                    assert!(off <= bound, "{model:?} {len}: {ours} for {exact}, bound {bound}");
                }
            }
        }
    }
}

/// A text whose key at position p is `sizes[p]` times the query (all ones, head of 16).
fn scored(cpu: &Cpu, sizes: &[f32]) -> (Model, KvStore, Text, Vec<f32>) {
    let model = Model { heads: 1, kv_heads: 1, d: 16, kv_type: KvType::F32 };
    let mut text = Text::new(model, sizes.len(), 9);
    text.q.fill(1.0);
    for (k, size) in text.k.chunks_mut(16).zip(sizes) {
        k.fill(*size);
    }
    let mut kv = model.store(cpu);
    let slots: Vec<u32> = (0..sizes.len() as u32).collect();
    let rope = Rope::new(RopeKind::Halves, 16, 1e4, None);
    let mut table = Vec::new();
    // Position 0 turns nothing.
    rope.table(&vec![0; sizes.len()], &mut table);
    let mut q = text.q.clone();
    rope_append(cpu, &rope, &table, sizes.len(), &mut q, &text.k, &text.v, &slots, &mut kv, LAYER)
        .unwrap();
    (model, kv, text, q[..16].to_vec())
}

fn row(cpu: &Cpu, sizes: &[f32]) -> (Vec<f32>, Text) {
    let (model, kv, text, q) = scored(cpu, sizes);
    let span = Span { pages: &[0, 1, 2], linear: sizes.len() as u32, extra: &[], from: 0 };
    (model.attend(cpu, &kv, &q, &[span]).remove(0), text)
}

#[test]
fn one_huge_score_takes_its_value_exactly() {
    for cpu in cpus() {
        for (at, low, high) in
            [(0, -1e30, 1e30), (70, 0.0, 1e3), (129, -1e3, 0.0), (3, -1e37, -1e36)]
        {
            let mut sizes = [low; 130];
            sizes[at] = high;
            let (ours, text) = row(&cpu, &sizes);
            assert_eq!(ours, &text.v[at * 16..][..16], "{at} {}", cpu.level);
        }
    }
}

#[test]
fn equal_scores_give_the_mean() {
    for cpu in cpus() {
        for size in [0.0, -1e30, 1e30] {
            let (ours, text) = row(&cpu, &[size; 130]);
            for (i, x) in ours.iter().enumerate() {
                let column = text.v.iter().skip(i).step_by(16);
                let mean = column.clone().map(|v| f64::from(*v)).sum::<f64>() / 130.0;
                // 130 sums and a division, relative to the terms.
                let bound =
                    131.0 * 2f64.powi(-24) * column.map(|v| f64::from(v.abs())).sum::<f64>()
                        / 130.0;
                assert!((f64::from(*x) - mean).abs() <= bound, "{x} for {mean}");
            }
        }
    }
}

#[test]
fn scores_out_of_range_spoil_only_their_own_row() {
    for cpu in cpus() {
        let (model, kv, _, q) = scored(&cpu, &[0.5; 130]);
        let span = Span { pages: &[0, 1, 2], linear: 130, extra: &[], from: 0 };
        let clean = model.attend(&cpu, &kv, &q, &[span]);
        for bad in [f32::MAX, -f32::MAX, f32::INFINITY, f32::NAN] {
            let asked = [vec![bad; 16], q.clone()].concat();
            let rows = model.attend(&cpu, &kv, &asked, &[span, span]);
            assert!(rows[0].iter().all(|x| x.is_nan()), "{bad}");
            assert_eq!(rows[1], clean[0], "{bad}");
        }
    }
}

#[test]
fn what_is_outside_the_store_is_refused() {
    let cpu = &cpus()[0];
    let (model, kv, _, q) = scored(cpu, &[0.5; 130]);
    let good = Span { pages: &[0, 1, 2], linear: 130, extra: &[], from: 0 };
    for (what, span) in [
        ("nothing", Span { from: 130, ..good }),
        ("pages", Span { pages: &[0, 1], ..good }),
        ("outside", Span { pages: &[0, 8, 2], ..good }),
        ("outside", Span { extra: &[512], ..good }),
    ] {
        let run = || model.attend(cpu, &kv, &q, &[span]);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains(what), "{message}");
    }
}
