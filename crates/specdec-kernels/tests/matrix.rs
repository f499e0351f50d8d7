//! Formats and packing: bit-equal to ggml, and nothing damaged gets in.

mod common;

use common::{Kind, Random, raw, scales};
use specdec_kernels::{Cpu, Format, Matrix, MatrixError, Target, dequantise};

const KINDS: [Kind; 5] =
    [Kind::Ordinary, Kind::Extreme(0x00), Kind::Extreme(0x7f), Kind::Extreme(0x80), Kind::Tiny];

fn cpu() -> Cpu {
    Cpu::new(2).expect("two threads")
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// Vectors from the `gguf` package: see `scripts/dequantise_vectors.py`.
#[test]
fn every_format_means_what_ggml_says() {
    let text = include_str!("../../../tests/vectors/dequantise.json");
    let cases: serde_json::Value = serde_json::from_str(text).unwrap();
    for format in Format::ALL {
        let name = format.to_string();
        let case = cases.as_array().unwrap().iter().find(|case| case["format"] == name).unwrap();
        let raw = unhex(case["raw"].as_str().unwrap());
        let values = unhex(case["values"].as_str().unwrap());
        let values: Vec<u32> =
            values.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let mut out = vec![0.0; values.len()];
        dequantise(format, &raw, &mut out).unwrap();
        assert_eq!(bits(&out), values, "{format}");
    }
}

#[test]
fn packed_rows_are_the_files_rows() {
    let (cpu, mut random) = (cpu(), Random(1));
    for format in Format::ALL {
        for kind in KINDS {
            for (rows, blocks) in [(1, 1), (16, 2), (17, 3), (50, 5)] {
                let raw = raw(format, kind, rows * blocks, &mut random);
                let cols = blocks * format.block_len();
                let matrix = Matrix::pack(&cpu, format, rows, cols, &raw).unwrap();
                assert_eq!((matrix.rows(), matrix.cols()), (rows, cols));
                assert_eq!(matrix.format(), format);
                assert_eq!(Matrix::packed_bytes(format, rows, cols), Some(matrix.bytes()));
                let mut expected = vec![0.0; rows * cols];
                dequantise(format, &raw, &mut expected).unwrap();
                for (row, expected) in expected.chunks(cols).enumerate() {
                    let mut found = vec![0.0; cols];
                    matrix.dequantise_row(row, &mut found);
                    assert_eq!(bits(&found), bits(expected), "{format} {kind:?} row {row}");
                }
            }
        }
    }
}

#[test]
fn a_packed_matrix_is_as_large_as_the_file() {
    let (cpu, mut random) = (cpu(), Random(2));
    for format in Format::ALL {
        let (rows, cols) = (64, 512);
        let raw = raw(format, Kind::Ordinary, rows * cols / format.block_len(), &mut random);
        let matrix = Matrix::pack(&cpu, format, rows, cols, &raw).unwrap();
        assert_eq!(matrix.bytes(), raw.len(), "{format}");
    }
}

#[test]
fn damaged_scales_and_weights_are_refused_with_their_row() {
    let (cpu, mut random) = (cpu(), Random(3));
    for format in Format::ALL {
        let (rows, blocks) = (40, 3);
        let good = raw(format, Kind::Ordinary, rows * blocks, &mut random);
        let damage: Vec<(usize, &[u8])> = match format {
            Format::F32 => vec![(0, &[0, 0, 0x80, 0x7f]), (0, &[1, 0, 0xc0, 0xff])],
            Format::F16 => vec![(0, &[0x00, 0x7c]), (0, &[0x01, 0xfe])],
            Format::BF16 => vec![(0, &[0x80, 0x7f]), (0, &[0xc1, 0xff])],
            _ => scales(format)
                .iter()
                .flat_map(|&at| [(at, &[0x00, 0x7c][..]), (at, &[0x01, 0xfe]), (at, &[0, 0xfc])])
                .collect(),
        };
        for (at, bytes) in damage {
            // Two damaged rows: the first one is named.
            let mut bad = good.clone();
            for row in [37, 21] {
                let block = (row * blocks + random.below(blocks)) * format.block_bytes();
                bad[block + at..][..bytes.len()].copy_from_slice(bytes);
            }
            let error = Matrix::pack(&cpu, format, rows, blocks * format.block_len(), &bad).err();
            assert!(matches!(error, Some(MatrixError::NotFinite { row: 21 })), "{error:?}");
        }
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let cpu = cpu();
    let error = |rows, cols, len| {
        Matrix::pack(&cpu, Format::Q4_1, rows, cols, &vec![0; len]).err().map(|e| e.to_string())
    };
    assert_eq!(error(2, 64, 80), None);
    assert_eq!(
        error(2, 64, 79).as_deref(),
        Some(
            "2 x 64 weights of Q4_1 take 80 bytes, 79 were given; \
             the file is cut off or its header wrong"
        )
    );
    assert_eq!(
        error(2, 33, 40).as_deref(),
        Some("rows of 33 weights are no whole blocks of Q4_1: use a multiple of 32")
    );
    assert!(error(usize::MAX, 0, 0).is_some());
    assert!(error(usize::MAX, 64, 80).is_some());
    assert!(error(2, usize::MAX - 31, 80).is_some());
}

#[test]
fn weights_quantised_at_load_lie_near_those_of_the_file() {
    let (cpu, mut random) = (cpu(), Random(5));
    for (target, step) in [(Target::Q8_0, 1.0 / 127.0), (Target::Q4_0, 1.0 / 6.0)] {
        for format in [Format::F32, Format::BF16, Format::Q8_0, Format::Q6K] {
            let (rows, cols) = (35, 512);
            let raw = raw(format, Kind::Ordinary, rows * cols / format.block_len(), &mut random);
            let matrix = Matrix::pack_as(&cpu, format, rows, cols, &raw, target).unwrap();
            assert_eq!((matrix.rows(), matrix.cols()), (rows, cols));
            assert_eq!(matrix.format(), target.format());
            let mut file = vec![0.0; rows * cols];
            dequantise(format, &raw, &mut file).unwrap();
            for (row, file) in file.chunks(cols).enumerate() {
                let mut found = vec![0.0; cols];
                matrix.dequantise_row(row, &mut found);
                for (file, found) in file.chunks(32).zip(found.chunks(32)) {
                    let largest = file.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
                    let near = |(x, y): (&f32, &f32)| (x - y).abs() <= step * largest;
                    assert!(file.iter().zip(found).all(near), "{format} to {target:?}, row {row}");
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_quantised_is_refused() {
    let cpu = cpu();
    let error = |cols: usize, raw: &[u8]| {
        Matrix::pack_as(&cpu, Format::F32, 2, cols, raw, Target::Q8_0).err().map(|e| e.to_string())
    };
    assert_eq!(error(32, &[0; 256]), None);
    assert!(error(48, &[0; 384]).unwrap().contains("no whole blocks of Q8_0"));
    assert!(error(32, &[0; 255]).unwrap().contains("256 bytes, 255 were given"));
    let mut raw = [0; 256];
    raw[128 + 12..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(error(32, &raw).unwrap().contains("row 1"));
}
