//! Codes of one row among the sixteen of a group, four columns at a time.
//!
//! Vectors of whole bytes hold columns 4i.. in vector i. Vectors of half bytes hold columns 8i..
//! in the low and 8i + 4.. in the high halves of vector i, so that unpacking gives operands in
//! order.

/// The four bytes of a row.
fn word(vector: &mut [u8; 64], row: usize) -> &mut [u8; 4] {
    &mut vector.as_chunks_mut::<4>().0[row]
}

/// Writes a row's codes as whole bytes.
pub(super) fn put_bytes(vectors: &mut [[u8; 64]], row: usize, codes: &[u8]) {
    for (vector, codes) in vectors.iter_mut().zip(codes.as_chunks::<4>().0) {
        *word(vector, row) = *codes;
    }
}

/// Reads them.
pub(super) fn get_bytes(vectors: &[[u8; 64]], row: usize, codes: &mut [u8]) {
    for (vector, codes) in vectors.iter().zip(codes.as_chunks_mut::<4>().0) {
        *codes = vector.as_chunks::<4>().0[row];
    }
}

/// Writes the low four bits of a row's codes as half bytes.
pub(super) fn put_nibbles(vectors: &mut [[u8; 64]], row: usize, codes: &[u8]) {
    for (vector, codes) in vectors.iter_mut().zip(codes.as_chunks::<8>().0) {
        for (i, byte) in word(vector, row).iter_mut().enumerate() {
            *byte = codes[i] & 15 | codes[i + 4] << 4;
        }
    }
}

/// Reads them.
pub(super) fn get_nibbles(vectors: &[[u8; 64]], row: usize, codes: &mut [u8]) {
    for (vector, codes) in vectors.iter().zip(codes.as_chunks_mut::<8>().0) {
        for (i, byte) in vector.as_chunks::<4>().0[row].into_iter().enumerate() {
            codes[i] = byte & 15;
            codes[i + 4] = byte >> 4;
        }
    }
}

/// Writes the bits of a row's codes above the low four, `BITS` of them. Their vector holds those of
/// columns 4i.. at bit `BITS` * i.
pub(super) fn put_high<const BITS: usize>(vector: &mut [u8; 64], row: usize, codes: &[u8]) {
    let word = word(vector, row);
    *word = [0; 4];
    for (i, codes) in codes.as_chunks::<4>().0.iter().enumerate() {
        for (byte, code) in word.iter_mut().zip(codes) {
            *byte |= code >> 4 << (BITS * i);
        }
    }
}

/// Adds them to codes that have their low four bits.
pub(super) fn get_high<const BITS: usize>(vector: &[u8; 64], row: usize, codes: &mut [u8]) {
    let word = vector.as_chunks::<4>().0[row];
    for (i, codes) in codes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        for (byte, code) in word.iter().zip(codes) {
            *code |= (byte >> (BITS * i) & ((1 << BITS) - 1)) << 4;
        }
    }
}
