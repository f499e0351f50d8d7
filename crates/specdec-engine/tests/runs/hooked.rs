//! A device that asks before each pass, and an engine on it.

use specdec_engine::cache::Move;
use specdec_engine::engine::Parts;
use specdec_engine::load::{Gguf, ModelConfig, Tokenizer};
use specdec_engine::memory::MemoryReport;
use specdec_engine::model::{decoder::Decoder, rows::Step, weights::Weights};
use specdec_engine::ops::cpu::{CpuOps, CpuSizes};
use specdec_engine::ops::{Memory, Ops};
use specdec_engine::{Engine, EngineError};
use specdec_kernels::{Cpu, KvType};
use specdec_testkit::gguf::TinyModel;
use std::sync::Arc;

/// What happens before a pass.
pub type Before = Box<dyn FnMut() -> Result<(), EngineError> + Send>;

struct Hooked {
    device: CpuOps,
    before: Before,
}

impl Ops for Hooked {
    fn embed(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        (self.before)()?;
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

/// The device of a tiny model.
///
/// # Errors
/// No memory for so many logits.
pub fn device(file: &Gguf, logits: usize) -> Result<CpuOps, EngineError> {
    let config = ModelConfig::from_gguf(file.header()).unwrap();
    let sizes =
        CpuSizes { rows: 64, logits, hidden: 0, captures: 0, pages: 64, kv_type: KvType::F16 };
    let mut ignored = |_, _| ();
    let mut weights = Weights::new(file, &mut ignored);
    CpuOps::load(Cpu::new(1).unwrap(), &config, &mut weights, sizes)
}

/// An engine of a tiny model that runs so many sequences together, beside so many requests that wait.
pub fn engine(max_num_seqs: usize, max_queued: usize, before: Before) -> Engine {
    let file = Gguf::open(TinyModel::llama().temp_file()).unwrap();
    let ops = Box::new(Hooked { device: device(&file, 8).unwrap(), before });
    Engine::start(Parts {
        decoder: Decoder::new(ops, Vec::new()).unwrap(),
        tokenizer: Arc::new(Tokenizer::from_gguf(file.header()).unwrap()),
        template: None,
        max_model_len: 256,
        max_num_seqs,
        max_queued,
        seed: 0,
        speculation: None,
        drafter: None,
        memory: MemoryReport::default(),
    })
    .unwrap()
}
