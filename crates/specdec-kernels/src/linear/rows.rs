//! Products of weights with all rows of a pass at once.

/// Multiplies weights with each of `R` rows and runs a body for each row and its product.
macro_rules! each_product {
    (
        $r:ident of $rows:ident,
        $dot:ident = $s:ident.$dots:ident::<$($arg:tt),*>($start:expr, $w:expr, $x:expr), $body:block
    ) => {{
        let mut dots = [$s.splat_i32(0); $rows];
        for $r in 0..$rows {
            dots[$r] = $start;
        }
        let x: [_; $rows] = std::array::from_fn(|$r| $x);
        $s.$dots::<$($arg,)* _>(&mut dots, $w, &x);
        for ($r, $dot) in dots.into_iter().enumerate() $body
    }};
}
pub(super) use each_product;
