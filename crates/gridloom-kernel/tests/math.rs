//! How far elementary functions of device code are from the true values, on the host: devices
//! compute the same bits.

use gridloom_kernel::math::{double, single};

/// The distance of a number of single precision from the true value, in units of its last place.
fn ulps_f32(found: f32, exact: f64) -> f64 {
    if found.is_nan() || exact.is_nan() {
        return if found.is_nan() == exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let nearest = exact as f32;
    if found == nearest {
        let signs_differ = found == 0.0 && found.is_sign_negative() != exact.is_sign_negative();
        return if signs_differ { f64::INFINITY } else { 0.0 };
    }
    if found.is_infinite() && exact.abs() > f64::from(f32::MAX) {
        return 0.5;
    }
    let unit = f64::from(f32::from_bits(nearest.abs().min(1.7e38).to_bits() + 1))
        - f64::from(nearest.abs().min(1.7e38));
    (f64::from(found) - exact).abs() / unit
}

/// The distance of two numbers of double precision, in units of the last place.
fn ulps_f64(found: f64, near: f64) -> f64 {
    if found.is_nan() || near.is_nan() {
        return if found.is_nan() == near.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if found == 0.0 && near == 0.0 {
        return if found.is_sign_negative() == near.is_sign_negative() { 0.0 } else { f64::INFINITY };
    }
    let ordered = |x: f64| {
        let bits = x.to_bits() as i64;
        if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
    };
    ordered(found).wrapping_sub(ordered(near)).unsigned_abs() as f64
}

/// Numbers of single precision all over the range, every so many bit patterns, and special ones.
fn singles() -> impl Iterator<Item = f32> {
    let special = [0.0, -0.0, 1.0, -1.0, f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    (0..u32::MAX / 1511).map(|i| f32::from_bits(i * 1511)).chain(special)
}

/// Numbers of double precision all over the range, denser near one, and special ones.
fn doubles() -> impl Iterator<Item = f64> {
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    };
    let special =
        [0.0, -0.0, 1.0, -1.0, 1e-320, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    (0..600_000)
        .map(move |i| {
            let bits = next();
            match i % 4 {
                0 => f64::from_bits(bits),
                1 => (bits >> 11) as f64 / (1u64 << 53) as f64 * 40.0 - 20.0,
                2 => (bits >> 11) as f64 / (1u64 << 53) as f64 * 4.0 - 2.0,
                _ => (bits as i64) as f64 / (1u64 << 50) as f64,
            }
        })
        .chain(special)
}

#[track_caller]
fn single_within(bound: f64, name: &str, ours: fn(f32) -> f32, exact: fn(f64) -> f64) {
    let mut worst = (0.0, 0.0);
    for x in singles() {
        let distance = ulps_f32(ours(x), exact(f64::from(x)));
        if distance > worst.0 {
            worst = (distance, x);
        }
    }
    assert!(worst.0 <= bound, "{name}: {} ulp at {:e}, ours {:e}", worst.0, worst.1, ours(worst.1));
}

#[track_caller]
fn double_within(bound: f64, name: &str, ours: fn(f64) -> f64, near: fn(f64) -> f64) {
    let mut worst = (0.0, 0.0);
    for x in doubles() {
        let distance = ulps_f64(ours(x), near(x));
        if distance > worst.0 {
            worst = (distance, x);
        }
    }
    assert!(worst.0 <= bound, "{name}: {} ulp at {:e}, ours {:e}", worst.0, worst.1, ours(worst.1));
}

/// The functions of the C library. Some of the standard library are not as exact.
mod exact {
    macro_rules! functions {
        ($($name:ident = $symbol:literal;)*) => {$(
            pub(super) fn $name(x: f64) -> f64 {
                unsafe extern "C" {
                    #[link_name = $symbol]
                    fn function(x: f64) -> f64;
                }
                // SAFETY: it takes a number and returns one.
                unsafe { function(x) }
            }
        )*};
    }
    functions! {
        exp = "exp"; exp2 = "exp2"; ln = "log"; log2 = "log2"; log10 = "log10"; sin = "sin"; cos = "cos"; tan = "tan";
        asin = "asin"; acos = "acos"; atan = "atan"; sinh = "sinh"; cosh = "cosh"; tanh = "tanh"; asinh = "asinh";
        acosh = "acosh"; atanh = "atanh"; exp_m1 = "expm1"; ln_1p = "log1p"; cbrt = "cbrt";
    }
}

macro_rules! bounds {
    ($($name:ident: $single:expr, $double:expr;)*) => {$(
        mod $name {
            #[test]
            fn of_single_precision() {
                super::single_within($single, stringify!($name), super::single::$name, super::exact::$name);
            }

            #[test]
            fn of_double_precision() {
                super::double_within($double, stringify!($name), super::double::$name, super::exact::$name);
            }
        }
    )*};
}
// What double precision is compared with has an error of its own.
bounds! {
    exp: 2.0, 2.0;
    exp2: 2.0, 2.0;
    ln: 2.0, 2.0;
    log2: 2.0, 2.0;
    log10: 2.0, 2.0;
    sin: 2.0, 2.0;
    cos: 2.0, 2.0;
    tan: 1.0, 3.0;
    asin: 1.0, 4.0;
    acos: 1.0, 4.0;
    atan: 1.0, 3.0;
    sinh: 1.0, 3.0;
    cosh: 1.0, 3.0;
    tanh: 2.0, 4.0;
    asinh: 1.0, 4.0;
    acosh: 1.0, 4.0;
    atanh: 1.0, 4.0;
    exp_m1: 1.0, 3.0;
    ln_1p: 1.0, 3.0;
    cbrt: 1.0, 3.0;
}

#[test]
fn functions_of_two_numbers() {
    let numbers: Vec<f64> = doubles().step_by(997).chain([0.5, 2.0, 3.0, -2.0, 53.0, 1e16, -1e17]).collect();
    let mut worst = [0.0f64; 6];
    for &x in &numbers {
        for &y in &numbers {
            let (a, b) = (x as f32, y as f32);
            let (p, q) = (f64::from(a), f64::from(b));
            for (slot, distance) in worst.iter_mut().zip([
                ulps_f64(double::powf(x, y), x.powf(y)),
                ulps_f32(single::powf(a, b), p.powf(q)),
                ulps_f64(double::atan2(x, y), x.atan2(y)),
                ulps_f32(single::atan2(a, b), p.atan2(q)),
                ulps_f64(double::hypot(x, y), x.hypot(y)),
                ulps_f32(single::hypot(a, b), p.hypot(q)),
            ]) {
                if distance.is_infinite() {
                    panic!(
                        "special case at {x:e} and {y:e}: powf {:e}, atan2 {:e}, hypot {:e}",
                        double::powf(x, y),
                        double::atan2(x, y),
                        double::hypot(x, y)
                    );
                }
                *slot = slot.max(distance);
            }
        }
    }
    for (distance, bound) in worst.into_iter().zip([2.0, 1.0, 4.0, 1.0, 3.0, 1.0]) {
        assert!(distance <= bound, "{worst:?}");
    }
}

#[test]
fn remainders_are_exact() {
    let numbers: Vec<f64> = doubles().step_by(1009).chain([1e-310, 3.0, -7.5, 0.1]).collect();
    for &x in &numbers {
        for &y in &numbers {
            assert_eq!(ulps_f64(double::rem(x, y), x % y), 0.0, "{x:e} % {y:e}");
            let (a, b) = (x as f32, y as f32);
            assert_eq!(ulps_f64(single::rem(a, b).into(), (a % b).into()), 0.0, "{a:e} % {b:e}");
        }
    }
}

#[test]
fn powers_with_whole_exponents_are_those_of_the_host() {
    for x in [0.0f64, -0.0, 1.5, -2.25, 1e10, 1e-10, f64::INFINITY, f64::NAN] {
        for n in [0, 1, -1, 2, 3, -3, 10, 31, -60, i32::MAX, i32::MIN] {
            let n = std::hint::black_box(n);
            assert_eq!(double::powi(x, n).to_bits(), x.powi(n).to_bits(), "{x}^{n}");
            let x = x as f32;
            assert_eq!(single::powi(x, n).to_bits(), x.powi(n).to_bits(), "{x}^{n}");
        }
    }
}
