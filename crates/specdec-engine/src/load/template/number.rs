//! Numbers as Python computes and prints them.

use super::{run::Stop, value::Value};
use minijinja::machinery::ast::BinOpKind;

/// `left op right` for numbers; anything else has no such operation.
pub(super) fn arithmetic<'t>(
    op: BinOpKind,
    left: &Value<'t>,
    right: &Value<'t>,
) -> Result<Value<'t>, Stop> {
    let impossible =
        || Stop::failed(format!("impossible with {} and {}", left.kind(), right.kind()));
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return integers(op, a, b);
    }
    let (a, b) =
        (left.as_float().ok_or_else(impossible)?, right.as_float().ok_or_else(impossible)?);
    if b == 0.0 && matches!(op, BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem) {
        return Err(Stop::failed("a division by zero"));
    }
    Ok(Value::Float(match op {
        BinOpKind::Add => a + b,
        BinOpKind::Sub => a - b,
        BinOpKind::Mul => a * b,
        BinOpKind::Div => a / b,
        BinOpKind::FloorDiv => (a / b).floor(),
        BinOpKind::Rem => a - b * (a / b).floor(),
        BinOpKind::Pow => a.powf(b),
        _ => return Err(impossible()),
    }))
}

fn integers<'t>(op: BinOpKind, a: i64, b: i64) -> Result<Value<'t>, Stop> {
    if b == 0 && matches!(op, BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem) {
        return Err(Stop::failed("a division by zero"));
    }
    let number = match op {
        BinOpKind::Add => a.checked_add(b),
        BinOpKind::Sub => a.checked_sub(b),
        BinOpKind::Mul => a.checked_mul(b),
        BinOpKind::Div => return Ok(Value::Float(a as f64 / b as f64)),
        BinOpKind::FloorDiv => a.checked_rem_euclid(b).map(|_| floor_div(a, b)),
        BinOpKind::Rem => a.checked_rem(b).map(|_| a - b * floor_div(a, b)),
        BinOpKind::Pow => match u32::try_from(b) {
            Ok(b) => a.checked_pow(b),
            Err(_) => return Ok(Value::Float((a as f64).powf(b as f64))),
        },
        _ => None,
    };
    number.map(Value::Int).ok_or_else(|| Stop::failed("a number beyond 64 bits"))
}

/// Rounded down. The caller has excluded zero and overflow.
fn floor_div(a: i64, b: i64) -> i64 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// The shortest decimal that names the number, as Python's `repr` writes it.
pub(super) fn shown(number: f64) -> String {
    let size = number.abs();
    if !number.is_finite() {
        return format!("{number}").to_lowercase();
    }
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |e| ("-", e));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_does() {
        let cases = [
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (123_456_789.0, "123456789.0"),
            (0.0001, "0.0001"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (number, text) in cases {
            assert_eq!(shown(number), text);
        }
    }

    #[test]
    fn division_rounds_down_and_overflow_is_an_error() {
        let int = |op, a, b| match integers(op, a, b) {
            Ok(Value::Int(n)) => Some(n),
            _ => None,
        };
        for (a, b, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1)] {
            assert_eq!(int(BinOpKind::FloorDiv, a, b), Some(quotient));
            assert_eq!(int(BinOpKind::Rem, a, b), Some(rest));
        }
        for op in [BinOpKind::FloorDiv, BinOpKind::Rem, BinOpKind::Mul] {
            assert_eq!(int(op, i64::MIN, -1), None);
        }
        assert_eq!((int(BinOpKind::Pow, 2, 62), int(BinOpKind::Pow, 2, 63)), (Some(1 << 62), None));
    }
}
