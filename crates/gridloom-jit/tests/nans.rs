//! NaNs in registers that are written again and again: of arithmetic one is the canonical NaN, of a load and a move it is what was loaded.

mod case;

use case::{Case, STORE};

/// Loads the thread's word to `%f0` and the next one to `%f9`, and makes a NaN of arithmetic of each that is one.
const LOAD: &str = "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.f32 %f0, [%rd2];
     xor.b32 %r2, %r1, 1; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd0, %rd3; ld.global.f32 %f9, [%rd3];
     and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; bar.sync 0;";

/// NaNs of all kinds, zeros of both signs, infinities and numbers, each beside each other.
fn words() -> Vec<u32> {
    let kinds =
        [0xffc0_1234, 0x7f80_0001, 0x7fff_ffff, 0x8000_0000, 0, 0x7f80_0000, 0xff80_0000, 0x3f80_0000];
    kinds.iter().flat_map(|&a| kinds.iter().flat_map(move |&b| [a, b])).collect()
}

#[track_caller]
fn same(body: &str) -> Vec<u32> {
    let body = format!("{LOAD} {body} {STORE}");
    Case { words: words(), block: [128, 1, 1], ..Case::new(&body) }.same().unwrap()
}

#[test]
fn arithmetic_on_a_loaded_nan_gives_the_canonical_one_in_the_same_register() {
    let found = same("add.f32 %f0, %f0, %f9; mul.f32 %f0, %f0, 0f40000000; mov.b32 %r19, %f0;");
    assert_eq!(found[0], 0x7fff_ffff);
}

#[test]
fn a_guarded_move_of_a_loaded_nan_over_one_of_arithmetic_keeps_both() {
    let found = same("mov.f32 %f1, %f0; add.f32 %f1, %f1, %f9; @%p1 mov.f32 %f1, %f0; mov.b32 %r19, %f1;");
    assert_eq!(found[..2], [0xffc0_1234, 0x7fff_ffff]);
}

#[test]
fn guarded_arithmetic_over_a_loaded_nan_keeps_both() {
    let found = same("mov.f32 %f1, %f0; @%p1 add.f32 %f1, %f1, %f9; mov.b32 %r19, %f1;");
    assert_eq!(found[..2], [0x7fff_ffff, 0xffc0_1234]);
}

#[test]
fn a_selection_of_a_loaded_nan_or_one_of_arithmetic_keeps_both() {
    let found =
        same("mov.f32 %f1, %f9; add.f32 %f1, %f1, %f0; selp.f32 %f2, %f1, %f0, %p1; mov.b32 %r19, %f2;");
    assert_eq!(found[..2], [0x7fff_ffff, 0xffc0_1234]);
    same("add.f32 %f9, %f9, %f0; add.f32 %f0, %f9, %f0; selp.f32 %f2, %f9, %f0, %p1; mov.b32 %r19, %f2;");
}

#[test]
fn a_move_of_a_nan_of_arithmetic_is_canonical_where_it_is_seen() {
    let found = same("add.f32 %f9, %f9, %f0; mov.f32 %f0, %f9; mov.f32 %f8, %f0; mov.b32 %r19, %f8;");
    assert_eq!(found[0], 0x7fff_ffff);
}

#[test]
fn a_nan_of_arithmetic_is_canonical_behind_a_branch_a_loop_and_a_barrier() {
    // The register holds a loaded NaN on one way and one of arithmetic on the other.
    let found = same("@%p1 bra E; add.f32 %f0, %f0, %f9; E: mov.b32 %r19, %f0;");
    assert_eq!(found[..2], [0xffc0_1234, 0x7fff_ffff]);
    same(
        "mov.u32 %r4, 0; L: add.f32 %f0, %f0, %f9; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 3; @%p2 bra L; mov.b32 %r19, %f0;",
    );
    same("add.f32 %f0, %f0, %f9; bar.sync 0; mov.b32 %r19, %f0;");
}

#[test]
fn a_nan_of_arithmetic_is_canonical_where_the_interpreter_goes_on() {
    same(
        "add.f32 %f0, %f0, %f9; shfl.sync.idx.b32 %f1, %f0, 3, 31, -1; mov.b32 %r4, %f1; mov.b32 %r5, %f0; mad.lo.u32 %r19, %r4, 3, %r5;",
    );
    // An index that wraps inside of a group, which is then left before it is widened.
    same(
        "add.f32 %f0, %f0, %f9; sub.u32 %r4, %r1, 5; mul.wide.u32 %rd4, %r4, 2; cvt.u32.u64 %r5, %rd4;
         mov.b32 %r6, %f0; add.u32 %r19, %r5, %r6;",
    );
}

#[test]
fn of_two_zeros_the_one_of_the_right_sign_is_larger_and_a_number_is_better_than_a_nan() {
    let found = same("max.f32 %f0, %f0, %f9; mov.b32 %r19, %f0;");
    let at = |a: u32, b: u32| {
        let words = words();
        found[words.chunks(2).position(|pair| pair == [a, b]).unwrap() * 2]
    };
    assert_eq!((at(0x8000_0000, 0), at(0, 0x8000_0000), at(0x8000_0000, 0x8000_0000)), (0, 0, 0x8000_0000));
    assert_eq!((at(0xffc0_1234, 0x3f80_0000), at(0x3f80_0000, 0x7f80_0001)), (0x3f80_0000, 0x3f80_0000));
    same("min.f32 %f0, %f0, %f9; mov.b32 %r19, %f0;");
    same("max.NaN.f32 %f0, %f0, %f9; mov.b32 %r19, %f0;");
    same("min.ftz.f32 %f0, %f0, %f9; add.f32 %f0, %f0, %f9; mov.b32 %r19, %f0;");
}

#[test]
fn extrema_of_double_precision_are_those_of_the_interpreter() {
    for operation in ["max", "min"] {
        same(&format!(
            "mov.b32 %r4, %f0; mov.b32 %r5, %f9; mov.b64 %rd5, {{0, %r4}}; mov.b64 %rd6, {{0, %r5}};
             mov.b64 %d0, %rd5; mov.b64 %d1, %rd6; {operation}.f64 %d2, %d0, %d1; mov.b64 %rd7, %d2;
             mov.b64 {{%r6, %r7}}, %rd7; add.u32 %r19, %r6, %r7;"
        ));
    }
}
