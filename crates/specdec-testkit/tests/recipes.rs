//! A recipe determines its file; a wrong recipe is an error that says why.

use std::process::Command;

use specdec_testkit::gguf::{
    Case, Fault, Format, Greedy, RecipeError, Role, TinyModel, read_vectors,
};

#[test]
fn a_recipe_is_its_file() {
    let model = TinyModel::qwen2_k();
    let bytes = model.gguf().unwrap().to_bytes();
    let json = serde_json::to_string(&model).unwrap();
    let again: TinyModel = serde_json::from_str(&json).unwrap();
    assert_eq!(again.gguf().unwrap().to_bytes(), bytes);
    assert_ne!(TinyModel { seed: 2, ..model }.gguf().unwrap().to_bytes(), bytes);
}

#[test]
fn another_layer_leaves_the_tensors_before_it_alone() {
    let two = TinyModel::llama().gguf().unwrap();
    let three = TinyModel { layers: 3, ..TinyModel::llama() }.gguf().unwrap();
    for tensor in &two.tensors {
        assert!(three.tensors.contains(tensor), "{}", tensor.name);
    }
}

#[test]
fn wrong_recipes_say_why() {
    let llama = TinyModel::llama;
    let cases = [
        (TinyModel { heads: 0, ..llama() }, "heads is 0"),
        (TinyModel { kv_heads: 3, ..llama() }, "cannot share 3 key heads"),
        (TinyModel { head_dim: 15, ..llama() }, "head_dim is 15"),
        (TinyModel { vocab: 258, ..llama() }, "259 tokens are needed"),
        (TinyModel { vocab: usize::MAX, ..llama() }, "more than"),
        (TinyModel { layers: 1 << 20, ..llama() }, "more than"),
        (TinyModel { format: Format::Q4K, ..llama() }, "not a multiple of the 256"),
    ];
    for (model, reason) in cases {
        let error: RecipeError = model.gguf().unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(serde_json::from_str::<TinyModel>(r#"{"layer": 2}"#).is_err());
}

#[test]
fn the_command_writes_what_the_library_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let run = |extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiny-model"));
        command.args(["--seed", "5", "--format", "q8_0"]).arg("--out").arg(&path);
        command.args(["--formats", r#"{"attn_k": "q5_0"}"#]).args(extra).output().unwrap()
    };
    let mut model = TinyModel { seed: 5, format: Format::Q8_0, ..TinyModel::llama() };
    model.formats.insert(Role::AttnK, Format::Q5_0);
    assert!(run(&[]).status.success());
    assert_eq!(std::fs::read(&path).unwrap(), model.gguf().unwrap().to_bytes());
    assert!(run(&["--fault", "nan-norm"]).status.success());
    assert_eq!(std::fs::read(&path).unwrap(), Fault::NanNorm.plant(&model).unwrap());
    let refused = run(&["--layers", "none"]);
    assert!(!refused.status.success() && !refused.stderr.is_empty());
}

#[test]
fn committed_cases_fit_their_models() {
    let files = [
        "tiny_llama",
        "tiny_qwen2",
        "tiny_qwen3",
        "tiny_gemma3",
        "tiny_phi3",
        "tiny_mistral",
        "tiny_rope",
        "tiny_quant",
    ];
    for file in files {
        for case in read_vectors::<Case>(file) {
            assert!(case.recipe.gguf().is_ok(), "{}", case.name);
            let rows = case.rounds.iter().flat_map(|round| &round.logits);
            let vocab = case.recipe.vocab;
            assert!(rows.chain(&case.prompt_logits).all(|row| row.len() == vocab), "{}", case.name);
            for round in &case.rounds {
                let nodes = round.tokens.len();
                assert_eq!((round.parents.len(), round.logits.len()), (nodes, nodes));
            }
        }
    }
    for file in ["greedy_smollm2", "greedy_qwen1.5b"] {
        let cases = read_vectors::<Greedy>(file);
        assert_eq!(cases.len(), 10);
        assert!(cases.iter().all(|case| case.token_ids.len() == 32 && case.gaps.len() == 32));
    }
}
