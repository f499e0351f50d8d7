//! The candle device beside the CPU device on what the oracle's vectors do not show: several
//! sequences in one pass, hidden states, and the cache after a path was kept.
#![cfg(feature = "candle")]

use specdec_engine::{
    cache::SeqCache,
    load::{Gguf, ModelConfig},
    model::{decoder::Decoder, rows::Row, weights::Weights},
    ops::{
        Ops,
        candle::{CandleOps, CandleSizes},
        cpu::{CpuOps, CpuSizes},
    },
};
use specdec_kernels::{Cpu, KvType};
use specdec_testkit::gguf::TinyModel;

const CAPTURES: [usize; 3] = [0, 2, 3];
const ROWS: usize = 80;
const PAGES: usize = 4;
/// Two f32 evaluations of such a model differ by a tenth of this.
const BOUND: f32 = 2e-4;

fn decoders(model: &TinyModel) -> [Decoder; 2] {
    let path = model.temp_file();
    let file = Gguf::open(&path).unwrap();
    let config = ModelConfig::from_gguf(file.header()).unwrap();
    let mut progress = |_, _| {};
    let mut weights = Weights::new(&file, &mut progress);
    let (captures, kv_type) = (CAPTURES.len(), KvType::F32);
    let sizes =
        CpuSizes { rows: ROWS, logits: ROWS, hidden: ROWS, captures, pages: PAGES, kv_type };
    let cpu = CpuOps::load(Cpu::new(1).unwrap(), &config, &mut weights, sizes).unwrap();
    let sizes = CandleSizes { rows: ROWS, logits: ROWS, captures, pages: PAGES };
    let candle = CandleOps::load(candle_core::Device::Cpu, &config, &mut weights, sizes).unwrap();
    let devices: [Box<dyn Ops>; 2] = [Box::new(cpu), Box::new(candle)];
    devices.map(|device| Decoder::new(device, CAPTURES.to_vec()).unwrap())
}

fn row(token: u32, seq: usize, parent: Option<usize>) -> Row {
    Row { token, seq, parent, logits: token.is_multiple_of(2), hidden: token.is_multiple_of(3) }
}

/// Two sequences whose rows alternate; then a tree of one beside a chain of the other.
fn passes() -> [Vec<Row>; 2] {
    let parent = |i: usize| i.checked_sub(2);
    let first = (0..30).map(|i| row(7 * i as u32 % 259, i % 2, parent(i))).collect();
    let shape = [(0, None), (0, Some(0)), (1, None), (0, Some(0)), (1, Some(2)), (0, Some(3))];
    let second = (60..).zip(shape).map(|(token, (seq, parent))| row(token, seq, parent)).collect();
    [first, second]
}

/// All that a decoder gives: logits, hidden states and the cache's floats, pass after pass.
fn everything(decoder: &mut Decoder) -> Vec<Vec<f32>> {
    let [mut a, mut b] = [SeqCache::default(), SeqCache::default()];
    let keep: [[Vec<usize>; 2]; 2] =
        [[(0..15).collect(), (0..15).collect()], [vec![0, 2, 3], vec![0]]];
    let mut out = Vec::new();
    for (rows, [path_a, path_b]) in passes().iter().zip(&keep) {
        decoder.forward(&mut [&mut a, &mut b], rows).unwrap();
        for i in 0..rows.len() {
            let states = CAPTURES.iter().map(|&layer| decoder.hidden(layer, i));
            let given = states.chain([decoder.logits(i)]).flatten();
            out.extend(given.map(<[f32]>::to_vec));
        }
        decoder.commit(&mut a, path_a).unwrap();
        decoder.commit(&mut b, path_b).unwrap();
        for cache in [&a, &b] {
            let floats = |bytes: Vec<u8>| {
                bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
            };
            out.extend(decoder.committed_bytes(cache).unwrap().into_iter().map(floats));
        }
    }
    out
}

#[test]
fn candle_and_cpu_agree_on_logits_hidden_states_and_cache() {
    for recipe in [TinyModel::llama(), TinyModel::qwen2()] {
        let model = TinyModel { layers: 3, ..recipe };
        let [cpu, candle] = decoders(&model).map(|mut decoder| everything(&mut decoder));
        assert!(cpu.len() == candle.len() && cpu.len() > 100);
        for (index, (a, b)) in cpu.iter().zip(&candle).enumerate() {
            assert_eq!(a.len(), b.len(), "{index}");
            let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst <= BOUND, "{:?} {index}: {worst}", model.arch);
        }
    }
}
