//! Every level against the scalar definition, bit for bit.

use super::*;
use crate::testing::Noise;

/// Rows of every kind of length, with ties, -inf and spread.
fn rows() -> Vec<Vec<f32>> {
    let mut noise = Noise(7);
    let mut rows = Vec::new();
    for len in [1, 2, 15, 16, 17, 100, 1023, 1024, 1025, 5000, 49_152] {
        let plain = noise.floats(len);
        for spread in [0.0, 1.0, 30.0, 1e3, 1e30] {
            let mut row: Vec<f32> = plain.iter().map(|x| x * spread).collect();
            rows.push(row.clone());
            row.iter_mut().step_by(3).for_each(|x| *x = f32::NEG_INFINITY);
            row[len / 2] = 1.0;
            rows.push(row.clone());
            row = row.iter().map(|x| x.round()).collect();
            rows.push(row);
        }
    }
    rows
}

fn all() -> impl Iterator<Item = SimdRows> {
    Level::available().into_iter().map(SimdRows::new)
}

#[test]
fn the_largest_and_its_token() {
    for row in rows() {
        for mut ops in all() {
            assert_eq!(
                ops.max(&row),
                Scalar::default().max(&row),
                "{} at {}",
                row.len(),
                ops.level
            );
        }
    }
}

#[test]
fn a_damaged_row_is_told_apart_at_every_place() {
    for len in [1, 16, 40, 1100] {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
            for place in (0..len).step_by(7) {
                let mut row = vec![1.0; len];
                row[place] = bad;
                for mut ops in all() {
                    match ops.max(&row) {
                        Err(LawError::Logit { token, .. }) => assert_eq!(token as usize, place),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        for mut ops in all() {
            let nothing = vec![f32::NEG_INFINITY; len];
            assert_eq!(ops.max(&nothing), Err(LawError::NoToken { len }));
        }
    }
}

#[test]
fn weights_and_their_sum() {
    for row in rows() {
        let (_, max) = Scalar::default().max(&row).expect("a number");
        for scale in [1.0, 1.0 / 0.7, 3.1, 1e-30, 5e4] {
            let mut expected = Vec::new();
            let sum = Scalar::default().exp_into(&row, max, scale, &mut expected);
            for mut ops in all() {
                let mut found = vec![5.0; 3];
                let total = ops.exp_into(&row, max, scale, &mut found);
                let bits =
                    |weights: &[f64]| weights.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&found), bits(&expected), "{} at {}", row.len(), ops.level);
                assert_eq!(total.to_bits(), sum.to_bits());
                assert_eq!(ops.exp_sum(&row, max, scale).to_bits(), sum.to_bits());
            }
        }
    }
}

#[test]
fn tokens_above_a_threshold_and_the_kth_largest() {
    for row in rows() {
        for k in [1, 2, 5, 40, row.len() / 2, row.len()] {
            let k = k.clamp(1, row.len());
            let kth = Scalar::default().kth_largest(&row, k);
            let mut expected = vec![9];
            Scalar::default().at_least(&row, kth, &mut expected);
            for mut ops in all() {
                assert_eq!(
                    ops.kth_largest(&row, k).to_bits(),
                    kth.to_bits(),
                    "{k} of {}",
                    row.len()
                );
                let mut found = vec![9];
                ops.at_least(&row, kth, &mut found);
                assert_eq!(found, expected);
            }
        }
    }
}
