//! The tensors of a tiny model.
//!
//! Deviations are chosen so that every norm's output, query, key and gate is of order 1, attention
//! is moderately peaked (scores of deviation about 2), and layers outweigh the embedding in the
//! residual stream: with a tied head a dominant embedding would only repeat its own token.

use super::{Arch, Format, Noise, Role, Tensor, TinyModel, blocks};

/// Gain of a matrix over `1 / sqrt(columns)`, which would keep the deviation of its input.
fn gain(model: &TinyModel, role: Role) -> f32 {
    match role {
        Role::Output => model.spread,
        Role::TokenEmbd if model.tied => model.spread,
        Role::AttnV => 1.0,
        Role::AttnOutput | Role::FfnDown => 2.0,
        _ => 1.5,
    }
}

/// Deviation of the q, k and v biases: large enough that leaving one out moves every logit.
const BIAS: f32 = 0.3;
/// Deviation of norm weights about 1.
const NORM: f32 = 0.2;

const LAYER: [Role; 7] = [
    Role::AttnQ,
    Role::AttnK,
    Role::AttnV,
    Role::AttnOutput,
    Role::FfnGate,
    Role::FfnUp,
    Role::FfnDown,
];

/// The matrices that the model has.
pub(super) fn roles(model: &TinyModel) -> Vec<Role> {
    let mut roles = vec![Role::TokenEmbd];
    roles.extend(LAYER);
    if !model.tied {
        roles.push(Role::Output);
    }
    roles
}

/// Whether every layer has its own matrix of this role.
pub(super) fn is_layer(role: Role) -> bool {
    LAYER.contains(&role)
}

/// Every tensor, in the order of the file. The recipe has been checked.
pub(super) fn all(model: &TinyModel) -> Vec<Tensor> {
    let mut out = vec![matrix(model, Role::TokenEmbd, "token_embd.weight")];
    for layer in 0..model.layers {
        let name = |part: &str| format!("blk.{layer}.{part}");
        out.push(norm(model, &name("attn_norm.weight")));
        for role in LAYER {
            let part = part_of(role);
            out.push(matrix(model, role, &name(&format!("{part}.weight"))));
            if model.arch == Arch::Qwen2 && matches!(role, Role::AttnQ | Role::AttnK | Role::AttnV)
            {
                let len = model.shape_of(role).0;
                out.push(vector(model, &name(&format!("{part}.bias")), len, 0.0, BIAS));
            }
        }
        out.push(norm(model, &name("ffn_norm.weight")));
    }
    out.push(norm(model, "output_norm.weight"));
    if !model.tied {
        out.push(matrix(model, Role::Output, "output.weight"));
    }
    out
}

fn part_of(role: Role) -> &'static str {
    match role {
        Role::TokenEmbd => "token_embd",
        Role::AttnQ => "attn_q",
        Role::AttnK => "attn_k",
        Role::AttnV => "attn_v",
        Role::AttnOutput => "attn_output",
        Role::FfnGate => "ffn_gate",
        Role::FfnUp => "ffn_up",
        Role::FfnDown => "ffn_down",
        Role::Output => "output",
    }
}

fn matrix(model: &TinyModel, role: Role, name: &str) -> Tensor {
    let (rows, cols) = model.shape_of(role);
    let format = model.format_of(role);
    let sigma = gain(model, role) / (cols as f32).sqrt();
    let data = blocks::random(format, &Noise::new(model.seed, name), rows * cols, sigma);
    Tensor { name: name.to_owned(), dims: vec![cols as u64, rows as u64], format, data }
}

fn norm(model: &TinyModel, name: &str) -> Tensor {
    vector(model, name, model.hidden, 1.0, NORM)
}

fn vector(model: &TinyModel, name: &str, len: usize, mean: f32, sigma: f32) -> Tensor {
    let noise = Noise::new(model.seed, name);
    let data =
        (0..len as u64).flat_map(|i| (mean + sigma * noise.normal(i)).to_le_bytes()).collect();
    Tensor { name: name.to_owned(), dims: vec![len as u64], format: Format::F32, data }
}
