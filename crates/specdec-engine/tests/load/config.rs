//! Configurations: what is read, and every contradiction refused before a tensor is.

use specdec_engine::load::{
    LoadError, ModelConfig, Tokenizer,
    config::{Architecture, Gate, Role, RopeKind, RopeScaling, Shape, Window},
    gguf::Header,
};
use specdec_testkit::gguf::{Fault, Format, Gguf, Tensor, TinyModel, Value};

fn config_of(file: &Gguf) -> Result<ModelConfig, LoadError> {
    ModelConfig::from_gguf(&Header::read(file.to_bytes().as_slice())?)
}

#[test]
fn sizes_are_read() {
    let config = config_of(&TinyModel::llama().gguf().unwrap()).unwrap();
    let expected = ModelConfig {
        architecture: Architecture::Llama,
        layers: 2,
        hidden: 64,
        ffn: 128,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        vocab: 300,
        context_length: 512,
        rms_eps: 1e-5,
        rope_base: 10_000.0,
        rope_kind: RopeKind::Pairs,
        rope_scaling: RopeScaling::None,
        window: None,
        attention_scale: 0.25,
        embedding_scale: 1.0,
        gate: Gate::Silu,
        head_norms: false,
        post_norms: false,
        fused: false,
        qkv_bias: false,
        tied_embeddings: true,
    };
    assert_eq!(config, expected);
    let config = config_of(&TinyModel::qwen2().gguf().unwrap()).unwrap();
    assert_eq!((config.rope_kind, config.qkv_bias), (RopeKind::Halves, true));
    assert_eq!((config.tied_embeddings, config.rope_base), (false, 1e6));
}

#[test]
fn the_table_names_every_tensor_of_the_file_once() {
    for model in TinyModel::families() {
        let file = model.gguf().unwrap();
        let specs = config_of(&file).unwrap().tensors();
        assert_eq!(specs.len(), file.tensors.len());
        for spec in &specs {
            let tensor = file.tensors.iter().find(|tensor| tensor.name == spec.name).unwrap();
            assert_eq!(tensor.dims, spec.shape.dims());
            assert_eq!(spec.layer.is_some(), spec.name.starts_with("blk."));
        }
    }
    let specs = config_of(&TinyModel::qwen2().gguf().unwrap()).unwrap().tensors();
    let key = specs.iter().find(|spec| spec.name == "blk.1.attn_k.weight").unwrap();
    assert_eq!((key.role, key.layer), (Role::Key, Some(1)));
    assert_eq!(key.shape, Shape::Matrix { rows: 32, cols: 64 });
}

#[test]
fn a_head_need_not_be_hidden_over_heads() {
    let model = TinyModel { head_dim: 32, ..TinyModel::llama() };
    assert_eq!(config_of(&model.gguf().unwrap()).unwrap().head_dim, 32);
}

fn tensor(name: &str, dims: &[u64]) -> Tensor {
    let bytes = dims.iter().product::<u64>() as usize * 4;
    Tensor { name: name.to_owned(), dims: dims.to_vec(), format: Format::F32, data: vec![0; bytes] }
}

/// A change to a good llama file, and how the debug form of the error begins.
type Refusal = (fn(&mut Gguf), &'static str);

#[rustfmt::skip]
const REFUSALS: [Refusal; 44] = [
    (|f| { f.remove("general.architecture"); }, r#"MissingKey { key: "general.architecture""#),
    (|f| f.set("general.architecture", "mamba"), r#"Architecture { found: "mamba", supported: "llama, qwen2, qwen3, gemma3, phi3""#),
    (|f| f.set("general.architecture", Value::U32(1)), r#"KeyType { key: "general.architecture""#),
    (|f| { f.remove("llama.block_count"); }, r#"MissingKey { key: "llama.block_count""#),
    (|f| f.set("llama.block_count", "2"), r#"KeyType { key: "llama.block_count""#),
    (|f| f.set("llama.block_count", Value::F32(2.0)), r#"KeyType { key: "llama.block_count""#),
    (|f| f.set("llama.block_count", Value::U32(0)), r#"KeyValue { key: "llama.block_count""#),
    (|f| f.set("llama.block_count", Value::U32(1025)), r#"KeyValue { key: "llama.block_count""#),
    (|f| f.set("llama.block_count", Value::U64(u64::MAX)), r#"KeyType { key: "llama.block_count""#),
    (|f| f.set("llama.block_count", Value::U32(3)), r#"MissingTensor { name: "blk.2.attn_norm.weight""#),
    (|f| f.set("llama.block_count", Value::U32(1)), r#"UnknownTensor { name: "blk.1."#),
    (|f| f.set("llama.embedding_length", Value::U32(0)), r#"KeyValue { key: "llama.embedding_length""#),
    (|f| f.set("llama.embedding_length", Value::U32(128)), r#"KeyValue { key: "llama.rope.dimension_count""#),
    (|f| f.set("llama.feed_forward_length", Value::U32(64)), r#"TensorShape { name: "blk.0.ffn_gate.weight""#),
    (|f| f.set("llama.attention.head_count", Value::U32(0)), r#"KeyValue { key: "llama.attention.head_count""#),
    (|f| f.set("llama.attention.head_count", Value::Array(vec![Value::U32(4); 2])), r#"KeyType { key: "llama.attention.head_count""#),
    (|f| f.set("llama.attention.head_count_kv", Value::U32(0)), r#"KeyValue { key: "llama.attention.head_count_kv""#),
    (|f| f.set("llama.attention.head_count_kv", Value::U32(3)), r#"KeyValue { key: "llama.attention.head_count_kv""#),
    (|f| f.set("llama.attention.head_count_kv", Value::U32(8)), r#"KeyValue { key: "llama.attention.head_count_kv""#),
    (|f| { f.remove("llama.attention.key_length"); f.set("llama.embedding_length", Value::U32(65)); }, r#"KeyValue { key: "llama.embedding_length""#),
    (|f| f.set("llama.attention.key_length", Value::U32(8)), r#"KeyValue { key: "llama.attention.key_length""#),
    (|f| f.set("llama.attention.key_length", Value::U32(24)), r#"KeyValue { key: "llama.attention.key_length""#),
    (|f| f.set("llama.attention.key_length", Value::U32(512)), r#"KeyValue { key: "llama.attention.key_length""#),
    (|f| f.set("llama.attention.value_length", Value::U32(32)), r#"KeyValue { key: "llama.attention.value_length""#),
    (|f| f.set("llama.rope.dimension_count", Value::U32(8)), r#"KeyValue { key: "llama.rope.dimension_count""#),
    (|f| f.set("llama.context_length", Value::U32(0)), r#"KeyValue { key: "llama.context_length""#),
    (|f| f.set("llama.attention.layer_norm_rms_epsilon", Value::F32(0.0)), r#"KeyValue { key: "llama.attention.layer_norm_rms_epsilon""#),
    (|f| f.set("llama.attention.layer_norm_rms_epsilon", Value::F32(f32::NAN)), r#"KeyValue { key: "llama.attention.layer_norm_rms_epsilon""#),
    (|f| { f.remove("llama.attention.layer_norm_rms_epsilon"); }, r#"MissingKey { key: "llama.attention.layer_norm_rms_epsilon""#),
    (|f| f.set("llama.rope.freq_base", Value::F32(f32::INFINITY)), r#"KeyValue { key: "llama.rope.freq_base""#),
    (|f| f.set("llama.rope.scaling.type", "longrope"), r#"Unsupported { field: "llama.rope.scaling.type", found: "\"longrope\"""#),
    (|f| f.set("llama.rope.scaling.type", "yarn"), r#"MissingKey { key: "llama.rope.scaling.factor""#),
    (|f| f.set("llama.rope.scaling.factor", Value::F32(-2.0)), r#"KeyValue { key: "llama.rope.scaling.factor""#),
    (|f| f.set("llama.rope.scale_linear", Value::F32(f32::NAN)), r#"KeyValue { key: "llama.rope.scale_linear""#),
    (|f| f.set("llama.attention.sliding_window", "4096"), r#"KeyType { key: "llama.attention.sliding_window""#),
    (|f| f.tensors.push(tensor("rope_factors_long.weight", &[8])), r#"Unsupported { field: "rope_factors_long.weight""#),
    (|f| f.tensors.push(tensor("rope_freqs.weight", &[9])), r#"TensorShape { name: "rope_freqs.weight""#),
    (|f| f.set("llama.expert_count", Value::U32(8)), r#"Unsupported { field: "llama.expert_count", found: "8""#),
    (|f| f.tensors.push(tensor("blk.0.attn_q_norm.weight", &[16])), r#"UnknownTensor { name: "blk.0.attn_q_norm.weight""#),
    (|f| f.tensors.push(tensor("blk.0.attn_q.bias", &[64])), r#"MissingTensor { name: "blk.0.attn_k.bias""#),
    (|f| { f.remove_tensor("token_embd.weight"); }, r#"MissingTensor { name: "token_embd.weight""#),
    (|f| { f.remove_tensor("output_norm.weight"); }, r#"MissingTensor { name: "output_norm.weight""#),
    (|f| f.tensor_mut("blk.1.attn_q.weight").unwrap().dims = vec![64, 8, 8], r#"TensorShape { name: "blk.1.attn_q.weight""#),
    (|f| f.tensor_mut("token_embd.weight").unwrap().dims = vec![64, 299], r#"KeyValue { key: "tokenizer.ggml.tokens""#),
];

#[test]
fn contradictions_are_refused() {
    for (number, (change, expected)) in REFUSALS.into_iter().enumerate() {
        let mut file = TinyModel::llama().gguf().unwrap();
        change(&mut file);
        let error = format!("{:?}", config_of(&file).unwrap_err());
        assert!(error.starts_with(expected), "{number}: {error} instead of {expected}");
    }
}

#[test]
fn families_say_what_their_layers_are() {
    let gemma = config_of(&TinyModel::gemma3().gguf().unwrap()).unwrap();
    let window = Window { size: 8, every: 6, rope_base: 10_000.0 };
    assert_eq!((gemma.window, gemma.gate, gemma.embedding_scale), (Some(window), Gate::Gelu, 8.0));
    assert!(gemma.head_norms && gemma.post_norms && !gemma.fused);
    let windows: Vec<_> = (0..6).map(|layer| gemma.window_of(layer)).collect();
    assert_eq!(windows, [[Some(8); 5].as_slice(), &[None]].concat());
    let phi = config_of(&TinyModel::phi3().gguf().unwrap()).unwrap();
    assert!(phi.fused && phi.window_of(1) == Some(16));
    let qwen = config_of(&TinyModel::qwen3().gguf().unwrap()).unwrap();
    assert!(qwen.head_norms && !qwen.post_norms && !qwen.qkv_bias);
    let mut file = TinyModel::qwen3().gguf().unwrap();
    file.set("qwen3.attention.sliding_window", Value::U32(64));
    let error = config_of(&file).unwrap_err();
    assert!(matches!(error, LoadError::Unsupported { .. }), "{error:?}");
}

#[test]
fn qwen2_needs_its_biases() {
    let mut file = TinyModel::qwen2().gguf().unwrap();
    assert!(file.remove_tensor("blk.1.attn_v.bias"));
    let error = config_of(&file).unwrap_err();
    assert!(matches!(&error, LoadError::MissingTensor { name } if name == "blk.1.attn_v.bias"));
}

#[test]
fn values_that_change_nothing_are_accepted() {
    let mut file = TinyModel::llama().gguf().unwrap();
    file.set("llama.rope.scaling.type", "linear");
    file.set("llama.rope.scaling.factor", Value::F32(1.0));
    file.set("llama.expert_count", Value::U32(0));
    file.set("llama.rope.dimension_count", Value::U32(16));
    file.set("llama.attention.head_count", Value::U64(4));
    config_of(&file).unwrap();
    file.remove("llama.rope.freq_base");
    file.remove("llama.attention.head_count_kv");
    let config = config_of(&file);
    // Without the key there are as many key heads as query heads, which these tensors are not.
    assert!(matches!(config, Err(LoadError::TensorShape { .. })), "{config:?}");
}

/// Faults of the testkit that lie in what a header says; those in weights are the packer's.
#[test]
fn planted_faults_are_found() {
    for model in [TinyModel::llama(), TinyModel::qwen2_k()] {
        for fault in Fault::ALL {
            let bytes = fault.plant(&model).unwrap();
            let loaded = Header::read(bytes.as_slice()).and_then(|header| {
                ModelConfig::from_gguf(&header)?;
                Tokenizer::from_gguf(&header)
            });
            let in_weights =
                matches!(fault, Fault::NanWeight | Fault::InfiniteWeight | Fault::NanNorm);
            assert_eq!(loaded.is_ok(), in_weights, "{fault:?}: {loaded:?}");
        }
    }
}
