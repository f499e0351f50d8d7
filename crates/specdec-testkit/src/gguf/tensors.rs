//! The tensors of a tiny model.
//!
//! Deviations are chosen so that every norm's output, query, key and gate is of order 1, attention
//! is moderately peaked (scores of deviation about 2), and layers outweigh the embedding in the
//! residual stream: with a tied head a dominant embedding would only repeat its own token.

use super::{Arch, Format, Noise, Role, RopeScaling, Tensor, TinyModel, blocks};

/// Gain of a matrix over `1 / sqrt(columns)`, which would keep the deviation of its input.
fn gain(model: &TinyModel, role: Role) -> f32 {
    match role {
        Role::Output => model.spread,
        // Its embeddings are multiplied by the root of their width.
        Role::TokenEmbd if model.arch == Arch::Gemma3 => model.spread,
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

/// Deviation of the additions to gemma's norms, about 0 as trained ones are in their files.
const POST_NORM: f32 = 0.5;

/// The matrices of a layer.
fn layer_roles(arch: Arch) -> Vec<Role> {
    use Role::{AttnK, AttnOutput, AttnQ, AttnQkv, AttnV, FfnDown, FfnGate, FfnGateUp, FfnUp};
    match arch {
        Arch::Phi3 => vec![AttnQkv, AttnOutput, FfnGateUp, FfnDown],
        _ => vec![AttnQ, AttnK, AttnV, AttnOutput, FfnGate, FfnUp, FfnDown],
    }
}

/// The matrices that the model has.
pub(super) fn roles(model: &TinyModel) -> Vec<Role> {
    let mut roles = vec![Role::TokenEmbd];
    roles.extend(layer_roles(model.arch));
    if !model.tied {
        roles.push(Role::Output);
    }
    roles
}

/// Whether every layer has its own matrix of this role.
pub(super) fn is_layer(role: Role) -> bool {
    !matches!(role, Role::TokenEmbd | Role::Output)
}

/// Every tensor, in the order of the file. The recipe has been checked.
pub(super) fn all(model: &TinyModel) -> Vec<Tensor> {
    let mut out = vec![matrix(model, Role::TokenEmbd, "token_embd.weight")];
    for layer in 0..model.layers {
        push_layer(model, layer, &mut out);
    }
    out.push(norm(model, "output_norm.weight"));
    if !model.tied {
        out.push(matrix(model, Role::Output, "output.weight"));
    }
    out.extend(rope_factors(model));
    out
}

fn push_layer(model: &TinyModel, layer: usize, out: &mut Vec<Tensor>) {
    let name = |part: &str| format!("blk.{layer}.{part}");
    out.push(norm(model, &name("attn_norm.weight")));
    for role in layer_roles(model.arch) {
        let part = part_of(role);
        out.push(matrix(model, role, &name(&format!("{part}.weight"))));
        if model.arch == Arch::Qwen2 && matches!(role, Role::AttnQ | Role::AttnK | Role::AttnV) {
            let len = model.shape_of(role).0;
            out.push(vector(model, &name(&format!("{part}.bias")), len, 0.0, BIAS));
        }
    }
    if matches!(model.arch, Arch::Qwen3 | Arch::Gemma3) {
        for part in ["attn_q_norm.weight", "attn_k_norm.weight"] {
            out.push(vector(model, &name(part), model.head_dim, 1.0, NORM));
        }
    }
    if model.arch == Arch::Gemma3 {
        for part in ["post_attention_norm.weight", "post_ffw_norm.weight"] {
            out.push(vector(model, &name(part), model.hidden, 1.0, POST_NORM));
        }
    }
    out.push(norm(model, &name("ffn_norm.weight")));
}

/// Llama 3.1's divisors as its converter computes them, in a tensor of their own.
fn rope_factors(model: &TinyModel) -> Option<Tensor> {
    let Some(RopeScaling::Llama3 {
        factor,
        low_freq_factor: low,
        high_freq_factor: high,
        original_max_position_embeddings: original,
    }) = model.rope_scaling
    else {
        return None;
    };
    let (factor, low, high) = (f64::from(factor), f64::from(low), f64::from(high));
    let divisor = |pair: usize| {
        let exponent = 2.0 * pair as f64 / model.head_dim as f64;
        let wavelength = std::f64::consts::TAU * f64::from(model.rope_base).powf(exponent);
        if wavelength < original as f64 / high {
            1.0
        } else if wavelength > original as f64 / low {
            factor
        } else {
            let smooth = (original as f64 / wavelength - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    };
    let pairs = model.head_dim / 2;
    let data = (0..pairs).flat_map(|pair| (divisor(pair) as f32).to_le_bytes()).collect();
    let (name, dims) = ("rope_freqs.weight".to_owned(), vec![pairs as u64]);
    Some(Tensor { name, dims, format: Format::F32, data })
}

fn part_of(role: Role) -> &'static str {
    match role {
        Role::TokenEmbd => "token_embd",
        Role::AttnQ => "attn_q",
        Role::AttnK => "attn_k",
        Role::AttnV => "attn_v",
        Role::AttnQkv => "attn_qkv",
        Role::AttnOutput => "attn_output",
        Role::FfnGate => "ffn_gate",
        Role::FfnUp | Role::FfnGateUp => "ffn_up",
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
