//! The tensor formats of ggml: how many values a block holds, and in how many bytes.

/// A tensor format. What can be *computed* with is another question, which the kernels answer.
#[derive(Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Number in the file (`ggml_type`).
    pub id: u32,
    /// Name as ggml writes it.
    pub name: &'static str,
    /// Values in a block.
    pub block_len: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
}

const fn of(id: u32, name: &'static str, block_len: u64, block_bytes: u64) -> TensorType {
    TensorType { id, name, block_len, block_bytes }
}

/// Every format that ggml writes to files. `Q8_1` exists in memory only; the gaps are formats that
/// were withdrawn.
const TYPES: [TensorType; 33] = [
    of(0, "F32", 1, 4),
    of(1, "F16", 1, 2),
    of(2, "Q4_0", 32, 18),
    of(3, "Q4_1", 32, 20),
    of(6, "Q5_0", 32, 22),
    of(7, "Q5_1", 32, 24),
    of(8, "Q8_0", 32, 34),
    of(10, "Q2_K", 256, 84),
    of(11, "Q3_K", 256, 110),
    of(12, "Q4_K", 256, 144),
    of(13, "Q5_K", 256, 176),
    of(14, "Q6_K", 256, 210),
    of(15, "Q8_K", 256, 292),
    of(16, "IQ2_XXS", 256, 66),
    of(17, "IQ2_XS", 256, 74),
    of(18, "IQ3_XXS", 256, 98),
    of(19, "IQ1_S", 256, 50),
    of(20, "IQ4_NL", 32, 18),
    of(21, "IQ3_S", 256, 110),
    of(22, "IQ2_S", 256, 82),
    of(23, "IQ4_XS", 256, 136),
    of(24, "I8", 1, 1),
    of(25, "I16", 1, 2),
    of(26, "I32", 1, 4),
    of(27, "I64", 1, 8),
    of(28, "F64", 1, 8),
    of(29, "IQ1_M", 256, 56),
    of(30, "BF16", 1, 2),
    of(34, "TQ1_0", 256, 54),
    of(35, "TQ2_0", 256, 66),
    of(39, "MXFP4", 32, 17),
    of(40, "NVFP4", 64, 36),
    of(41, "Q1_0", 128, 18),
];

impl TensorType {
    /// The format with this number, if ggml knows one.
    pub fn from_id(id: u32) -> Option<&'static Self> {
        TYPES.iter().find(|kind| kind.id == id)
    }

    /// Bytes of a row of `cols` values; `None` unless they fill whole blocks, or on overflow.
    pub fn row_bytes(&self, cols: u64) -> Option<u64> {
        if !cols.is_multiple_of(self.block_len) {
            return None;
        }
        (cols / self.block_len).checked_mul(self.block_bytes)
    }
}
