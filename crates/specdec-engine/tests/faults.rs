//! A fault inside the engine thread: everybody who waits hears of it, and nobody waits for ever.

mod runs;

use runs::engines::PATIENCE;
use runs::{greedy, tokens};
use specdec_engine::cache::Move;
use specdec_engine::engine::Parts;
use specdec_engine::load::{Gguf, ModelConfig, Tokenizer};
use specdec_engine::memory::MemoryReport;
use specdec_engine::model::{decoder::Decoder, rows::Step, weights::Weights};
use specdec_engine::ops::cpu::{CpuOps, CpuSizes};
use specdec_engine::ops::{Memory, Ops};
use specdec_engine::{Engine, EngineError, Event, RequestHandle};
use specdec_kernels::{Cpu, KvType, PoolError};
use specdec_testkit::gguf::TinyModel;
use std::sync::Arc;

/// A device that works for some passes and then does not.
struct Failing {
    device: CpuOps,
    passes: usize,
    panics: bool,
}

impl Ops for Failing {
    fn embed(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        match self.passes.checked_sub(1) {
            Some(left) => self.passes = left,
            None if self.panics => panic!("a bug in the device"),
            None => return Err(PoolError::Panicked { message: "in a tile".to_owned() }.into()),
        }
        self.device.embed(step)
    }

    fn config(&self) -> &ModelConfig {
        self.device.config()
    }
    fn max_rows(&self) -> usize {
        self.device.max_rows()
    }
    fn max_logits(&self) -> usize {
        self.device.max_logits()
    }
    fn pages(&self) -> usize {
        self.device.pages()
    }
    fn qkv(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.qkv(layer, step)
    }
    fn rope_append(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.rope_append(layer, step)
    }
    fn attend(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.attend(layer, step)
    }
    fn attention_out(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.attention_out(layer, step)
    }
    fn gate_up(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.gate_up(layer, step)
    }
    fn down(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.down(layer, step)
    }
    fn keep_hidden(&mut self, index: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.keep_hidden(index, step)
    }
    fn head(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        self.device.head(step)
    }
    fn logits(&self) -> &[f32] {
        self.device.logits()
    }
    fn hidden(&self, index: usize) -> &[f32] {
        self.device.hidden(index)
    }
    fn move_slots(&mut self, moves: &[Move]) -> Result<(), EngineError> {
        self.device.move_slots(moves)
    }
    fn slot_bytes(&self, slot: u32) -> Result<Vec<u8>, EngineError> {
        self.device.slot_bytes(slot)
    }
    fn memory(&self) -> Memory {
        self.device.memory()
    }
}

fn device(file: &Gguf, logits: usize) -> Result<CpuOps, EngineError> {
    let config = ModelConfig::from_gguf(file.header()).unwrap();
    let sizes =
        CpuSizes { rows: 64, logits, hidden: 0, captures: 0, pages: 64, kv_type: KvType::F16 };
    let mut ignored = |_, _| ();
    let mut weights = Weights::new(file, &mut ignored);
    CpuOps::load(Cpu::new(1).unwrap(), &config, &mut weights, sizes)
}

fn engine(passes: usize, panics: bool) -> Engine {
    let file = Gguf::open(TinyModel::llama().temp_file()).unwrap();
    let device = device(&file, 8).unwrap();
    let ops = Box::new(Failing { device, passes, panics });
    Engine::start(Parts {
        decoder: Decoder::new(ops, Vec::new()).unwrap(),
        tokenizer: Arc::new(Tokenizer::from_gguf(file.header()).unwrap()),
        template: None,
        max_model_len: 256,
        max_num_seqs: 2,
        max_queued: 8,
        seed: 0,
        speculation: None,
        drafter: None,
        memory: MemoryReport::default(),
    })
    .unwrap()
}

/// How a request ends that cannot end well.
fn end(handle: &RequestHandle) -> EngineError {
    loop {
        match handle.recv_timeout(PATIENCE) {
            Ok(Some(Event::Chunk(_))) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => return error,
        }
    }
}

#[test]
fn activations_beyond_the_system_s_memory_are_an_error() {
    let file = Gguf::open(TinyModel::llama().temp_file()).unwrap();
    // Beyond what an address of this machine can name, so that no overcommitting grants it.
    let error = device(&file, 1 << 40).map(drop).unwrap_err();
    assert!(matches!(&error, EngineError::Activations { logits, .. } if *logits == 1 << 40));
}

#[test]
fn a_fault_reaches_every_request_with_its_words_and_closes_the_door() {
    for (panics, words) in [(true, "a bug in the device"), (false, "in a tile")] {
        let engine = engine(3, panics);
        let prompt = tokens(1, 4, TinyModel::llama().vocab);
        // Two run, one waits.
        let handles: Vec<RequestHandle> =
            (0..3).filter_map(|_| engine.submit(prompt.clone(), greedy(100)).ok()).collect();
        assert!(!handles.is_empty());
        for handle in &handles {
            let EngineError::Dead { message } = end(handle) else { panic!("not dead") };
            assert!(message.contains(words), "{message}");
        }
        let late = engine.submit(prompt, greedy(1)).map(|_| ());
        assert!(matches!(late, Err(EngineError::Dead { .. })));
        engine.close();
    }
}
