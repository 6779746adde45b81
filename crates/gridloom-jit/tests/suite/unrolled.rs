//! Loops that were unrolled for an unknown number of passes.

use crate::case::{Case, STORE};

/// A loop over `%r5..%r6` as `nvcc` writes it: a pass of `single` for each element until the rest
/// is a multiple of four, and `four` for four. `ahead` and `middle` are what is before each of
/// both.
fn unrolled(signed: bool, [ahead, single, middle, four]: [&str; 4]) -> String {
    let ty = if signed { "s32" } else { "u32" };
    format!(
        "mul.wide.u32 %rd18, %r1, 4; add.s64 %rd17, %rd0, %rd18;
         ld.global.u32 %r5, [%rd17]; ld.global.u32 %r6, [%rd17+4];
         mov.f32 %f1, 0f00000000; mov.u32 %r19, 7; mov.u32 %r2, 0;
         setp.ge.{ty} %p1, %r5, %r6; @%p1 bra E;
         add.s32 %r7, %r5, 1; max.{ty} %r8, %r6, %r7; sub.s32 %r9, %r8, %r5; and.b32 %r10, %r9, 3;
         mov.u32 %r11, %r5; setp.eq.s32 %p2, %r10, 0; @%p2 bra M;
         {ahead} mov.u32 %r11, %r5;
         L: {single}
         add.s32 %r11, %r11, 1; add.s32 %r10, %r10, -1; setp.ne.s32 %p3, %r10, 0; @%p3 bra L;
         M: not.b32 %r12, %r5; add.s32 %r13, %r8, %r12; setp.lt.u32 %p4, %r13, 3; @%p4 bra E;
         {middle}
         U: {four}
         add.s32 %r11, %r11, 4; setp.lt.{ty} %p5, %r11, %r6; @%p5 bra U;
         E: mov.b32 %r14, %f1; xor.b32 %r19, %r19, %r14; add.u32 %r19, %r19, %r2;
         add.u32 %r1, %r1, 100; {STORE}"
    )
}

/// The same with the rest behind: passes of `four`, and then of `single`. The first loop ends by a
/// sum with the number of the element, or by a counter of its own.
fn rest_last(signed: bool, sums: bool, [ahead, four, middle, single]: [&str; 4]) -> String {
    let ty = if signed { "s32" } else { "u32" };
    let (start, step) = match sums {
        true => ("sub.s32 %r4, %r10, %r8;", "add.s32 %r3, %r4, %r11; setp.ne.s32 %p3, %r3, 0;"),
        false => ("sub.s32 %r4, %r9, %r10;", "add.s32 %r4, %r4, -4; setp.ne.s32 %p3, %r4, 0;"),
    };
    format!(
        "mul.wide.u32 %rd18, %r1, 4; add.s64 %rd17, %rd0, %rd18;
         ld.global.u32 %r11, [%rd17]; ld.global.u32 %r6, [%rd17+4];
         mov.f32 %f1, 0f00000000; mov.u32 %r19, 7; mov.u32 %r2, 0;
         setp.ge.{ty} %p1, %r11, %r6; @%p1 bra E;
         add.s32 %r7, %r11, 1; max.{ty} %r8, %r6, %r7; sub.s32 %r9, %r8, %r11; and.b32 %r10, %r9, 3;
         not.b32 %r12, %r11; add.s32 %r13, %r8, %r12; setp.lt.u32 %p2, %r13, 3; @%p2 bra M;
         {ahead} {start}
         U: {four} add.s32 %r11, %r11, 4; {step} @%p3 bra U;
         M: setp.eq.s32 %p4, %r10, 0; @%p4 bra E;
         {middle}
         L: {single} add.s32 %r10, %r10, -1; setp.ne.s32 %p5, %r10, 0; @%p5 bra L;
         E: mov.b32 %r14, %f1; xor.b32 %r19, %r19, %r14; add.u32 %r19, %r19, %r2;
         add.u32 %r1, %r1, 100; {STORE}"
    )
}

/// Bounds of 64 rows, room for the results, and elements.
fn rows(lengths: impl Fn(u32) -> u32, first: u32) -> Vec<u32> {
    let mut words = vec![first];
    (0..64).for_each(|row| words.push(words[row as usize].wrapping_add(lengths(row))));
    words.resize(200, 0);
    words.extend((0..2000u32).map(|i| (i as f32 * 0.37 + 1.0).to_bits()));
    words
}

#[track_caller]
fn check(body: &str) {
    for lengths in [|row: u32| row * 7 % 13, |row: u32| row % 2, |row: u32| row * row % 29, |_| 8] {
        Case { words: rows(lengths, 200), ..Case::new(body) }.same_alone().unwrap();
    }
}

#[test]
fn elements_at_an_index_are_summed_in_order() {
    let element = |from: &str, to: u32| {
        format!(
            "mul.wide.u32 %rd5, {from}, 4; add.s64 %rd6, %rd0, %rd5; ld.global.f32 %f2, [%rd6];
             add.f32 %f1, %f1, %f2; add.s32 %r15, %r11, {to};"
        )
    };
    let four = [element("%r11", 1), element("%r15", 2), element("%r15", 3), element("%r15", 4)].concat();
    check(&unrolled(false, ["", &element("%r11", 1), "", &four]));
}

#[test]
fn elements_at_pointers_that_advance_are_summed_in_order() {
    let ahead = "mul.wide.s32 %rd1, %r5, 4; add.s64 %rd2, %rd0, %rd1; add.s64 %rd3, %rd0, %rd1;";
    let single = "ld.global.f32 %f2, [%rd2]; ld.global.f32 %f3, [%rd3+-4]; fma.rn.f32 %f1, %f2, %f3, %f1;
                  add.s64 %rd2, %rd2, 4; add.s64 %rd3, %rd3, 4;";
    let middle = "mul.wide.s32 %rd4, %r11, 4; add.s64 %rd5, %rd4, 8; add.s64 %rd6, %rd0, %rd5;
                  add.s64 %rd7, %rd0, %rd5;";
    let four = [(-8, -12), (-4, -8), (0, -4), (4, 0)].map(|(a, b)| {
        format!(
            "ld.global.f32 %f4, [%rd6+{a}]; ld.global.f32 %f5, [%rd7+{b}]; fma.rn.f32 %f1, %f4, %f5, %f1;"
        )
    });
    let four = format!("{} add.s64 %rd6, %rd6, 16; add.s64 %rd7, %rd7, 16;", four.concat());
    check(&unrolled(true, [ahead, single, middle, &four]));
}

#[test]
fn a_value_beside_the_sum_is_counted() {
    let single = "mad.lo.u32 %r19, %r19, 31, %r11; add.u32 %r2, %r2, 3;";
    let four = "mad.lo.u32 %r16, %r19, 31, %r11; add.u32 %r15, %r11, 1; mad.lo.u32 %r16, %r16, 31, %r15;
                add.u32 %r15, %r11, 2; mad.lo.u32 %r16, %r16, 31, %r15; add.u32 %r15, %r11, 3;
                mad.lo.u32 %r19, %r16, 31, %r15; add.u32 %r2, %r2, 12;";
    check(&unrolled(false, ["", single, "", four]));
    // As signed numbers, around zero and at the ends.
    for first in [-5i32, -200, i32::MIN, i32::MAX - 400] {
        let words = rows(|row| row * 7 % 13, first as u32);
        Case { words, ..Case::new(&unrolled(true, ["", single, "", four])) }.same_alone().unwrap();
    }
}

#[test]
fn a_pointer_and_an_index_that_are_read_behind_the_loop_are_those_of_the_end() {
    for (signed, size) in [(false, 1), (true, 2), (false, 4), (true, 8), (false, 16)] {
        let pass =
            |at: u32| format!("ld.global.u8 %r15, [%rd2+{}]; mad.lo.u32 %r19, %r19, 31, %r15;", at * size);
        let single = format!("{} add.s64 %rd2, %rd2, {size};", pass(0));
        let four = [0, 1, 2, 3].map(pass).concat();
        let four = format!("{four} add.s64 %rd2, %rd2, {};", 4 * size);
        let body = unrolled(signed, ["", &single, "", &four])
            .replace("mov.u32 %r11, %r5; setp.eq", "mov.u32 %r11, %r5; add.s64 %rd2, %rd0, 800; setp.eq")
            .replace("setp.ge", "mov.u32 %r11, 0; mov.u64 %rd2, %rd0; setp.ge")
            .replace(
                "E: ",
                "E: sub.s64 %rd3, %rd2, %rd0; cvt.u32.u64 %r15, %rd3; mad.lo.u32 %r2, %r15, 7, %r11; ",
            );
        check(&body);
    }
}

#[test]
fn a_long_pass_reads_what_was_computed_before_the_loop() {
    let pass = |from: &str, to: &str| {
        (0..12)
            .map(|i| {
                format!("mad.lo.u32 {to}, {}, %r{}, %r11;", if i == 0 { from } else { to }, [3, 8][i % 2])
            })
            .collect::<String>()
    };
    let single = format!("{} xor.b32 %r2, %r2, %r3;", pass("%r19", "%r19"));
    let next = "add.u32 %r11, %r11, 1;";
    let four =
        [&pass("%r19", "%r16"), next, &pass("%r16", "%r16"), next, &pass("%r16", "%r16"), next].concat();
    let four = format!("mov.u32 %r4, %r11; {four} {} mov.u32 %r11, %r4;", pass("%r16", "%r19"));
    let body = unrolled(false, ["", &single, "", &four]);
    check(&body.replace("setp.ge", "mad.lo.u32 %r3, %r1, 77, 5; setp.ge"));
}

#[test]
fn a_second_loop_that_does_something_else_is_executed() {
    let single = "add.u32 %r2, %r2, %r11; mad.lo.u32 %r19, %r19, 31, 1;";
    let others = [
        // Another constant, another order, an element that is left out, and a value of the pass
        // before.
        "add.u32 %r2, %r2, %r11; mad.lo.u32 %r19, %r19, 923521, 30785;",
        "shl.b32 %r15, %r11, 2; add.u32 %r2, %r2, %r15; add.u32 %r2, %r2, 6; mad.lo.u32 %r19, %r19, 923521, 30784;",
        "shl.b32 %r15, %r11, 2; add.u32 %r2, %r2, %r15; add.u32 %r2, %r2, 3; mad.lo.u32 %r19, %r19, 923521, 30784;",
        "add.u32 %r2, %r2, %r4; add.u32 %r4, %r2, 5; mad.lo.u32 %r19, %r19, 31, 1;",
    ];
    for four in others {
        check(&unrolled(false, ["", single, "mov.u32 %r4, %r2;", four]));
    }
}

#[test]
fn a_count_of_passes_that_is_not_the_distance_is_kept() {
    // The counter is that of a row twice as long.
    let single = "add.u32 %r2, %r2, %r11;";
    let four = "shl.b32 %r15, %r11, 2; add.u32 %r2, %r2, %r15; add.u32 %r2, %r2, 6;";
    let body = unrolled(false, ["", single, "", four]);
    let body = body.replace("sub.s32 %r9, %r8, %r5;", "sub.s32 %r9, %r8, %r5; shl.b32 %r9, %r9, 1;");
    check(&body);
}

#[test]
fn a_rest_behind_is_made_in_the_same_order() {
    let element = |from: &str, at: u32| {
        format!("{from} ld.global.u32 %r15, [%rd6+{at}]; mad.lo.u32 %r19, %r19, 31, %r15;")
    };
    let address = "mul.wide.s32 %rd5, %r11, 4; add.s64 %rd6, %rd0, %rd5;";
    let four = [(address, 0), ("", 4), ("", 8), ("", 12)].map(|(from, at)| element(from, at)).concat();
    let at_index = format!("{} add.s32 %r11, %r11, 1;", element(address, 0));
    let at_pointer = "ld.global.u32 %r15, [%rd7]; mad.lo.u32 %r19, %r19, 31, %r15; add.s64 %rd7, %rd7, 4;";
    let pointer = "mul.wide.s32 %rd5, %r11, 4; add.s64 %rd7, %rd0, %rd5;";
    for sums in [true, false] {
        check(&rest_last(true, sums, ["", &four, "", &at_index]));
        check(&rest_last(true, sums, ["", &four, pointer, at_pointer]));
        check(&rest_last(false, sums, ["", &four, pointer, at_pointer]));
        // A rest that does something else, and one of elements that are elsewhere.
        let other = at_pointer.replace("31", "37");
        check(&rest_last(true, sums, ["", &four, pointer, &other]));
        let elsewhere = "mul.wide.s32 %rd5, %r5, 4; add.s64 %rd7, %rd0, %rd5; add.s64 %rd7, %rd7, 800;";
        check(&rest_last(true, sums, ["", &four, elsewhere, at_pointer]));
        let stays = at_pointer.replace("%rd7, 4;", "%rd7, 0;");
        check(&rest_last(true, sums, ["", &four, pointer, &stays]));
    }
}

#[test]
fn a_value_of_the_index_beside_a_rest_behind_is_counted() {
    let single = "mad.lo.u32 %r19, %r19, 31, %r11; add.u32 %r2, %r2, 3; add.s32 %r11, %r11, 1;";
    let four = "mad.lo.u32 %r16, %r19, 31, %r11; add.u32 %r15, %r11, 1; mad.lo.u32 %r16, %r16, 31, %r15;
                add.u32 %r15, %r11, 2; mad.lo.u32 %r16, %r16, 31, %r15; add.u32 %r15, %r11, 3;
                mad.lo.u32 %r19, %r16, 31, %r15; add.u32 %r2, %r2, 12;";
    let without = "mad.lo.u32 %r19, %r19, 31, %r11; add.u32 %r2, %r2, 3;";
    for sums in [true, false] {
        for first in [200i32, -5, i32::MIN, i32::MAX - 400] {
            let words = rows(|row| row * 7 % 13, first as u32);
            for single in [single, without] {
                let body = rest_last(true, sums, ["", four, "", single]);
                Case { words: words.clone(), ..Case::new(&body) }.same_alone().unwrap();
            }
        }
    }
}
