//! Tensor names of transformers as those of GGUF.

/// Parts of a layer, theirs and ours. Gemma 3 has two more norms and calls one of them as others
/// call the norm before the feed-forward layer.
const LAYER: [(&str, &str); 16] = [
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.o_proj", "attn_output"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("self_attn.dense", "attn_output"),
];

const TOP: [(&str, &str); 3] = [
    ("model.embed_tokens.weight", "token_embd.weight"),
    ("model.norm.weight", "output_norm.weight"),
    ("lm_head.weight", "output.weight"),
];

/// Our name of a tensor; their own, which no architecture knows, where there is none.
pub(super) fn ours(theirs: &str, arch: &str) -> String {
    if let Some((_, name)) = TOP.iter().find(|(name, _)| *name == theirs) {
        return (*name).to_owned();
    }
    layer_part(theirs, arch).unwrap_or_else(|| theirs.to_owned())
}

fn layer_part(theirs: &str, arch: &str) -> Option<String> {
    let (layer, part) = theirs.strip_prefix("model.layers.")?.split_once('.')?;
    let number: usize = layer.parse().ok()?;
    let (part, kind) = part.rsplit_once('.')?;
    let name = match part {
        "post_attention_layernorm" if arch == "gemma3" => "post_attention_norm",
        _ => LAYER.iter().find(|(name, _)| *name == part)?.1,
    };
    (number.to_string() == layer).then(|| format!("blk.{number}.{name}.{kind}"))
}

/// Buffers that old files keep beside the weights; they are computed here.
pub(super) fn is_buffer(theirs: &str) -> bool {
    theirs.ends_with(".rotary_emb.inv_freq")
}
