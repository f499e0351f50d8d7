//! The tokenizer against llama.cpp's ids, and against texts meant to break it.

use crate::files::{file, small, strings, tokenizer_of};
use serde::Deserialize;
use specdec_engine::load::{Gguf, LoadError, Specials, Tokenizer};
use specdec_testkit::gguf::{self as kit, Value};

/// The part of a vocabulary that the texts of `cases` can touch, and their ids in llama.cpp.
#[derive(Deserialize)]
struct Vectors {
    #[serde(default = "byte_level")]
    model: String,
    #[serde(default)]
    scores: Vec<f32>,
    pre: String,
    size: usize,
    eos: u32,
    tokens: Vec<(usize, String, i32)>,
    merges: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    content: String,
    parse: Vec<u32>,
    text: Vec<u32>,
}

fn byte_level() -> String {
    "gpt2".to_owned()
}

fn vectors(name: &str) -> Vectors {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    let text = std::fs::read_to_string(format!("{folder}/tokenizer_{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn from_vectors(vectors: &Vectors) -> Tokenizer {
    let mut file = file(&vectors.pre, vectors.size, &vectors.tokens, &vectors.merges);
    file.set("tokenizer.ggml.eos_token_id", Value::U32(vectors.eos));
    if !vectors.scores.is_empty() {
        let mut scores = vec![0.0; vectors.size];
        for ((id, ..), score) in vectors.tokens.iter().zip(&vectors.scores) {
            scores[*id] = *score;
        }
        let scores = scores.into_iter().map(Value::F32).collect();
        file.set("tokenizer.ggml.scores", Value::Array(scores));
        file.set("tokenizer.ggml.add_space_prefix", Value::Bool(false));
        file.set("tokenizer.ggml.add_bos_token", Value::Bool(false));
    }
    file.set("tokenizer.ggml.model", vectors.model.as_str());
    tokenizer_of(&file).unwrap()
}

fn assert_ids(tokenizer: &Tokenizer, cases: &[Case]) {
    assert!(cases.len() >= 200);
    for Case { content, parse, text } in cases {
        assert_eq!(tokenizer.encode(content, Specials::Parse, false), *parse, "{content:?}");
        assert_eq!(tokenizer.encode(content, Specials::AsText, false), *text, "{content:?}");
    }
}

#[test]
fn ids_equal_llama_cpps_on_the_texts_that_matter() {
    for name in ["smollm", "qwen2", "gemma3"] {
        let vectors = vectors(name);
        assert_ids(&from_vectors(&vectors), &vectors.cases);
    }
}

#[test]
fn ids_of_the_whole_model_file_are_the_same() {
    let path = std::env::var_os("SPECDEC_TEST_MODEL_SMOLLM2")
        .expect("SPECDEC_TEST_MODEL_SMOLLM2 must name the smollm2-135m file; `make test` sets it");
    let file = Gguf::open(path).unwrap();
    let tokenizer = Tokenizer::from_gguf(file.header()).unwrap();
    assert_ids(&tokenizer, &vectors("smollm").cases);
    assert_eq!((tokenizer.vocab_size(), tokenizer.bos_id()), (49152, Some(1)));
    let names = ["<|endoftext|>", "<|im_end|>", "<reponame>"];
    let ends: Vec<u32> = names.iter().filter_map(|name| tokenizer.token_id(name)).collect();
    assert_eq!(tokenizer.end_ids(), ends);
}

#[test]
fn decoding_gives_the_text_back() {
    for name in ["qwen2", "gemma3"] {
        let vectors = vectors(name);
        let tokenizer = from_vectors(&vectors);
        for Case { content, parse, text } in &vectors.cases {
            // SentencePiece writes blanks so, and cannot tell them apart.
            let content = if name == "gemma3" { &content.replace('▁', " ") } else { content };
            assert_eq!(tokenizer.decode(parse, false), *content);
            assert_eq!(tokenizer.decode(text, true), *content);
        }
    }
}

#[test]
fn decoding_without_specials_leaves_the_text() {
    let tokenizer = from_vectors(&vectors("qwen2"));
    let ids = tokenizer.encode("a<|im_end|>b<tool_call>", Specials::Parse, false);
    assert_eq!(tokenizer.decode(&ids, true), "ab<tool_call>");
    let end = tokenizer.token_id("<|im_end|>").unwrap();
    assert!(ids.contains(&end) && tokenizer.is_control(end));
    assert_eq!((tokenizer.token_bytes(end), tokenizer.token_bytes(u32::MAX)), (&b""[..], &b""[..]));
}

#[test]
fn text_never_gives_a_control_token() {
    for name in ["smollm", "qwen2", "gemma3"] {
        let vectors = vectors(name);
        let tokenizer = from_vectors(&vectors);
        let specials = vectors.tokens.iter().filter(|token| token.2 == 3);
        let all: Vec<&str> = specials.map(|token| token.1.as_str()).collect();
        let cases = vectors.cases.iter().map(|case| case.content.as_str());
        for text in all.iter().copied().chain([all.concat().as_str()]).chain(cases) {
            let ids = tokenizer.encode(text, Specials::AsText, false);
            assert!(!ids.iter().any(|&id| tokenizer.is_control(id)), "{text:?}");
        }
        assert!(all.len() >= 5, "{name}: {}", all.len());
    }
}

/// A million equal characters of every class. With a cost that grows with the square of the
/// length this takes hours, with recursion it overflows the stack.
#[test]
fn a_million_equal_characters() {
    let vectors = vectors("qwen2");
    let classes: [(&str, &[&str]); 3] = [
        ("qwen2", &["a", " ", "\n", "\r", "=", "\0", "你", "😀", "\u{301}", "\u{a0}"]),
        ("smollm", &["1", " "]),
        ("gpt-2", &["1", "'"]),
    ];
    for (pre, classes) in classes {
        let file = file(pre, vectors.size, &vectors.tokens, &vectors.merges);
        let tokenizer = tokenizer_of(&file).unwrap();
        for class in classes {
            let text = class.repeat(1_000_000);
            let ids = tokenizer.encode(&text, Specials::Parse, false);
            assert!(tokenizer.decode(&ids, false) == text, "{pre} {class:?}");
        }
    }
    let pieces = from_vectors(&self::vectors("gemma3"));
    for class in ["a", " ", "\n", "=", "\0", "你", "😀", "\u{301}", "ab"] {
        let text = class.repeat(1_000_000);
        let ids = pieces.encode(&text, Specials::Parse, false);
        assert!(pieces.decode(&ids, false) == text, "pieces {class:?}");
    }
}

/// Without a token for it, a character is spelt in bytes; without those, it is the unknown one.
#[test]
fn pieces_fall_back_to_bytes_and_then_to_the_unknown_token() {
    let mut tokens = vec![("<unk>", 2), ("▁", 1), ("a", 1), ("▁a", 1), ("<0xC3>", 6)];
    let tokenizer_with = |tokens: &[(&str, i32)], prefix: bool| {
        let numbered = tokens.iter().enumerate();
        let numbered: Vec<_> =
            numbered.map(|(id, (text, kind))| (id, (*text).to_owned(), *kind)).collect();
        let mut file = file("default", tokens.len(), &numbered, &[]);
        file.set("tokenizer.ggml.model", "llama");
        let scores = (0..tokens.len()).map(|id| Value::F32(-(id as f32))).collect();
        file.set("tokenizer.ggml.scores", Value::Array(scores));
        file.set("tokenizer.ggml.unknown_token_id", Value::U32(0));
        file.set("tokenizer.ggml.add_bos_token", Value::Bool(false));
        file.set("tokenizer.ggml.add_space_prefix", Value::Bool(prefix));
        tokenizer_of(&file).unwrap()
    };
    let without = tokenizer_with(&tokens, false);
    assert_eq!(without.encode("é a", Specials::Parse, false), [4, 0, 3]);
    tokens.push(("<0xA9>", 6));
    let with = tokenizer_with(&tokens, true);
    let ids = with.encode("aé", Specials::Parse, false);
    assert_eq!((ids.as_slice(), with.decode(&ids, false)), (&[3, 4, 5][..], "aé".to_owned()));
}

fn texts(tokenizer: &Tokenizer, text: &str, specials: Specials) -> Vec<String> {
    let ids = tokenizer.encode(text, specials, false);
    ids.iter().map(|&id| tokenizer.token_text(id).unwrap().to_owned()).collect()
}

#[test]
fn longest_special_token_wins_and_user_defined_ones_are_always_tokens() {
    let more = [("<a>", 3), ("<a><b>", 3), ("<b>", 3), ("<t>", 4), ("<t><t>", 4)];
    let tokenizer = tokenizer_of(&small("qwen2", &more, &[])).unwrap();
    let parsed = |text| texts(&tokenizer, text, Specials::Parse);
    assert_eq!(parsed("<a><b><b>x<a>"), ["<a><b>", "<b>", "x", "<a>"]);
    assert_eq!(parsed("<t><t><t>"), ["<t><t>", "<t>"]);
    let plain = texts(&tokenizer, "<t>1<a>", Specials::AsText);
    assert_eq!(plain, ["<t>", "1", "<", "a", ">"]);
}

#[test]
fn merges_go_by_rank_then_from_the_left() {
    let more = [("ab", 1), ("bc", 1), ("aa", 1), ("aaaa", 1), ("abc", 1)];
    let tokenizer = tokenizer_of(&small("gpt-2", &more, &["b c", "a b", "a a", "aa aa"])).unwrap();
    let ids = |text| texts(&tokenizer, text, Specials::AsText);
    assert_eq!(ids("abc"), ["a", "bc"]);
    assert_eq!(ids("aaaaaaa"), ["aaaa", "aa", "a"]);
    // `abc` is a token that no merges lead to: only llama-bpe takes words whole.
    let whole = tokenizer_of(&small("llama-bpe", &more, &["b c"]));
    assert!(matches!(whole, Err(LoadError::MissingKey { .. })), "{whole:?}");
    let mut file = small("llama-bpe", &more, &["b c"]);
    file.set("tokenizer.ggml.bos_token_id", Value::U32(0));
    let whole = tokenizer_of(&file).unwrap();
    assert_eq!(texts(&whole, "abc", Specials::AsText), ["abc"]);
    assert!(whole.add_bos());
    assert_eq!(whole.encode("abc", Specials::Parse, true).len(), 2);
}

#[test]
fn ends_are_known_by_name_unless_merges_make_them() {
    let more = [("<|im_end|>", 1), ("</", 1), ("</s", 1), ("</s>", 1), ("<|eot_id|>", 3)];
    let mut file = small("qwen2", &more, &["< /", "</ s", "</s >"]);
    file.set("tokenizer.ggml.eos_token_id", Value::U32(7));
    let tokenizer = tokenizer_of(&file).unwrap();
    assert_eq!(tokenizer.end_ids(), [7, 256, 260]);
    assert!(tokenizer.is_control(256) && !tokenizer.is_control(259));
    assert_eq!(tokenizer.eos_id(), Some(7));
}

#[test]
fn an_absent_pre_tokenizer_is_gpt2s() {
    let mut file = small("gpt-2", &[], &[]);
    assert!(file.remove("tokenizer.ggml.pre"));
    let tokenizer = tokenizer_of(&file).unwrap();
    assert_eq!(tokenizer.encode("ab", Specials::Parse, true).len(), 2);
}

/// A change to a good file, and how the debug form of the error begins.
type Refusal = (fn(&mut kit::Gguf), &'static str);

#[rustfmt::skip]
const REFUSALS: [Refusal; 14] = [
    (|f| f.set("tokenizer.ggml.model", "t5"), r#"Tokenizer { key: "tokenizer.ggml.model", found: "t5""#),
    (|f| f.set("tokenizer.ggml.model", "llama"), r#"MissingKey { key: "tokenizer.ggml.scores""#),
    (|f| f.set("tokenizer.ggml.pre", "tekken"), r#"Tokenizer { key: "tokenizer.ggml.pre", found: "tekken""#),
    (|f| { f.remove("tokenizer.ggml.model"); }, r#"MissingKey { key: "tokenizer.ggml.model""#),
    (|f| { f.remove("tokenizer.ggml.tokens"); }, r#"MissingKey { key: "tokenizer.ggml.tokens""#),
    (|f| { f.remove("tokenizer.ggml.merges"); }, r#"MissingKey { key: "tokenizer.ggml.merges""#),
    (|f| f.set("tokenizer.ggml.merges", "a b"), r#"KeyType { key: "tokenizer.ggml.merges""#),
    (|f| f.set("tokenizer.ggml.merges", strings(["ab".into()])), "Merge { rank: 0"),
    (|f| f.set("tokenizer.ggml.merges", strings(["a b".into(), "a x".into()])), "Merge { rank: 1"),
    (|f| f.set("tokenizer.ggml.tokens", strings(["a".into()])), r#"KeyValue { key: "tokenizer.ggml.token_type""#),
    (|f| f.set("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(6); 257])), "Token { id: 0"),
    (|f| f.set("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(7); 257])), r#"KeyValue { key: "tokenizer.ggml.token_type""#),
    (|f| f.set("tokenizer.ggml.bos_token_id", Value::U32(257)), r#"KeyValue { key: "tokenizer.ggml.bos_token_id""#),
    (|f| f.set("tokenizer.ggml.eot_token_id", Value::U32(u32::MAX)), r#"KeyValue { key: "tokenizer.ggml.eot_token_id""#),
];

#[test]
fn what_cannot_be_right_is_refused() {
    for (change, expected) in REFUSALS {
        let mut file = small("qwen2", &[("ab", 1)], &["a b"]);
        tokenizer_of(&file).unwrap();
        change(&mut file);
        let error = format!("{:?}", tokenizer_of(&file).unwrap_err());
        assert!(error.starts_with(expected), "{error} instead of {expected}");
    }
}

#[test]
fn a_token_written_twice_or_too_long_is_refused() {
    let long = "x".repeat(5000);
    for (text, reason) in [("ab", "earlier"), (long.as_str(), "longer")] {
        let file = small("qwen2", &[("ab", 1), (text, 4)], &[]);
        let error = tokenizer_of(&file).unwrap_err();
        let fits =
            matches!(&error, LoadError::Token { id: 257, reason: found } if found.contains(reason));
        assert!(fits, "{error:?}");
    }
}
