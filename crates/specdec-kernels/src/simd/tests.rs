//! Every operation gives the same bits at every level, on ordinary and on extreme values.

use super::{LANES, Operands, Simd};
use crate::level::{Kernel, Level};

/// A small generator of test values (SplitMix64).
struct Values(u64);

impl Values {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any finite float: half of them of ordinary size, the rest of any bits, zeros, denormals.
    fn float(&mut self) -> f32 {
        let bits = self.next();
        match bits % 8 {
            0 => f32::from_bits((bits >> 32) as u32 & 0x807f_ffff),
            1 => [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 65504.0, 65520.0][(bits >> 8) as usize % 8],
            2 | 3 => {
                let any = f32::from_bits((bits >> 32) as u32);
                if any.is_finite() { any } else { f32::MAX }
            }
            _ => ((bits >> 40) as f32 - 8_388_608.0) / 65536.0,
        }
    }

    fn array<T, const N: usize>(&mut self, f: impl Fn(&mut Self) -> T) -> [T; N] {
        std::array::from_fn(|_| f(self))
    }
}

/// All inputs that one run of the whole vocabulary takes.
struct Vocabulary {
    a: [f32; LANES],
    b: [f32; LANES],
    c: [f32; LANES],
    i: [i32; LANES],
    j: [i32; LANES],
    halves: [u16; LANES],
    bytes: [[u8; 64]; 8],
    x: [i32; 8],
    shift: u32,
}

impl Vocabulary {
    fn random(values: &mut Values) -> Vocabulary {
        let signed = |v: &mut Values| (v.next() % 255) as u8 as i32 - 127;
        let word = move |v: &mut Values| {
            i32::from_le_bytes(std::array::from_fn(|_| signed(v) as i8 as u8))
        };
        Vocabulary {
            a: values.array(Values::float),
            b: values.array(Values::float),
            c: values.array(Values::float),
            i: values.array(|v| v.next() as i32),
            j: values.array(|v| v.next() as i32),
            // No NaN: its bits are not covered.
            halves: values.array(|v| (v.next() as u16) & 0xfbff),
            bytes: values.array(|v| v.array(|v| v.next() as u8)),
            x: values.array(word),
            shift: (values.next() % 32) as u32,
        }
    }
}

/// Integers as a vector.
#[inline(always)]
fn ints<S: Simd>(s: S, from: &[i32; LANES]) -> S::I {
    s.as_bits(s.load(&from.map(|x| f32::from_bits(x as u32))))
}

/// The bits of every result, in order.
struct Bits<S>(S, Vec<i32>);

impl<S: Simd> Bits<S> {
    #[inline(always)]
    fn ints(&mut self, v: S::I) {
        let mut out = [0.0; LANES];
        self.0.store(self.0.as_float(v), &mut out);
        self.1.extend(out.map(|x| x.to_bits() as i32));
    }

    #[inline(always)]
    fn floats(&mut self, v: S::F) {
        let mut out = [0.0; LANES];
        self.0.store(v, &mut out);
        // One NaN for all: its bits are not covered.
        self.1.extend(out.map(|x| if x.is_nan() { i32::MAX } else { x.to_bits() as i32 }));
    }

    #[inline(always)]
    fn bytes(&mut self, v: S::B) {
        self.ints(self.0.words(v));
    }
}

impl Kernel for &Vocabulary {
    type Output = Vec<i32>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Vec<i32> {
        let mut out = Bits(s, Vec::new());
        floats(&mut out, self);
        integers(&mut out, self);
        conversions(&mut out, self);
        products(&mut out, self);
        out.1
    }
}

#[inline(always)]
fn floats<S: Simd>(out: &mut Bits<S>, v: &Vocabulary) {
    let s = out.0;
    let (a, b, c) = (s.load(&v.a), s.load(&v.b), s.load(&v.c));
    out.floats(s.splat(v.a[3]));
    out.floats(s.add(a, b));
    out.floats(s.sub(a, b));
    out.floats(s.mul(a, b));
    out.floats(s.div(a, b));
    out.floats(s.fma(a, b, c));
    out.floats(s.max(a, b));
    out.floats(s.min(a, b));
    out.floats(s.round(a));
    let small = s.load(&v.a.map(|x| x.clamp(-1e30, 1e30)));
    let sums = [s.sum(small), s.max_lane(a)];
    out.1.extend(sums.map(|x| x.to_bits() as i32));
    out.1.extend([i32::from(s.ge_mask(a, b)), i32::from(s.ge_mask(s.splat(f32::NAN), b))]);
    out.floats(s.where_ge(a, b, c));
    let total = s.sum_f64(s.add_f64(s.add_f64(s.zero_f64(), small), s.round(small)));
    out.1.extend([total.to_bits() as i32, (total.to_bits() >> 32) as i32]);
    out.floats(s.load_tail(&v.a[..v.shift as usize % 17]));
    let mut tail = [0.0; 5];
    s.store_tail(a, &mut tail);
    out.1.extend(tail.map(|x| x.to_bits() as i32));
}

#[inline(always)]
fn integers<S: Simd>(out: &mut Bits<S>, v: &Vocabulary) {
    let s = out.0;
    let (i, j) = (ints(s, &v.i), ints(s, &v.j));
    out.ints(s.splat_i32(v.i[5]));
    out.ints(s.add_i32(i, j));
    out.ints(s.sub_i32(i, j));
    out.ints(s.mul_i32(i, j));
    out.ints(s.max_i32(i, j));
    out.ints(s.and_i32(i, j));
    out.ints(s.xor_i32(i, j));
    out.ints(s.swap_halves(i));
    out.ints(s.shl_i32(i, v.shift));
    out.ints(s.shr_i32(i, v.shift));
    out.ints(s.dot_pairs(i, j, s.add_i32(i, j)));
    let lowest = s.splat_i32(i32::from_le_bytes([0, 0x80, 0, 0x80]));
    out.ints(s.dot_pairs(i, lowest, lowest));
    out.1.extend([s.sum_i32(i), s.max_lane_i32(i)]);
    out.ints(
        s.sums_i32(&std::array::from_fn(|k| if k % 3 == 0 { i } else { s.splat_i32(v.i[k]) })),
    );
    let mut stored = [0; LANES];
    s.store_i32(j, &mut stored);
    out.1.extend(stored);
    let (p, q) = (s.load_bytes(&v.bytes[0]), s.load_bytes(&v.bytes[1]));
    out.bytes(s.splat_byte(v.bytes[0][7]));
    out.bytes(s.and(p, q));
    out.bytes(s.or(p, q));
    out.bytes(s.shl_b16(p, v.shift % 16));
    out.bytes(s.shr_b16(p, v.shift % 16));
}

#[inline(always)]
fn conversions<S: Simd>(out: &mut Bits<S>, v: &Vocabulary) {
    let s = out.0;
    out.floats(s.load_f16(&v.halves));
    out.floats(s.load_bf16(&v.halves));
    let mut halves = [0; LANES];
    s.store_f16(s.load(&v.a), &mut halves);
    out.1.extend(halves.map(i32::from));
    let head = &v.bytes[0];
    out.ints(s.load_i8_pairs(&std::array::from_fn(|i| [head[i], head[63 - i]].map(|b| b as i8))));
    out.ints(s.words(s.load_bytes(head)));
    let mut low = [0; LANES];
    s.store_i8(ints(s, &v.i), &mut low);
    out.1.extend(low.map(i32::from));
    out.ints(s.to_i32(s.load(&v.a)));
    out.ints(s.to_i32(s.splat(f32::NAN)));
    out.floats(s.to_f32(ints(s, &v.i)));
    out.ints(s.as_bits(s.load(&v.a)));
    out.floats(s.as_float(ints(s, &v.i)));
    out.floats(s.pow2(ints(s, &v.i.map(|x| x.rem_euclid(254) - 126))));
    let (near_1, powers) = (
        v.i.map(|x| 0.5 + x.rem_euclid(3_000_000) as f32 / 2e6),
        v.j.map(|x| (x.rem_euclid(279) - 150) as f32),
    );
    out.floats(s.times_pow2(s.load(&near_1), s.load(&powers)));
}

/// Bytes of which only some bits count.
#[derive(Copy, Clone)]
struct Masked<'a>(&'a Vocabulary, u8);

impl Operands<8> for Masked<'_> {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, i: usize) -> S::B {
        s.and(s.load_bytes(&self.0.bytes[i]), s.splat_byte(self.1))
    }
}

#[inline(always)]
fn products<S: Simd>(out: &mut Bits<S>, v: &Vocabulary) {
    let s = out.0;
    let acc = ints(s, &v.i);
    out.ints(s.dot::<8, 8>(acc, &Masked(v, 0x0f).all(s), &v.x));
    out.ints(s.dot::<8, 4>(acc, &Masked(v, 0x1f).all(s), &v.x));
    out.ints(s.dot::<8, 2>(acc, &Masked(v, 0x3f).all(s), &v.x));
    let sum: i32 = v.x.iter().flat_map(|x| x.to_le_bytes()).map(|b| i32::from(b as i8)).sum();
    out.ints(s.dot_signed(s.splat_i32(-128 * sum), &Masked(v, 0xff).all(s), &v.x));
    let other = std::array::from_fn(|i| v.x[7 - i]);
    let mut rows = [acc, s.splat_i32(7), acc];
    s.dots::<8, 4, 3>(&mut rows, Masked(v, 0x1f), &[&v.x, &other, &other]);
    let mut signed = [s.splat_i32(-128 * sum); 2];
    s.dots_signed(&mut signed, Masked(v, 0xff), &[&v.x, &other]);
    for lanes in rows.into_iter().chain(signed) {
        out.ints(lanes);
    }
}

/// Runs the vocabulary at every level against the scalar one.
fn check(v: &Vocabulary, what: &str) {
    let expected = Level::Scalar.run(v);
    for level in Level::available() {
        assert_eq!(level.run(v), expected, "{level}, {what}");
    }
}

#[test]
fn every_operation_gives_the_same_bits_at_every_level() {
    let mut values = Values(1);
    for round in 0..2000 {
        check(&Vocabulary::random(&mut values), &format!("round {round}"));
    }
}

#[test]
fn extreme_weights_times_extreme_activations_stay_exact() {
    for weight in [0, 1, 127, 128, 255] {
        for x in [-127_i8, 127] {
            let mut v = Vocabulary::random(&mut Values(2));
            v.bytes = [[weight; 64]; 8];
            v.x = [i32::from_le_bytes([x as u8; 4]); 8];
            check(&v, &format!("weight {weight}, x {x}"));
        }
    }
}

struct Products<'a>(&'a Vocabulary);

impl Kernel for Products<'_> {
    type Output = Vec<i32>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Vec<i32> {
        let mut out = Bits(s, Vec::new());
        products(&mut out, self.0);
        out.1
    }
}

/// The scalar level itself, against the definition written once more in i64.
#[test]
fn dot_products_are_the_integers_they_claim_to_be() {
    let mut v = Vocabulary::random(&mut Values(3));
    v.i = [0; LANES];
    let x: Vec<i64> = v.x.iter().flat_map(|x| x.to_le_bytes()).map(|b| b as i8 as i64).collect();
    let expect = |lane: usize, weight: &dyn Fn(u8) -> i64| -> i64 {
        (0..32).map(|k| weight(v.bytes[k / 4][4 * lane + k % 4]) * x[k]).sum()
    };
    let got = Level::Scalar.run(Products(&v));
    for lane in 0..LANES {
        assert_eq!(got[lane] as i64, expect(lane, &|w| i64::from(w & 15)));
        assert_eq!(got[2 * LANES + lane] as i64, expect(lane, &|w| i64::from(w & 63)));
        assert_eq!(got[3 * LANES + lane] as i64, expect(lane, &|w| i64::from(w) - 128));
    }
}
