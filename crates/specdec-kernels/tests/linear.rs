//! Products: the same bits whatever the rows, threads and level, and the right numbers.

mod common;

use common::{Kind, Random, raw, scales};
use specdec_kernels::{
    Acts, Cpu, Format, Forms, Level, Matrix, Product, Store, dequantise, linear,
};

const BOTH: Forms = Forms { int8x32: true, int8x256: true };
const MOST: usize = 19;

/// Every level with one thread and with two.
fn machines() -> Vec<Cpu> {
    let levels = Level::available().into_iter();
    levels.flat_map(|level| [1, 2].map(|n| Cpu::with_level(n, level).unwrap())).collect()
}

/// Rows that put the integer and the float arithmetic to the test.
fn activations(cols: usize, random: &mut Random) -> Vec<f32> {
    let mut rows = Vec::new();
    for row in 0..MOST {
        rows.extend((0..cols).map(|col| match row {
            2..8 => at_edge(EDGES[row - 2], row, col),
            // Quantised, the rows of 3.0 are all +-127.
            8 => 3.0,
            9 => -3.0,
            10 => random.float() * 1e-40,
            11 => 0.0,
            12 => random.float() * 1000.0,
            13 => random.float(),
            // Near zero, as those of a model.
            _ => random.float().powi(3),
        }));
    }
    rows
}

/// Sums of |x| over a run from which on products with the largest codes of Q6_K, Q5_K and Q4_K need
/// more than 16 bits, and one less.
const EDGES: [usize; 6] = [1023, 1024, 1057, 1058, 2184, 2185];

/// Value `col` of a row whose first run sums to `sum`, all of one sign.
fn at_edge(sum: usize, row: usize, col: usize) -> f32 {
    let size = sum.saturating_sub(127 * col).min(127) as f32;
    if row % 4 < 2 { size } else { -size }
}

fn acts(cpu: &Cpu, cols: usize, rows: &[f32]) -> Acts {
    let n = rows.len() / cols;
    let mut acts = Acts::new(n, cols, BOTH);
    acts.rows_mut(n).copy_from_slice(rows);
    acts.quantise(cpu, n).unwrap();
    acts
}

/// A matrix with what a product does around it.
struct Case {
    matrix: Matrix,
    raw: Vec<u8>,
    bias: Option<Vec<f32>>,
    store: Store,
    old: Vec<f32>,
}

impl Case {
    fn random(format: Format, kind: Kind, blocks: usize, random: &mut Random) -> Case {
        let rows = 1 + random.below(70);
        let cols = blocks * format.block_len();
        let raw = raw(format, kind, rows * blocks, random);
        let cpu = Cpu::new(1).unwrap();
        let numbers = |n: usize, random: &mut Random| (0..n).map(|_| random.float()).collect();
        let bias = (random.below(2) == 0).then(|| numbers(rows, random));
        Case {
            matrix: Matrix::pack(&cpu, format, rows, cols, &raw).unwrap(),
            raw,
            bias,
            store: [Store::Set, Store::Add][random.below(2)],
            old: numbers(MOST * rows, random),
        }
    }

    fn product<'a>(&'a self, out: &'a mut [f32]) -> Product<'a> {
        let Case { matrix, bias, store, .. } = self;
        Product { matrix, bias: bias.as_deref(), store: *store, out }
    }

    /// The product with the first `n` rows of `x`.
    fn run(&self, cpu: &Cpu, x: &Acts, n: usize) -> Vec<f32> {
        let mut out = self.old[..n * self.matrix.rows()].to_vec();
        linear(cpu, x, n, &mut [self.product(&mut out)]).unwrap();
        out
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Widths that end inside a group and widths that fill it.
fn widths(format: Format) -> [usize; 3] {
    match format.block_len() {
        1 => [1, 16, 67],
        32 => [1, 4, 9],
        _ => [1, 2, 3],
    }
}

/// Each row alone, one thread, no SIMD: what all others must equal.
fn alone(case: &Case, rows: &[f32]) -> Vec<f32> {
    let cpu = Cpu::with_level(1, Level::Scalar).unwrap();
    let (n, cols) = (case.matrix.rows(), case.matrix.cols());
    let mut out = Vec::new();
    for (i, row) in rows.chunks(cols).enumerate() {
        let mut one = case.old[i * n..(i + 1) * n].to_vec();
        linear(&cpu, &acts(&cpu, cols, row), 1, &mut [case.product(&mut one)]).unwrap();
        out.extend(one);
    }
    out
}

#[test]
fn rows_threads_and_levels_leave_no_trace() {
    let mut random = Random(1);
    let machines = machines();
    let kinds = [0x00, 0x7f, 0x80, 0xff].map(Kind::Extreme);
    for format in Format::ALL {
        for kind in [Kind::Ordinary, Kind::Tiny].into_iter().chain(kinds) {
            for blocks in widths(format) {
                let case = Case::random(format, kind, blocks, &mut random);
                let (n, cols) = (case.matrix.rows(), case.matrix.cols());
                let rows = activations(cols, &mut random);
                let expected = alone(&case, &rows);
                assert!(expected.iter().all(|x| x.is_finite()), "{format} {kind:?}");
                for cpu in &machines {
                    let x = acts(cpu, cols, &rows);
                    for count in 1..=MOST {
                        assert!(
                            bits(&case.run(cpu, &x, count)) == bits(&expected[..count * n]),
                            "{format} {kind:?} {n} x {cols}, {count} rows, {}, {} threads",
                            cpu.level,
                            cpu.pool.threads()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_one_region_do_not_meet() {
    let mut random = Random(2);
    let cols = 512;
    let rows = activations(cols, &mut random);
    let cases: Vec<Case> = Format::ALL
        .into_iter()
        .map(|f| Case::random(f, Kind::Ordinary, cols / f.block_len(), &mut random))
        .collect();
    for cpu in machines() {
        let x = acts(&cpu, cols, &rows);
        let mut outs: Vec<Vec<f32>> =
            cases.iter().map(|c| c.old[..5 * c.matrix.rows()].to_vec()).collect();
        let mut products: Vec<Product<'_>> =
            cases.iter().zip(&mut outs).map(|(case, out)| case.product(out)).collect();
        linear(&cpu, &x, 5, &mut products).unwrap();
        for (case, out) in cases.iter().zip(&outs) {
            assert_eq!(bits(out), bits(&case.run(&cpu, &x, 5)), "{}", case.matrix.format());
        }
    }
}

/// The activations as a product with `format` reads them: q and the scale of each value.
fn quantised(format: Format, row: &[f32]) -> Vec<(f64, f64)> {
    if format.block_len() == 1 {
        return row.iter().map(|&x| (f64::from(x), 1.0)).collect();
    }
    let mut out = Vec::new();
    for block in row.chunks(format.block_len()) {
        let largest = block.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
        let none = largest / 127.0 < f32::MIN_POSITIVE;
        let (scale, factor) = if none { (0.0, 0.0) } else { (largest / 127.0, 127.0 / largest) };
        let q = |x: f32| f64::from((x * factor).round_ties_even());
        out.extend(block.iter().map(|&x| (q(x), f64::from(scale))));
    }
    out
}

/// The weights in two parts, scaled codes and added constants, whose sum they are.
fn parts(format: Format, raw: &[u8]) -> Vec<Vec<f32>> {
    let len = raw.len() / format.block_bytes() * format.block_len();
    let part = |keep: usize| {
        let mut raw = raw.to_vec();
        for block in raw.chunks_mut(format.block_bytes()) {
            for (i, &at) in scales(format).iter().enumerate() {
                if i != keep {
                    block[at..at + 2].fill(0);
                }
            }
        }
        let mut out = vec![0.0; len];
        dequantise(format, &raw, &mut out).unwrap();
        out
    };
    (0..scales(format).len().max(1)).map(part).collect()
}

/// Most roundings between a term and the result, one for the weight included: the chain of
/// multiply-adds in a block, the one over blocks, scale, sum of x, bias and old output.
fn roundings(format: Format, cols: usize) -> f64 {
    let blocks = cols / format.block_len();
    (match format {
        Format::F32 | Format::F16 | Format::BF16 => cols,
        Format::Q4K | Format::Q5K | Format::Q6K => 17 + blocks,
        _ => 2 * blocks,
    } + 5) as f64
}

#[test]
fn results_are_the_sums_they_claim_to_be() {
    let mut random = Random(3);
    let cpu = Cpu::new(2).unwrap();
    for format in Format::ALL {
        for kind in [Kind::Ordinary, Kind::Extreme(0x80), Kind::Extreme(0x7f)] {
            for blocks in widths(format) {
                let case = Case::random(format, kind, blocks, &mut random);
                let cols = case.matrix.cols();
                let rows = activations(cols, &mut random);
                let found = case.run(&cpu, &acts(&cpu, cols, &rows), MOST);
                check(&case, format, &rows, &found);
            }
        }
    }
}

fn check(case: &Case, format: Format, rows: &[f32], found: &[f32]) {
    let (n, cols) = (case.matrix.rows(), case.matrix.cols());
    let parts = parts(format, &case.raw);
    for (i, row) in rows.chunks(cols).enumerate() {
        let x = quantised(format, row);
        for j in 0..n {
            let mut sum = case.bias.as_ref().map_or(0.0, |bias| f64::from(bias[j]));
            if case.store == Store::Add {
                sum += f64::from(case.old[i * n + j]);
            }
            let mut size = sum.abs() + 1.0;
            for part in &parts {
                for (w, (q, scale)) in part[j * cols..].iter().zip(&x) {
                    sum += f64::from(*w) * q * scale;
                    size += (f64::from(*w) * q * scale).abs();
                }
            }
            let error = (f64::from(found[i * n + j]) - sum).abs();
            let bound = roundings(format, cols) * f64::from(f32::EPSILON) / 2.0 * size;
            assert!(error <= bound, "{format} {n} x {cols}: error {error}, bound {bound}");
        }
    }
}

#[test]
fn a_bad_activation_shows_in_its_row_only() {
    let mut random = Random(4);
    for format in Format::ALL {
        let case = Case::random(format, Kind::Ordinary, 512 / format.block_len(), &mut random);
        let n = case.matrix.rows();
        let mut rows = activations(512, &mut random);
        rows[512 + 77] = f32::NAN;
        rows[3 * 512 + 400] = f32::INFINITY;
        for cpu in machines() {
            let found = case.run(&cpu, &acts(&cpu, 512, &rows), 5);
            for (row, found) in found.chunks(n).enumerate() {
                let bad = row == 1 || row == 3;
                assert!(found.iter().all(|x| x.is_finite() != bad), "{format} row {row}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "differ in width")]
fn a_wrong_width_is_a_bug_of_the_caller() {
    let cpu = Cpu::new(1).unwrap();
    let matrix = Matrix::pack(&cpu, Format::F32, 1, 4, &[0; 16]).unwrap();
    let out = &mut [0.0];
    let product = Product { matrix: &matrix, bias: None, store: Store::Set, out };
    let _ = linear(&cpu, &Acts::new(1, 5, BOTH), 1, &mut [product]);
}
