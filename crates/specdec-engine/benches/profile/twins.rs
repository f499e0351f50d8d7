//! The small operations of a model's shape on their own data.

use specdec_engine::load::{Gguf, ModelConfig};
use specdec_kernels::{Activation, Acts, Cpu, Format, Forms, rms_norm, swiglu};

/// Registers of the widths of one model.
pub(crate) struct Twins {
    x: Vec<f32>,
    weight: Vec<f32>,
    rows: Vec<u32>,
    normed: Acts,
    attended: Acts,
    gate: Vec<f32>,
    activated: Acts,
}

impl Twins {
    pub(crate) fn new(file: &Gguf, config: &ModelConfig, rows: usize) -> Self {
        let acts = |cols, readers: &[&str]| Acts::new(rows, cols, forms(file, readers));
        let normed = ["attn_q.weight", "attn_v.weight", "ffn_gate.weight"];
        let mut twins = Self {
            x: (0..rows * config.hidden).map(|i| (i % 1009) as f32 / 504.5 - 1.0).collect(),
            weight: vec![1.0; config.hidden],
            rows: (0..rows as u32).collect(),
            normed: acts(config.hidden, &normed),
            attended: acts(config.heads * config.head_dim, &["attn_output.weight"]),
            gate: (0..rows * config.ffn).map(|i| (i % 1009) as f32 / 504.5 - 1.0).collect(),
            activated: acts(config.ffn, &["ffn_down.weight"]),
        };
        let attended = twins.attended.rows_mut(rows).iter_mut();
        attended.zip(twins.x.iter().cycle()).for_each(|(to, x)| *to = *x);
        twins
    }

    pub(crate) fn norm(&mut self, cpu: &Cpu, rows: usize) {
        let select = &self.rows[..rows];
        rms_norm(cpu, &self.x, select, &self.weight, 1e-6, &mut self.normed).expect("threads");
    }

    pub(crate) fn quantise(&mut self, cpu: &Cpu, rows: usize) {
        self.attended.quantise(cpu, rows).expect("threads");
    }

    pub(crate) fn activation(&mut self, cpu: &Cpu, rows: usize) {
        let gate = &self.gate[..rows * self.activated.cols()];
        swiglu(cpu, gate, gate, rows, &mut self.activated).expect("threads");
    }
}

/// The quantised forms that tensors of these names read, in any layer.
fn forms(file: &Gguf, readers: &[&str]) -> Forms {
    let mut forms = Forms::default();
    for tensor in file.header().tensors() {
        if !readers.iter().any(|reader| tensor.name.ends_with(reader)) {
            continue;
        }
        match Format::from_ggml(tensor.kind.id).map(Format::activation) {
            Some(Activation::Int8x32) => forms.int8x32 = true,
            Some(Activation::Int8x256) => forms.int8x256 = true,
            _ => {}
        }
    }
    forms
}
