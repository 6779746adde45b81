//! NaNs in registers that are written repeatedly: arithmetic gives the canonical NaN, a load or
//! move keeps the loaded one.

use crate::case::{Case, STORE};

/// Loads the thread's word to `%f0` and the next one to `%f9`, and makes a NaN of arithmetic of
/// each that is one.
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
fn extrema_with_a_constant_are_those_of_the_interpreter() {
    for constant in ["00000000", "80000000", "3F800000", "FF800000", "7FC00001", "00000001"] {
        for operation in ["max", "min", "max.ftz", "min.ftz"] {
            same(&format!("{operation}.f32 %f0, %f0, 0f{constant}; mov.b32 %r19, %f0;"));
            same(&format!("{operation}.f32 %f0, 0f{constant}, %f0; mov.b32 %r19, %f0;"));
        }
    }
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

/// Makes doubles of the words, NaNs of all kinds among them, and goes on with a body that leaves
/// its result in `%d9`.
#[track_caller]
fn same_in_double(body: &str) -> Vec<u32> {
    same(&format!(
        "mov.b32 %r4, %f0; mov.b32 %r5, %f9; mov.b64 %d0, {{%r5, %r4}}; mov.b64 %d1, {{%r4, %r5}};
         {body}
         mov.b64 {{%r6, %r7}}, %d9; mad.lo.u32 %r19, %r6, 31, %r7;"
    ))
}

#[test]
fn a_nan_in_a_run_of_double_precision_is_that_of_the_interpreter() {
    same_in_double(
        "mul.f64 %d2, %d0, %d1; add.f64 %d3, %d2, %d0; fma.rn.f64 %d4, %d3, %d2, %d1; sub.f64 %d5, %d4, %d0;
         div.rn.f64 %d6, %d5, %d1; sqrt.rn.f64 %d7, %d6; max.f64 %d8, %d7, %d2; add.f64 %d9, %d8, %d5;",
    );
}

#[test]
fn a_run_that_writes_its_own_operands_is_executed_again_from_what_they_were() {
    same_in_double(
        "add.f64 %d0, %d0, %d1; mul.f64 %d1, %d0, %d1; fma.rn.f64 %d0, %d1, %d0, %d1; mov.f64 %d9, %d0;",
    );
    same_in_double(
        "mov.f64 %d9, 0d0000000000000000; mov.u32 %r8, 0;
         L: fma.rn.f64 %d9, %d0, %d1, %d9; add.f64 %d0, %d0, %d9; add.u32 %r8, %r8, 1;
         setp.lt.u32 %p2, %r8, 3; @%p2 bra L;",
    );
}

#[test]
fn what_is_stored_moved_compared_or_guarded_in_a_run_is_known() {
    same_in_double(
        "add.f64 %d2, %d0, %d1; mov.b64 %rd5, %d2; setp.gt.f64 %p2, %d2, %d0; mul.f64 %d3, %d2, %d2;
         @%p1 add.f64 %d3, %d3, %d0; selp.f64 %d4, %d3, %d1, %p2; mov.b64 %d5, %rd5; add.f64 %d9, %d4, %d5;",
    );
    same_in_double(
        "add.f64 %d2, %d0, %d1; mul.wide.u32 %rd5, %r1, 8; mov.u64 %rd6, tile; add.u64 %rd6, %rd6, %rd5; st.shared.f64 [%rd6], %d2;
         mul.f64 %d3, %d2, %d0; ld.shared.f64 %d4, [%rd6]; add.f64 %d9, %d3, %d4;",
    );
    same_in_double(
        "add.f64 %d2, %d0, %d1; cvt.rn.f32.f64 %f3, %d2; neg.f64 %d3, %d2; cvt.f64.f32 %d4, %f3; add.f64 %d9, %d3, %d4;",
    );
}

#[test]
fn a_value_that_is_the_same_in_all_threads_can_be_in_doubt_too() {
    same_in_double(
        "ld.global.f64 %d2, [%rd0]; bar.sync 0; add.f64 %d3, %d2, 0d3FF0000000000000; mul.f64 %d4, %d3, %d3; fma.rn.f64 %d9, %d4, %d0, %d3;",
    );
}

#[test]
fn a_fault_in_a_run_is_that_of_the_interpreter() {
    let body = format!(
        "{LOAD} mov.b32 %r4, %f0; mov.b64 %d0, {{%r4, %r4}}; add.f64 %d1, %d0, %d0; mul.wide.u32 %rd5, %r1, 8; ld.shared.f64 %d2, [%rd5+768];
         mul.f64 %d3, %d1, %d2; mov.b64 {{%r6, %r19}}, %d3; {STORE}"
    );
    let found = Case { words: words(), block: [128, 1, 1], ..Case::new(&body) }.same();
    assert!(found.is_err_and(|fault| fault.contains("shared")), "no fault");
}
