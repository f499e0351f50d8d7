//! What a tiny model is made of. A recipe and its seed determine the file byte for byte.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use super::{Format, Gguf, tensors, vocabulary::Vocabulary};

/// The decoder families a tiny model can belong to.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// No biases; the rows of q and k are stored for rotation of adjacent pairs (2i, 2i + 1).
    Llama,
    /// Biases on q, k and v; rotation of halves (i, i + d/2).
    Qwen2,
    /// Norms on the heads of q and k; rotation of halves.
    Qwen3,
    /// As `Qwen3`, with norms behind both halves of a layer and a window on five layers of six.
    Gemma3,
    /// One matrix for q, k and v and one for gate and up; rotation of halves.
    Phi3,
}

impl Arch {
    /// The value of `general.architecture` and the prefix of the model's own keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Gemma3 => "gemma3",
            Self::Phi3 => "phi3",
        }
    }
}

/// The matrices of a decoder, named as GGUF names them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the format's own")]
pub enum Role {
    TokenEmbd,
    AttnQ,
    AttnK,
    AttnV,
    AttnQkv,
    AttnOutput,
    FfnGate,
    FfnUp,
    FfnGateUp,
    FfnDown,
    Output,
}

/// Stretched rotary angles, in the words of transformers' `rope_parameters`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are the format's own")]
pub enum RopeScaling {
    Linear {
        factor: f32,
    },
    Llama3 {
        factor: f32,
        low_freq_factor: f32,
        high_freq_factor: f32,
        original_max_position_embeddings: usize,
    },
    Yarn {
        factor: f32,
        original_max_position_embeddings: usize,
    },
}

/// A recipe. In JSON, a field left out has the value of [`TinyModel::llama`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TinyModel {
    /// Family.
    pub arch: Arch,
    /// Selects the weights.
    pub seed: u64,
    /// Decoder layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head, even. Need not be `hidden / heads`.
    pub head_dim: usize,
    /// Width of the feed-forward layer.
    pub ffn: usize,
    /// Tokens: three specials, 256 bytes, merges, then unused padding tokens.
    pub vocab: usize,
    /// Whether the output head is the embedding matrix.
    pub tied: bool,
    /// Base of the rotary frequencies.
    pub rope_base: f32,
    /// How rotary angles are stretched.
    pub rope_scaling: Option<RopeScaling>,
    /// Positions that a layer with a window sees.
    pub window: Option<usize>,
    /// Longest context that the file declares.
    pub context: usize,
    /// Epsilon of the RMS norms.
    pub norm_eps: f32,
    /// Pre-tokenizer name; the family's own (`smollm`, `qwen2`) where absent.
    pub pre: Option<String>,
    /// Standard deviation of the logits of one row: about 2.5 gives a top-2 gap near 1, larger
    /// values give peaked laws, 0 a uniform one.
    pub spread: f32,
    /// Format of every matrix that `formats` does not name.
    pub format: Format,
    /// Formats by role.
    pub formats: BTreeMap<Role, Format>,
}

/// Why a recipe cannot be cooked.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RecipeError {
    /// A size that must be positive is not.
    #[error("{field} is 0; give at least 1")]
    Zero {
        /// The recipe's field.
        field: &'static str,
    },
    /// Heads that cannot be grouped.
    #[error("{heads} query heads cannot share {kv_heads} key heads; give a multiple")]
    Heads {
        /// Query heads.
        heads: usize,
        /// Key and value heads.
        kv_heads: usize,
    },
    /// A head that rotary pairs do not fill.
    #[error("head_dim is {head_dim}; rotary embedding needs an even number")]
    HeadDim {
        /// Width of one head.
        head_dim: usize,
    },
    /// A vocabulary without room for every byte.
    #[error("vocab is {vocab}; {least} tokens are needed for the specials and the bytes")]
    Vocab {
        /// Tokens asked for.
        vocab: usize,
        /// Fewest possible.
        least: usize,
    },
    /// Rows that are no whole number of blocks.
    #[error("{role:?} has rows of {cols}, not a multiple of the {block} of {format:?}")]
    Blocks {
        /// The matrix.
        role: Role,
        /// Its columns.
        cols: usize,
        /// Its format.
        format: Format,
        /// The format's block length.
        block: usize,
    },
    /// More weights than anything tiny has.
    #[error("the recipe has more than {limit} weights; make it smaller")]
    TooLarge {
        /// Largest number of weights.
        limit: usize,
    },
}

/// 2^28 weights are 1 GiB in f32.
const MAX_WEIGHTS: usize = 1 << 28;

impl Default for TinyModel {
    fn default() -> Self {
        Self::llama()
    }
}

impl TinyModel {
    /// Two layers of width 64, four query heads on two key heads, tied head, all F32.
    pub fn llama() -> Self {
        Self {
            arch: Arch::Llama,
            seed: 1,
            layers: 2,
            hidden: 64,
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            ffn: 128,
            vocab: 300,
            tied: true,
            rope_base: 10_000.0,
            rope_scaling: None,
            window: None,
            context: 512,
            norm_eps: 1e-5,
            pre: None,
            spread: 2.5,
            format: Format::F32,
            formats: BTreeMap::new(),
        }
    }

    /// The same sizes with qwen2's biases, rotation and constants, and a head of its own.
    pub fn qwen2() -> Self {
        let llama = Self::llama();
        Self { arch: Arch::Qwen2, tied: false, rope_base: 1e6, norm_eps: 1e-6, ..llama }
    }

    /// Every matrix in `Q4_1` but a tied embedding in `Q8_0`, as in a 4-bit file of a small llama.
    pub fn llama_q4_1() -> Self {
        let formats = BTreeMap::from([(Role::TokenEmbd, Format::Q8_0)]);
        Self { format: Format::Q4_1, formats, ..Self::llama() }
    }

    /// Width 256, `Q4_K` with `Q6_K` for values, down projection and head, as in a `Q4_K_M` file.
    pub fn qwen2_k() -> Self {
        let q6 = [Role::AttnV, Role::FfnDown, Role::Output].map(|role| (role, Format::Q6K));
        Self {
            hidden: 256,
            heads: 8,
            head_dim: 32,
            ffn: 512,
            format: Format::Q4K,
            formats: BTreeMap::from(q6),
            ..Self::qwen2()
        }
    }

    /// Norms on the heads of q and k.
    pub fn qwen3() -> Self {
        Self { arch: Arch::Qwen3, ..Self::qwen2() }
    }

    /// Six layers with a window of 8 on five of them, and gelu.
    pub fn gemma3() -> Self {
        let (layers, window, base) = (6, Some(8), 1e6);
        let llama = Self::llama();
        Self { arch: Arch::Gemma3, layers, window, rope_base: base, norm_eps: 1e-6, ..llama }
    }

    /// Fused projections and a window of 16.
    pub fn phi3() -> Self {
        Self { arch: Arch::Phi3, window: Some(16), tied: false, ..Self::llama() }
    }

    /// One of each family.
    pub fn families() -> [Self; 5] {
        [Self::llama(), Self::qwen2(), Self::qwen3(), Self::gemma3(), Self::phi3()]
    }

    /// The format of the matrix `role`.
    pub fn format_of(&self, role: Role) -> Format {
        self.formats.get(&role).copied().unwrap_or(self.format)
    }

    /// Rows and columns of the matrix `role`.
    pub fn shape_of(&self, role: Role) -> (usize, usize) {
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        match role {
            Role::TokenEmbd | Role::Output => (self.vocab, self.hidden),
            Role::AttnQ => (q, self.hidden),
            Role::AttnK | Role::AttnV => (kv, self.hidden),
            Role::AttnQkv => (q + 2 * kv, self.hidden),
            Role::AttnOutput => (self.hidden, q),
            Role::FfnGate | Role::FfnUp => (self.ffn, self.hidden),
            Role::FfnGateUp => (2 * self.ffn, self.hidden),
            Role::FfnDown => (self.hidden, self.ffn),
        }
    }

    /// The whole model as a file in memory.
    ///
    /// # Errors
    /// When the sizes do not fit each other or a format.
    pub fn gguf(&self) -> Result<Gguf, RecipeError> {
        self.check()?;
        let mut file = Gguf::default();
        self.describe(&mut file);
        Vocabulary::new(self.arch, self.vocab).describe(&mut file, self.pre());
        file.tensors = tensors::all(self);
        Ok(file)
    }

    /// The model as a temporary file that is deleted with the returned path.
    ///
    /// # Panics
    /// When the recipe is wrong or the file cannot be written: only tests call this.
    pub fn temp_file(&self) -> TempPath {
        let file = self.gguf().unwrap_or_else(|error| panic!("{error}"));
        super::temp_file_of(&file.to_bytes())
    }

    fn pre(&self) -> &str {
        self.pre.as_deref().unwrap_or(match self.arch {
            Arch::Llama | Arch::Phi3 | Arch::Gemma3 => "smollm",
            Arch::Qwen2 | Arch::Qwen3 => "qwen2",
        })
    }

    fn check(&self) -> Result<(), RecipeError> {
        let sizes = [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("ffn", self.ffn),
        ];
        if let Some((field, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(RecipeError::Zero { field });
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(RecipeError::Heads { heads: self.heads, kv_heads: self.kv_heads });
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(RecipeError::HeadDim { head_dim: self.head_dim });
        }
        if self.vocab < Vocabulary::LEAST {
            return Err(RecipeError::Vocab { vocab: self.vocab, least: Vocabulary::LEAST });
        }
        self.check_matrices()
    }

    fn check_matrices(&self) -> Result<(), RecipeError> {
        let too_large = RecipeError::TooLarge { limit: MAX_WEIGHTS };
        let in_range = |n: &usize| *n <= MAX_WEIGHTS;
        let sides = [self.hidden, self.heads, self.head_dim, self.ffn, self.vocab, self.layers];
        if !sides.iter().all(|side| *side <= 1 << 20) {
            return Err(too_large);
        }
        let mut weights = 0_usize;
        for role in tensors::roles(self) {
            let (rows, cols) = self.shape_of(role);
            let format = self.format_of(role);
            let block = format.block_len();
            if !cols.is_multiple_of(block) {
                return Err(RecipeError::Blocks { role, cols, format, block });
            }
            let copies = if tensors::is_layer(role) { self.layers } else { 1 };
            weights = rows
                .checked_mul(cols)
                .and_then(|n| n.checked_mul(copies))
                .and_then(|n| n.checked_add(weights))
                .filter(in_range)
                .ok_or_else(|| too_large.clone())?;
        }
        Ok(())
    }

    /// Writes the keys that describe the decoder.
    fn describe(&self, file: &mut Gguf) {
        use super::Value::{F32, U32};
        let arch = self.arch.name();
        file.set("general.architecture", arch);
        file.set("general.name", "tiny random model");
        let mut set = |key: &str, value| file.set(&format!("{arch}.{key}"), value);
        set("block_count", U32(self.layers as u32));
        set("context_length", U32(self.context as u32));
        set("embedding_length", U32(self.hidden as u32));
        set("feed_forward_length", U32(self.ffn as u32));
        set("attention.head_count", U32(self.heads as u32));
        set("attention.head_count_kv", U32(self.kv_heads as u32));
        set("rope.freq_base", F32(self.rope_base));
        set("attention.layer_norm_rms_epsilon", F32(self.norm_eps));
        if self.heads * self.head_dim != self.hidden {
            set("attention.key_length", U32(self.head_dim as u32));
            set("attention.value_length", U32(self.head_dim as u32));
        }
        if self.arch == Arch::Llama {
            set("rope.dimension_count", U32(self.head_dim as u32));
            set("vocab_size", U32(self.vocab as u32));
        }
        if let Some(window) = self.window {
            set("attention.sliding_window", U32(window as u32));
        }
        self.describe_rope(&mut set);
        file.set("general.quantization_version", U32(2));
    }

    fn describe_rope(&self, set: &mut impl FnMut(&str, super::Value)) {
        use super::Value::{F32, U32};
        match &self.rope_scaling {
            Some(RopeScaling::Linear { factor }) => {
                set("rope.scaling.type", "linear".into());
                set("rope.scaling.factor", F32(*factor));
            }
            Some(RopeScaling::Yarn { factor, original_max_position_embeddings: original }) => {
                set("rope.scaling.type", "yarn".into());
                set("rope.scaling.factor", F32(*factor));
                set("rope.scaling.original_context_length", U32(*original as u32));
            }
            // In a tensor.
            Some(RopeScaling::Llama3 { .. }) | None => {}
        }
    }
}
